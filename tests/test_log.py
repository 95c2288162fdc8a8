import io
import json
import logging
import threading
from collections.abc import Iterator

import pytest

from app import clock
from app.log import redact, setup
from app.settings import Log

BOT_TOKEN = "123456789:AAH-abcdefghijklmnopqrstuvwxyz_0123"
OWN_TOKEN = "Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmF"
STORED_NAME = "0f8fad5b-d9cb-469f-a165-70867728950e.ogg"


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """Somewhere to log to; what setup() changes in this process is put back afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    monkeypatch.setattr("sys.excepthook", lambda *_: None)
    monkeypatch.setattr(threading, "excepthook", lambda *_: None)
    yield io.StringIO()
    logging.captureWarnings(False)
    root.handlers[:], root.level = handlers, level


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_an_event_is_one_json_line_with_its_facts_as_fields(stream: io.StringIO) -> None:
    setup(Log(), "worker", stream)
    logging.getLogger("worker.loop").warning(
        "the step failed\nand will be tried again",
        extra={"job_id": "abc", "step": "convert", "attempt": 2},
    )
    (line,) = stream.getvalue().splitlines()
    event = json.loads(line)
    assert event["event"] == "the step failed\nand will be tried again"
    assert event["level"] == "WARNING"
    assert (event["job_id"], event["step"], event["attempt"]) == ("abc", "convert", 2)
    assert event["role"] == "worker"
    assert clock.from_text(event["time"].replace("T", " "))


def test_on_a_terminal_an_event_is_one_line_of_text() -> None:
    terminal = Terminal()
    setup(Log(), "web", terminal)
    try:
        raise ValueError("first\nsecond\x1b[31m")
    except ValueError:
        logging.getLogger("x").exception("went\nwrong", extra={"job_id": "abc"})
    (line,) = terminal.getvalue().splitlines()
    assert "ERROR   went\\nwrong role=web job_id=abc" in line
    assert "ValueError: first\\nsecond\\x1b[31m" in line


def test_the_form_can_be_chosen() -> None:
    terminal = Terminal()
    setup(Log(format="json"), "web", terminal)
    logging.getLogger("x").error("no")
    assert json.loads(terminal.getvalue())["event"] == "no"


@pytest.mark.parametrize(
    ("words", "secret"),
    [
        (f"POST https://api.example/bot{BOT_TOKEN}/getMe", BOT_TOKEN),
        (f"open http://127.0.0.1:8080/setup#{OWN_TOKEN} now", OWN_TOKEN),
        ("token pisar_abcdefgh12345678 refused", "abcdefgh12345678"),
        ("{'Authorization': 'Bearer s3cr3t-thing'}", "s3cr3t-thing"),
        ("authorization=Api-Key AQVNsecret", "AQVNsecret"),
        ("Cookie: session=abcdef; other=ghi", "abcdef"),
        ("cannot reach https://user:hunter2@proxy.example:3128/", "hunter2"),
        ("GET /x?X-Amz-Signature=deadbeef&a=1", "deadbeef"),
        ("retrying with access_token=abc.def", "abc.def"),
        (f"Exception while serving /api/files/jobs/abc/{STORED_NAME}", STORED_NAME),
    ],
)
def test_secrets_are_blotted_out(stream: io.StringIO, words: str, secret: str) -> None:
    setup(Log(level="DEBUG"), "web", stream)
    logger = logging.getLogger("some.library")
    logger.info("as an argument: %s", words)
    logger.info("as a field", extra={"note": words})
    try:
        raise RuntimeError(words) from OSError(words)
    except RuntimeError:
        logger.exception("as an exception and its cause")
    assert len(stream.getvalue().splitlines()) == 3
    assert secret not in stream.getvalue()


def test_every_token_that_the_clock_makes_is_blotted_out() -> None:
    tokens = [clock.new_token() for _ in range(1000)]
    assert all(token not in redact(f"acquisition {token} lost") for token in tokens)


@pytest.mark.parametrize(
    "words",
    [
        "job abcdefghijklmno moved to dead after 5 attempts",
        "digest 2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
        "test_a_step_that_lost_its_claim_writes_no_result_at_all",
        "set the token: open the page http://127.0.0.1:8080/account",
    ],
)
def test_plain_words_stay(words: str) -> None:
    assert redact(words) == words


def test_talkative_libraries_are_silent_even_at_debug(stream: io.StringIO) -> None:
    setup(Log(level="DEBUG"), "web", stream)
    logging.getLogger("urllib3.connectionpool").debug("GET /bot1:x/getMe")
    logging.getLogger("botocore.auth").debug("headers")
    logging.getLogger("faster_whisper").info("Processing audio")
    logging.getLogger("waitress.queue").warning("Task queue depth is 1")
    logging.getLogger("waitress").info("Serving on http://127.0.0.1:8080")
    assert stream.getvalue() == ""


def test_an_uncaught_exception_in_a_thread_is_logged_and_blotted_out(stream: io.StringIO) -> None:
    setup(Log(), "web", stream)

    def fall() -> None:
        raise RuntimeError(BOT_TOKEN)

    thread = threading.Thread(target=fall)
    thread.start()
    thread.join()
    event = json.loads(stream.getvalue())
    assert event["level"] == "CRITICAL"
    assert "RuntimeError" in event["exception"]
    assert BOT_TOKEN not in stream.getvalue()
