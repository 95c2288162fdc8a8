"""The embedded engine: Whisper in a warm child of this worker, on this machine's own cores."""

import json
import signal
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from math import inf
from os import sched_getaffinity
from typing import Any

from app.errors import AppError
from app.job import Piece, Segment, Transcript
from app.settings import Settings
from worker.child import Child, ChildFailed, Reason
from worker.recognizers.model import Model, find
from worker.recognizers.port import Audio, Pending, Refused, Result
from worker.recognizers.sentences import readable
from worker.work import Work

_CONFIGURATION = "whisper-1"
"""Goes up when the way of recognizing changes, so that pieces of two ways are never mixed."""
_CHILD_MODULE = "worker.recognizers.engine"


class EmbeddedRecognizer:
    """A Recognizer that works inside poll(), piece by piece, in a child it can kill at once.

    A child that finished its work waits for the next recording, as many as there are check
    slots; after recognizer.idle_unload seconds without work they end and free their memory.
    """

    first_check_delay_seconds = 0.0

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.lease_seconds = settings.worker.recognize_lease
        self._idle = _IdleChildren(settings.recognizer.idle_unload)
        self._model: Model | None = None
        with suppress(AppError):  # start() and poll() say it: the worker has other work to do
            self._find_model()

    @property
    def name(self) -> str:
        """The engine, its configuration and the model's digest."""
        return f"{_CONFIGURATION}:{self._model.digest[:16] if self._model else 'none'}"

    @property
    def label(self) -> str:
        """The model's name for people."""
        return self._model.label if self._model else "Whisper"

    @property
    def languages(self) -> Sequence[str]:
        """The languages that the model knows."""
        return self._model.languages if self._model else ()

    def find(self, intent: str) -> str | None:
        """Nothing to find: start() begins nothing outside this machine."""
        return None

    def start(self, audio: Audio, intent: str) -> str:
        """Give an operation id; the work itself is done by poll()."""
        self._find_model()
        return f"embedded:{self.name}"

    def poll(self, operation_id: str, audio: Audio, work: Work) -> Pending | Result | Refused:
        """Recognize what no kept piece covers, and give the whole text.

        Raises Stopped, and AppError engine_unavailable, engine_crashed, engine_silent,
        storage_failed or disk_full.
        """
        model = self._find_model()
        if audio.language is not None and audio.language not in model.languages:
            return Refused(AppError("unknown_language"))
        # What was heard in a language that was chosen before is another text.
        engine = f"{self.name}:{audio.language or 'auto'}"
        pieces = _consecutive(work.pieces(engine))
        child = self._idle.take() or self._start_child(model, work)
        with _killed_on_failure(child):
            self._send(child, audio, pieces)
            for piece, progress in self._pieces(child, engine, len(pieces), work):
                work.keep(piece, progress)
                pieces.append(piece)
        self._idle.put(child)
        return _result(pieces)

    def close(self) -> None:
        """End the children that wait for work."""
        self._idle.end_all()

    def _find_model(self) -> Model:
        if self._model is None:
            self._model = find(self._settings)
        return self._model

    def _start_child(self, model: Model, work: Work) -> Child:
        options = {"model": str(model.prepare()), "threads": self._threads()}
        child = Child.start(
            _CHILD_MODULE,
            [json.dumps(options)],
            # What is not on this disk is an error: a model hub is never asked.
            environment={"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": str(options["threads"])},
        )
        with _killed_on_failure(child):
            ready = next(self._messages(child, work))
            if ready["event"] == "failed":
                raise AppError("engine_unavailable", f"the model cannot be loaded: {ready['what']}")
        return child

    def _threads(self) -> int:
        cores = len(sched_getaffinity(0))
        slots = max(1, self._settings.worker.check_slots)
        return self._settings.recognizer.threads or max(1, cores // slots)

    def _send(self, child: Child, audio: Audio, kept: Sequence[Piece]) -> None:
        child.send(
            {
                "audio": str(audio.path.resolve()),
                "language": audio.language,
                "from_second": kept[-1].end if kept else 0,
                "piece_seconds": self._settings.recognizer.piece_seconds,
            }
        )

    def _pieces(
        self, child: Child, engine: str, number: int, work: Work
    ) -> Iterator[tuple[Piece, float]]:
        """Each new piece as it is finished, with the fraction of the recording that is done."""
        for message in self._messages(child, work):
            match message["event"]:
                case "progress":
                    work.report(message["fraction"])
                case "piece":
                    yield _piece(message, number, engine), message["fraction"]
                    number += 1
                case "done":
                    return
                case _:
                    raise _engine_error(message["what"])

    def _messages(self, child: Child, work: Work) -> Iterator[dict[str, Any]]:
        # A recording takes as long as it takes; only a child that says nothing is given up.
        return child.messages(
            timeout_seconds=inf,
            stall_seconds=self._settings.recognizer.piece_timeout,
            stopped=work.stopped,
        )


class _IdleChildren:
    """Warm children without work; they end after a while, 0 seconds meaning never."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._children: list[Child] = []
        self._timer: threading.Timer | None = None
        self._is_closed = False

    def take(self) -> Child | None:
        """A living child, if one waits."""
        with self._lock:
            self._stop_timer()
            while self._children:
                child = self._children.pop()
                if child.is_alive:
                    return child
                child.close()
        return None

    def put(self, child: Child) -> None:
        """Let a child wait for the next recording."""
        with self._lock:
            self._children.append(child)
            if self._is_closed:
                self._end_children()
            elif self._seconds:
                self._stop_timer()
                self._timer = threading.Timer(self._seconds, self._end_idle)
                self._timer.daemon = True
                self._timer.start()

    def end_all(self) -> None:
        """End those that wait, and from now on each that is put back."""
        with self._lock:
            self._is_closed = True
            self._stop_timer()
            self._end_children()

    def _end_idle(self) -> None:
        with self._lock:
            # A timer that fired while take() held the lock has been replaced or stopped.
            if threading.current_thread() is self._timer:
                self._timer = None
                self._end_children()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end_children(self) -> None:
        while self._children:
            self._children.pop().close()


@contextmanager
def _killed_on_failure(child: Child) -> Iterator[None]:
    """Kill the child whatever goes wrong, and say in our words what went wrong with it."""
    try:
        yield
    except ChildFailed as error:
        raise _verdict(error) from error
    except BaseException:
        child.close()
        raise


def _verdict(failed: ChildFailed) -> AppError:
    if failed.reason is not Reason.GONE:
        return AppError("engine_silent")
    if failed.exit_code < 0:
        return AppError("engine_crashed", f"ended by {_signal_name(-failed.exit_code)}")
    return AppError("engine_crashed", f"ended with exit code {failed.exit_code}")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _engine_error(what: str) -> AppError:
    if what == "NotConverted":
        return AppError("storage_failed", "the converted recording is damaged")
    return AppError("engine_crashed", what)


def _piece(message: dict[str, Any], number: int, engine: str) -> Piece:
    return Piece(
        number=number,
        start=message["start"],
        end=message["end"],
        engine=engine,
        language=message["language"],
        segments=tuple(Segment(**segment) for segment in message["segments"]),
    )


def _consecutive(pieces: Sequence[Piece]) -> list[Piece]:
    """The kept pieces up to the first gap: what follows one is recognized again."""
    whole: list[Piece] = []
    for piece in pieces:
        if piece.number != len(whole) or piece.start != (whole[-1].end if whole else 0):
            break
        whole.append(piece)
    return whole


def _result(pieces: Sequence[Piece]) -> Result:
    segments = tuple(segment for piece in pieces for segment in piece.segments)
    return Result(Transcript(readable(segments), segments), _main_language(pieces))


def _main_language(pieces: Sequence[Piece]) -> str | None:
    """The language of most of the speech; None when there is none."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for piece in pieces:
        if piece.language is not None:
            seconds[piece.language] += sum(s.end - s.start for s in piece.segments)
    return max(seconds, key=seconds.__getitem__, default=None)
