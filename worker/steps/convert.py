"""The convert step: a recording of any kind becomes 16 kHz mono WAV, in a child process."""

import logging
import signal
from pathlib import Path

from app.errors import AppError
from app.queue.port import Converted
from app.settings import Settings
from app.storage.kinds import WAV
from app.storage.port import Storage
from worker.child import Child, ChildFailed, Reason
from worker.media.facts import Facts
from worker.work import Work

log = logging.getLogger(__name__)

CONVERTER = "worker.media.converter"
_LIMIT_SIGNALS = {-signal.SIGXCPU: "CPU time", -signal.SIGXFSZ: "file size"}


class ConvertStep:
    """Turns an accepted job into a converted one."""

    def __init__(self, settings: Settings, storage: Storage) -> None:
        self._settings = settings
        self._storage = storage

    def run(self, work: Work) -> Converted:
        """The converted copy; the verdicts on a recording are permanent AppErrors."""
        wav, facts = convert(work, self._storage.local_path(work.file), self._settings)
        log.debug(
            "converted",
            extra={"job_id": work.job.id, "container": facts.container, "codec": facts.codec},
        )
        return Converted(
            file=self._storage.adopt(wav, WAV.extension, WAV.media_type),
            duration_seconds=facts.seconds,
            source_is_playable=facts.is_playable,
        )


def convert(
    work: Work, source: Path, settings: Settings, converter: str = CONVERTER
) -> tuple[Path, Facts]:
    """Convert a recording into a WAV file in the claim's folder.

    converter is the child's module. AppError: the converter's verdict, convert_timeout,
    convert_crashed; Stopped when the claim is over.
    """
    target = work.folder / "converted.wav"
    limits = settings.worker
    with Child.start(converter) as child:
        try:
            # By a message, not by an argument: anybody can see arguments, and the stored name
            # gives the right to read the file (S10).
            child.send(
                {
                    "source": str(source.resolve()),
                    "target": str(target.resolve()),
                    "max_seconds": settings.intake.max_duration,
                    # Half the wall time: a file made to burn time gets a verdict, not retries.
                    "cpu_seconds": max(1, int(limits.convert_timeout / 2)),
                }
            )
            for message in child.messages(
                timeout_seconds=limits.convert_timeout,
                stall_seconds=limits.stall_timeout,
                stopped=work.stopped,
            ):
                if "facts" in message:
                    return target, Facts(**message["facts"])
                if "code" in message:
                    raise AppError(message["code"], message["detail"])
                if "progress" in message:
                    work.report(message["progress"])
        except ChildFailed as failure:
            error = _error_of(failure)
    raise error


def _error_of(failure: ChildFailed) -> AppError:
    if failure.exit_code in _LIMIT_SIGNALS:
        return AppError("unsafe_media", _LIMIT_SIGNALS[failure.exit_code])
    if failure.reason is Reason.GONE:
        return AppError("convert_crashed", f"exit={failure.exit_code}")
    what = "time limit" if failure.reason is Reason.LATE else "no progress"
    return AppError("convert_timeout", what)
