"""The methods by which a bot gets its updates: asked for, or brought to an address."""

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tests.telegram.double.errors import bad_request, too_many
from tests.telegram.double.methods.registry import Method, Said
from tests.telegram.double.query import Query
from tests.telegram.double.webhook import Webhook

if TYPE_CHECKING:
    from tests.telegram.double.telegram import Telegram

_LONGEST_SECRET = 256
_SECRET = re.compile(r"[A-Za-z0-9_-]*")
_PORTS = (443, 80, 88, 8443)
_BETWEEN_WEBHOOKS_SECONDS = 1.0
_MOST_CONNECTIONS = 100


def get_updates(telegram: "Telegram", query: Query) -> Any:
    """What the bot has not confirmed."""
    return telegram.network.updates.poll(query)


def set_webhook(telegram: "Telegram", query: Query) -> Any:
    """Have updates brought to an address; an empty one ends that."""
    url = query.text("url")
    if not url:
        return delete_webhook(telegram, query)
    now = telegram.clock.now()
    if telegram.slows_hasty and now < telegram.next_webhook_at:
        raise too_many(1)
    telegram.next_webhook_at = now + _BETWEEN_WEBHOOKS_SECONDS
    secret, connections = (
        query.text("secret_token"),
        query.within("max_connections", 40, 1, _MOST_CONNECTIONS),
    )
    old = telegram.webhook
    is_same = old and (old.url, old.secret, old.max_connections) == (url, secret, connections)
    if is_same and not query.flag("drop_pending_updates"):
        telegram.network.updates.allow(query)
        return Said(True, "Webhook is already set")
    _check(telegram, url, secret)
    telegram.network.updates.interrupt("terminated by setWebhook request")
    if query.flag("drop_pending_updates"):
        telegram.network.updates.clear()
    telegram.network.updates.allow(query)
    telegram.take_webhook(_webhook(telegram, url, secret, connections))
    return Said(True, "Webhook was set")


def delete_webhook(telegram: "Telegram", query: Query) -> Any:
    """Keep updates until they are asked for."""
    had_one = telegram.webhook is not None
    telegram.take_webhook(None)
    if query.flag("drop_pending_updates"):
        telegram.network.updates.clear()
    return Said(True, "Webhook was deleted" if had_one else "Webhook is already deleted")


def get_webhook_info(telegram: "Telegram", query: Query) -> Any:
    """How the webhook fares."""
    webhook, updates = telegram.webhook, telegram.network.updates
    said: dict[str, Any] = {
        "url": webhook.url if webhook else "",
        "has_custom_certificate": False,
        "pending_update_count": len(updates.pending()),
    }
    if webhook:
        said |= {"max_connections": webhook.max_connections, "ip_address": "127.0.0.1"}
        if webhook.last_error:
            said |= {
                "last_error_date": webhook.last_error_at,
                "last_error_message": webhook.last_error,
            }
    if updates.allowed is not None:
        said["allowed_updates"] = updates.allowed
    return said


def _check(telegram: "Telegram", url: str, secret: str) -> None:
    try:
        parts = urlsplit(url if "://" in url else f"https://{url}")
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        raise bad_request("invalid webhook URL specified") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise bad_request("invalid webhook URL specified")
    if len(secret) > _LONGEST_SECRET:
        raise bad_request("secret token is too long")
    if not _SECRET.fullmatch(secret):
        raise bad_request("secret token contains unallowed characters")
    if telegram.is_local or telegram.takes_plain_webhooks:
        return
    if parts.scheme != "https":
        raise bad_request("bad webhook: An HTTPS URL must be provided for webhook")
    if port not in _PORTS:
        raise bad_request("bad webhook: Webhook can be set up only on ports 80, 88, 443 or 8443")


def _webhook(telegram: "Telegram", url: str, secret: str, connections: int) -> Webhook:
    return Webhook(
        url,
        secret,
        connections,
        telegram.carry_out,
        telegram.clock,
        telegram.network.lock,
        telegram.network.updates,
        telegram.webhook_pause_seconds,
    )


METHODS: dict[str, Method] = {
    "getUpdates": get_updates,
    "setWebhook": set_webhook,
    "deleteWebhook": delete_webhook,
    "getWebhookInfo": get_webhook_info,
}
