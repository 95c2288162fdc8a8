"""What `pisar check` tells of Telegram: whether it answers, knows the bot, and who may use it."""

from collections.abc import Iterator

from app import liveness
from app.checkup import Finding, Verdict
from app.settings import Settings
from app.telegram.api import BotApi, Me, build
from app.telegram.errors import NoSuchBot, TelegramError

_SUBJECT = "telegram"


def examine(settings: Settings) -> Iterator[Finding]:
    """Ask Telegram once who the bot is; nothing is sent to anybody."""
    if settings.telegram.token is None:
        yield Finding(_SUBJECT, Verdict.OK, "no bot is wanted: telegram.token is not set")
        return
    found = _ask(build(settings))
    if isinstance(found, Finding):
        yield found
        return
    yield Finding(_SUBJECT, Verdict.OK, f"it knows the bot as @{found.username}")
    if not found.sees_all:
        words = "in groups it sees only commands and replies, unless it is an administrator there"
        yield Finding(_SUBJECT, Verdict.NOTE, words, "@BotFather: /setprivacy, then add it anew")
    if not settings.telegram.local and not settings.server.public_url:
        words = "who sends a file of more than 20 MB can be given no link to upload it"
        yield Finding(_SUBJECT, Verdict.NOTE, words, "set server.public_url")
    if not liveness.alive(settings.storage.data_dir, liveness.BOT):
        yield Finding(_SUBJECT, Verdict.NOTE, "the bot is not running", "`pisar up` starts it")


def _ask(api: BotApi) -> Me | Finding:
    try:
        return api.me()
    except NoSuchBot as error:
        mend = "set telegram.token to the token that @BotFather gives"
        return Finding(_SUBJECT, Verdict.BROKEN, str(error), mend)
    except TelegramError as error:
        mend = "look at the network, the proxy and telegram.api_url; the bot goes on trying"
        return Finding(_SUBJECT, Verdict.BROKEN, str(error), mend)
