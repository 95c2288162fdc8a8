"""The client: bounded in time, honest about what may have arrived, silent about the token."""

import logging
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from app.errors import AppError
from app.settings import load
from app.storage.local import LocalDraft
from app.telegram.api import BotApi, TelegramFile, build
from app.telegram.errors import Busy, NoSuchBot, Refused, TelegramError, Unreachable
from tests.telegram.line import (
    TOKEN,
    Act,
    closing,
    dripping,
    line,
    raw,
    resetting,
    said,
    silent,
)

SECRET = TOKEN.split(":")[1]
WELL = said({"ok": True, "result": {"message_id": 7, "id": 5, "username": "a_bot"}})
DEEP = b"[" * 100_000
BOUND_SECONDS = 3.0

SAY: Callable[[BotApi], object] = lambda api: api.send_message(1, "text")  # noqa: E731
CALLS: dict[str, Callable[[BotApi], object]] = {
    "me": lambda api: api.me(),
    "updates": lambda api: api.updates(1, 1),
    "say": SAY,
    "file": lambda api: api.file("abc"),
    "document": lambda api: api.send_document(1, "a.txt", b"text"),
}
FAULTS: dict[str, tuple[Act, bool]] = {
    "silent": (silent, True),
    "dripping": (dripping, True),
    "reset": (resetting, True),
    "closed": (closing, True),
    "garbage": (raw(b"\xff\x00garbage"), True),
    "deep": (raw(DEEP), True),
    "a list": (said([1, 2]), True),
    "no result": (said({"ok": True}), True),
    "html 502": (raw(b"<html>502</html>", 502), False),
    "html 504": (raw(b"<html>504</html>", 504), True),
    "html 404": (raw(b"<html>404</html>", 404), False),
    "redirect": (raw(b"", 302, "Location: http://127.0.0.1:9/\r\n"), False),
    "its 500": (said({"ok": False, "error_code": 500, "description": "oh"}, 500), False),
}


def fault_of(api: BotApi, call: Callable[[BotApi], object]) -> TelegramError:
    with pytest.raises(TelegramError) as caught:
        call(api)
    return caught.value


def all_of(error: BaseException) -> str:
    chain = "".join(traceback.format_exception(error))
    return f"{error} {error!r} {error.args} {error.__context__!r} {error.__cause__!r} {chain}"


@pytest.mark.parametrize("name", FAULTS)
def test_q25_what_may_have_arrived_is_told_from_what_did_not(name: str) -> None:
    act, may_have_arrived = FAULTS[name]
    with line(act) as telegram:
        fault = fault_of(build(telegram.settings()), SAY)
    assert isinstance(fault, Unreachable)
    assert fault.may_have_arrived is may_have_arrived


def test_q25_a_refused_connection_means_that_nothing_arrived() -> None:
    with line(WELL) as telegram:
        settings = telegram.settings()
    fault = fault_of(build(settings), SAY)
    assert isinstance(fault, Unreachable)
    assert not fault.may_have_arrived


def test_a_connection_that_cannot_be_made_again_means_that_nothing_arrived() -> None:
    with line(WELL) as telegram:
        api = build(telegram.settings())
        api.send_message(1, "text")
    fault = fault_of(api, SAY)
    assert isinstance(fault, Unreachable)
    assert not fault.may_have_arrived


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("act", [silent, dripping], ids=["silent", "dripping"])
def test_p28_a_telegram_that_keeps_silent_hangs_nothing(act: Act, call: str) -> None:
    with line(act) as telegram:
        api = build(telegram.settings())
        begun = time.monotonic()
        # Waiting for news has its own wait, of five seconds at least.
        bound = BOUND_SECONDS + (6 if call == "updates" else 0)
        fault = fault_of(api, CALLS[call])
        assert time.monotonic() - begun < bound
    assert isinstance(fault, Unreachable)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", [name for name in FAULTS if name not in ("silent", "dripping")])
def test_p29_ct08_no_fault_tells_the_token(
    name: str, call: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "TeleBot")
    with line(FAULTS[name][0]) as telegram:
        fault = fault_of(build(telegram.settings()), CALLS[call])
    assert fault.__context__ is None
    assert SECRET not in all_of(fault)
    assert SECRET not in caplog.text


@pytest.mark.parametrize(
    "address",
    [
        "http://[::1",
        "http://127.0.0.1:99999",
        "http://127.0.0.1:9",
        "http://{0}",
        "https://%zz",
        "http://.",
    ],
)
def test_p29_a_malformed_address_does_not_tell_the_token(address: str) -> None:
    settings = load({"PISAR_TELEGRAM__TOKEN": TOKEN, "PISAR_TELEGRAM__API_URL": address})
    fault = fault_of(build(settings), CALLS["me"])
    assert isinstance(fault, Unreachable)
    assert not fault.may_have_arrived
    assert fault.__context__ is None
    assert SECRET not in all_of(fault)


def test_p29_telegram_itself_cannot_bring_the_token_back() -> None:
    refusal = {"ok": False, "error_code": 400, "description": f"bad: {TOKEN}"}
    with line(said(refusal, 400)) as telegram:
        assert SECRET not in all_of(fault_of(build(telegram.settings()), SAY))


@pytest.mark.parametrize("code", [401, 404])
def test_p27_telegram_knows_no_such_bot(code: int) -> None:
    with line(said({"ok": False, "error_code": code, "description": "No"}, code)) as telegram:
        api = build(telegram.settings())
        assert isinstance(fault_of(api, CALLS["me"]), NoSuchBot)
        # Of anything but the bot itself it is a refusal like any other.
        assert isinstance(fault_of(api, SAY), Refused)


def test_p27_a_page_of_somebody_elses_is_no_word_of_telegram() -> None:
    with line(raw(b"<html>Not Found</html>", 404)) as telegram:
        assert isinstance(fault_of(build(telegram.settings()), CALLS["me"]), Unreachable)


@pytest.mark.parametrize(
    ("parameters", "seconds"),
    [({"retry_after": 7}, 7), ({}, 5), ("x", 5), ({"retry_after": "soon"}, 5)],
)
def test_ct05_telegram_asks_to_wait(parameters: object, seconds: int) -> None:
    busy = {"ok": False, "error_code": 429, "description": "slow", "parameters": parameters}
    with line(said(busy, 429)) as telegram:
        fault = fault_of(build(telegram.settings()), SAY)
    assert isinstance(fault, Busy)
    assert fault.retry_after_seconds == seconds


def test_a_group_that_moved_is_a_refusal_with_its_new_number() -> None:
    moved = {
        "ok": False,
        "error_code": 400,
        "description": "upgraded",
        "parameters": {"migrate_to_chat_id": -1009},
    }
    with line(said(moved, 400)) as telegram:
        fault = fault_of(build(telegram.settings()), SAY)
    assert isinstance(fault, Refused)
    assert fault.migrate_to == -1009


def test_nothing_that_is_said_stands_in_an_address() -> None:
    with line(WELL) as telegram:
        api = build(telegram.settings())
        assert api.send_message(1, "a secret word", reply_to=3, buttons=[[("x", "y:z")]]) == 7
        api.send_document(1, 'a "b".txt', b"bytes", caption="a secret word")
    for request in telegram.requests:
        head, _, body = request.partition(b"\r\n\r\n")
        assert b"secret" not in head
        assert b"secret" in body
    assert b'filename="a %22b%22.txt"' in telegram.requests[1]


def test_a_wait_for_news_ends_when_the_bot_stops() -> None:
    with line(silent) as telegram:
        api = build(telegram.settings(REQUEST_TIMEOUT="30"))
        ended = threading.Event()

        def ask() -> None:
            fault_of(api, lambda api: api.updates(1, 10))
            ended.set()

        threading.Thread(target=ask, daemon=True).start()
        deadline = time.monotonic() + 10
        while not telegram.requests and time.monotonic() < deadline:
            ended.wait(0.01)
        api.stop_waiting()
        assert ended.wait(5)
        assert isinstance(fault_of(api, CALLS["updates"]), Unreachable)


def draft(tmp_path: Path, limit: int = 1000) -> LocalDraft:
    return LocalDraft(tmp_path, limit)


def test_a_file_is_written_to_the_draft_as_it_comes(tmp_path: Path) -> None:
    with line(raw(b"sound" * 20)) as telegram:
        received = draft(tmp_path)
        build(telegram.settings()).download(TelegramFile("voice/a b.oga", 100), received)
    assert received.size == 100
    assert f"GET /file/bot{TOKEN}/voice/a%20b.oga ".encode() in telegram.requests[0]
    received.discard()


@pytest.mark.parametrize("name", [*FAULTS, "short", "cut off"])
def test_q25_a_file_that_does_not_come_whole_is_no_file(tmp_path: Path, name: str) -> None:
    acts = {fault: act for fault, (act, _) in FAULTS.items() if fault not in ("garbage", "deep")}
    acts |= {"short": raw(b"sound"), "cut off": raw(b"sound", 200, "Content-Length: 100\r\n")}
    received = draft(tmp_path)
    with line(acts.get(name, raw(b"x"))) as telegram:
        api = build(telegram.settings())
        begun = time.monotonic()
        fault = fault_of(api, lambda api: api.download(TelegramFile("a", 100), received))
        assert time.monotonic() - begun < BOUND_SECONDS
    assert SECRET not in all_of(fault)
    received.discard()


def test_a_file_larger_than_the_limit_ends_at_the_limit(tmp_path: Path) -> None:
    received = draft(tmp_path, 50)
    with line(raw(b"sound" * 20)) as telegram:
        api = build(telegram.settings())
        with pytest.raises(AppError, match="larger"):
            api.download(TelegramFile("a", None), received)
    received.discard()


def test_ct01_a_local_server_gives_both_forms_of_a_path(tmp_path: Path) -> None:
    source = tmp_path / "a.oga"
    source.write_bytes(b"sound")
    with line(raw(b"other")) as telegram:
        api = build(telegram.settings(LOCAL="true"))
        here, there = draft(tmp_path), draft(tmp_path)
        api.download(TelegramFile(str(source), 5), here)
        assert not telegram.requests
        api.download(TelegramFile("voice/a.oga", 5), there)
        assert len(telegram.requests) == 1
    here.discard()
    there.discard()


def test_a_path_of_this_disk_is_read_for_a_local_server_alone(tmp_path: Path) -> None:
    source = tmp_path / "a.oga"
    source.write_bytes(b"sound")
    with line(raw(b"other")) as telegram:
        received = draft(tmp_path)
        build(telegram.settings()).download(TelegramFile(str(source), 5), received)
        assert len(telegram.requests) == 1
    received.discard()
