"""The webhook: Telegram calls, and what it brings is confirmed once it is taken."""

import errno
import http.client
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.errors import AppError
from app.storage.local import LocalDraft
from app.telegram.webhook import SECRET_HEADER, secret_of
from tests.processes import wait_until
from tests.telegram.double import Telegram
from tests.telegram.front import OGG, Front, front
from tests.web.site import free_port


@pytest.fixture
def telegram() -> Iterator[Telegram]:
    with Telegram(takes_plain_webhooks=True, webhook_pause_seconds=0.05) as double:
        yield double


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def bot(data_dir: Path, telegram: Telegram, port: int) -> Iterator[Front]:
    settings = {
        "TELEGRAM__MODE": "webhook",
        "TELEGRAM__WEBHOOK_URL": f"http://127.0.0.1:{port}/updates",
        "TELEGRAM__WEBHOOK_PORT": str(port),
    }
    with front(data_dir, telegram, **settings) as found:
        wait_until(found.receiver.is_up.is_set, 20, "it is up")
        yield found


def call(port: int, body: bytes, secret: str | None) -> int:
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        line.request("POST", "/updates", body, {SECRET_HEADER: secret} if secret else {})
        return line.getresponse().status
    finally:
        line.close()


def secret(bot: Front) -> str:
    token = bot.house.settings.telegram.token
    assert token
    return secret_of(token)


def test_what_people_send_comes_in_order(telegram: Telegram, bot: Front) -> None:
    alpha = telegram.person("Alpha")
    sent = [alpha.sends_voice(OGG + bytes([number])) for number in range(3)]
    alpha.says("/cancel")
    jobs = bot.waits_for_jobs(3)
    bot.waits_until_idle()
    assert [job.tg_reply_message_id for job in jobs] == [message.id for message in sent]
    assert [job.error_code for job in bot.jobs()] == [None, None, "cancelled"]
    assert telegram.journal.calls("getUpdates") == []


def test_ct10_p46_a_call_that_is_repeated_gives_the_same_job(
    telegram: Telegram, bot: Front
) -> None:
    alpha = telegram.person("Alpha")
    sent = alpha.sends_voice(OGG)
    bot.waits_for_jobs(1)
    bot.waits_until_idle()
    telegram.tells_again(sent)
    bot.waits_until_idle()
    assert len(bot.jobs()) == 1


def test_p45_what_cannot_be_taken_is_brought_again(
    telegram: Telegram, bot: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: LocalDraft, data: bytes, /) -> int:
        raise AppError("disk_full", errno.errorcode[errno.ENOSPC])

    with monkeypatch.context() as patch:
        patch.setattr(LocalDraft, "write", full)
        telegram.person("Alpha").sends_voice(OGG)
        hook = telegram.webhook
        assert hook
        telegram.waits_for(lambda: len(hook.deliveries) > 2, "it is brought again")
        assert {delivery.status for delivery in hook.deliveries} == {503}
        assert bot.jobs() == []
    bot.waits_for_jobs(1)
    bot.waits_until_idle()


def test_a_call_without_the_secret_is_refused(telegram: Telegram, bot: Front, port: int) -> None:
    wait_until(lambda: telegram.webhook is not None, 20, "the webhook is set")
    alpha = telegram.person("Alpha")
    chat = {"id": alpha.id, "type": "private", "first_name": "Alpha"}
    voice = {"file_id": "F"}
    update = {"update_id": 1, "message": {"message_id": 1, "chat": chat, "voice": voice}}
    body = json.dumps(update).encode()
    for wrong in (None, "", "x", secret(bot)[:-1], secret(bot) + "0", "ж"):
        sent = wrong.encode().decode("latin-1") if wrong else wrong
        assert call(port, body, sent) == 403
    assert telegram.journal.calls("getFile") == []


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 100_000])
def test_ct12_a_body_that_is_no_update_is_refused(bot: Front, port: int, body: bytes) -> None:
    assert call(port, body, secret(bot)) == 400


def test_ct12_an_update_that_cannot_be_read_is_taken_and_passed_by(
    telegram: Telegram, bot: Front
) -> None:
    telegram.tells({"message": {"message_id": "x"}})
    telegram.person("Alpha").sends_voice(OGG)
    bot.waits_for_jobs(1)
    bot.waits_until_idle()


def test_p29_the_secret_tells_nothing_of_the_token(telegram: Telegram, bot: Front) -> None:
    shown = secret(bot)
    assert telegram.webhook and telegram.webhook.secret == shown
    assert len(shown) == 64
    assert not any(part in shown for part in telegram.token.split(":"))
