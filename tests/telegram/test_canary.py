"""What must not leak is driven through the failing paths, and looked for everywhere (CT08)."""

import http.client
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes import wait_until
from tests.telegram.double import Telegram
from tests.telegram.front import OGG, bot_process
from tests.web.site import free_port

TOKEN = "7100000001:AAcanary-canary-canary-canary-canary1"
NAME = "Canary-Person"
FILE = "canary-file-name.ogg"
TEXT = "canary words of somebody"
SECRETS = ("canary", "Canary")


@pytest.fixture
def telegram() -> Iterator[Telegram]:
    with Telegram(TOKEN, slows_hasty=False) as double:
        yield double


def metrics_of(port: int) -> str:
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        line.request("GET", "/metrics")
        return line.getresponse().read().decode()
    finally:
        line.close()


def is_asked(telegram: Telegram, method: str, times: int = 1) -> None:
    telegram.waits_for(lambda: len(telegram.journal.calls(method)) >= times, method, 60)


def test_ct08_p29_the_token_and_peoples_words_are_nowhere(
    telegram: Telegram, data_dir: Path
) -> None:
    port = free_port()
    alpha = telegram.person(NAME)
    faults = telegram.faults
    faults.garbage("getMe")
    faults.page("getUpdates")
    faults.refuse(401, f"Unauthorized {TOKEN}", "getUpdates")
    faults.refuse(409, f"Conflict {TOKEN}", "getUpdates")
    faults.reset("getFile")
    faults.silence("file")
    faults.page("file", status=404)
    faults.refuse(403, f"Forbidden {TOKEN}", "sendMessage", times=2)
    faults.reset("sendMessage", times=2)
    with bot_process(
        data_dir, telegram, TELEGRAM__METRICS_PORT=str(port), TELEGRAM__REQUEST_TIMEOUT="0.5"
    ) as bot:
        alpha.says(TEXT)
        alpha.sends_audio(OGG, FILE, caption=TEXT)
        telegram.tells({"message": {"message_id": TOKEN, "text": TEXT}})
        telegram.waits_for(lambda: not telegram.network.updates.pending(), "all is dealt with", 90)
        alpha.sends_document(TEXT.encode() * 10, FILE)
        is_asked(telegram, "sendMessage", 3)
        telegram.goes_down()
        wait_until(lambda: "cannot be reached" in bot.log, 30, "it is noticed")
        shown = {"metrics": metrics_of(port)}
        bot.stop()
        shown["log"] = bot.log
    for place, content in shown.items():
        assert content
        for secret in SECRETS:
            assert secret not in content, f"{secret} in the {place}"
    for path in data_dir.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert TOKEN.encode() not in content, path.name
            assert TEXT.encode() not in content, path.name


def test_ct08_p29_an_unreachable_address_shows_nothing(telegram: Telegram, data_dir: Path) -> None:
    port = free_port()
    more = {"TELEGRAM__API_URL": "http://127.0.0.1:9", "TELEGRAM__METRICS_PORT": str(port)}
    with bot_process(data_dir, telegram, **more, LOG__LEVEL="DEBUG") as bot:
        wait_until(lambda: "cannot be reached" in bot.log, 60, "it is noticed")
        assert 'transcriber_intake_up{intake="telegram"} 0.0' in metrics_of(port)
        assert "canary" not in metrics_of(port)
        bot.stop()
        assert "canary" not in bot.log
