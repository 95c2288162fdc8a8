"""Logging: one event a line, its facts as fields, secrets blotted out.

Pass facts by `extra`: job_id, step, attempt and the like. Never log a transcript, a sender's file
name, an object's key or a stored name; what slips into a library's message is blotted out here, in
the handler, where every logger's records pass.
"""

import json
import logging
import re
import sys
import threading
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, TextIO

from app import clock
from app.settings import Log

log = logging.getLogger(__name__)

# These tell at INFO or DEBUG what is nobody's business (URLs with keys, headers) or plain noise.
_AT_MOST = {
    "urllib3": logging.WARNING,
    "requests": logging.WARNING,
    "httpx": logging.WARNING,
    "httpx2": logging.WARNING,
    "httpcore": logging.WARNING,
    "httpcore2": logging.WARNING,
    "botocore": logging.WARNING,
    "boto3": logging.WARNING,
    "s3transfer": logging.WARNING,
    "faster_whisper": logging.WARNING,
    "huggingface_hub": logging.WARNING,
    "libav": logging.ERROR,
    "werkzeug": logging.WARNING,
    "asyncio": logging.WARNING,
    "waitress": logging.WARNING,
    # "Task queue depth is 1" at each request that waits a moment for a thread.
    "waitress.queue": logging.ERROR,
}

_BLOTS: tuple[tuple[re.Pattern[str], str], ...] = (
    # A Telegram bot's token stands in every URL that telebot calls.
    (re.compile(r"(?<!\d)\d{6,12}:[A-Za-z0-9_-]{30,}"), "[token]"),
    (re.compile(r"\bpisar_[A-Za-z0-9_-]{8,}"), "[token]"),
    # What app.clock.new_token makes: claims, sessions, invitations, API tokens. A capital letter
    # tells it from a long name in a traceback; one token in 10**9 has none.
    (
        re.compile(r"(?<![A-Za-z0-9_-])(?=[a-z0-9_-]*[A-Z])[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])"),
        "[token]",
    ),
    (
        re.compile(
            r"""(?i)\b((?:proxy-)?authorization|x-api-key)(["']?\s*[:=,]\s*["']?)"""
            r"""(?:(?:bearer|basic|token|api-key)\s+)?[^\s"',}]+"""
        ),
        r"\1\2[secret]",
    ),
    (re.compile(r"(?i)\b((?:set-)?cookie)([\"']?\s*[:=]\s*)[^\n]+"), r"\1\2[secret]"),
    (re.compile(r"\b([a-z][a-z0-9+.-]*://[^\s/:@]*):[^\s/@]+@"), r"\1:[secret]@"),
    (
        re.compile(
            r"""(?i)\b([\w-]*(?:password|passwd|secret|token|api_?key|signature))=[^\s&"']+"""
        ),
        r"\1=[secret]",
    ),
    # A stored name opens its file to whoever knows it (S10).
    (
        re.compile(r"(?i)\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.[a-z0-9]{2,5}\b"),
        "[stored file]",
    ),
)

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def redact(text: str) -> str:
    """The text with tokens, keys, passwords and stored names blotted out."""
    for pattern, blot in _BLOTS:
        text = pattern.sub(blot, text)
    return text


def setup(settings: Log, role: str, stream: TextIO | None = None) -> None:
    """Send this process's log to stderr: text on a terminal, JSON lines elsewhere.

    role names the process in every line. Uncaught exceptions and warnings go the same way.
    """
    target = stream or sys.stderr
    as_json = settings.format == "json" or (settings.format == "auto" and not target.isatty())
    handler = logging.StreamHandler(target)
    handler.setFormatter(_JsonFormatter(role) if as_json else _TextFormatter(role))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.level)
    for name, level in _AT_MOST.items():
        logging.getLogger(name).setLevel(max(level, root.level))
    logging.captureWarnings(True)
    sys.excepthook = _log_uncaught
    threading.excepthook = _log_uncaught_in_thread


class _Formatter(logging.Formatter):
    def __init__(self, role: str) -> None:
        super().__init__()
        self._role = role

    def facts(self, record: logging.LogRecord) -> Mapping[str, Any]:
        """The fields of an event after its time, level and words; secrets are blotted out."""
        found: dict[str, Any] = {"role": self._role}
        for key, value in vars(record).items():
            if key not in _STANDARD and value is not None:
                found[key] = value if isinstance(value, int | float) else redact(str(value))
        if record.exc_info and record.exc_info[1]:
            found["exception"] = redact("".join(traceback.format_exception(record.exc_info[1])))
        return found


class _JsonFormatter(_Formatter):
    def format(self, record: logging.LogRecord) -> str:
        event = {
            "time": clock.to_rfc3339(datetime.fromtimestamp(record.created, UTC)),
            "level": record.levelname,
            "logger": record.name,
            "event": redact(record.getMessage()),
            **self.facts(record),
        }
        return json.dumps(event, ensure_ascii=False)


class _TextFormatter(_Formatter):
    def format(self, record: logging.LogRecord) -> str:
        moment = clock.to_text(datetime.fromtimestamp(record.created, UTC))
        words = _one_line(redact(record.getMessage()))
        facts = " ".join(f"{key}={_quoted(value)}" for key, value in self.facts(record).items())
        return f"{moment} {record.levelname:7} {words} {facts}"


def _quoted(value: Any) -> str:
    text = _one_line(str(value))
    return '"' + text.replace('"', "'") + '"' if " " in text else text


def _one_line(text: str) -> str:
    """Control characters would break the line or drive the terminal."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def _log_uncaught(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
        return
    log.critical("the process ends by an unexpected error", exc_info=(kind, error, trace))


def _log_uncaught_in_thread(arguments: threading.ExceptHookArgs) -> None:
    error = arguments.exc_value
    if error is None or isinstance(error, SystemExit):
        return
    log.critical(
        "a thread ended by an unexpected error",
        exc_info=(type(error), error, arguments.exc_traceback),
    )
