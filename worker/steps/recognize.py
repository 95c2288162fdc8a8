"""The recognize step: hands the converted recording to the recognizer."""

from app.queue.port import Started
from app.settings import Settings
from app.storage.port import Storage
from worker.recognizers.port import Audio, Recognizer
from worker.work import Work


class RecognizeStep:
    """Turns a converted job into one that waits for its recognition."""

    def __init__(self, settings: Settings, storage: Storage, recognizer: Recognizer) -> None:
        self._settings = settings
        self._storage = storage
        self._recognizer = recognizer

    def run(self, work: Work) -> Started:
        """Start the operation; the check step asks for its result."""
        operation_id = self._recognizer.start(audio_of(work, self._storage))
        return Started(
            recognition_op_id=operation_id,
            recognizer=self._recognizer.label,
            check_delay_seconds=self._recognizer.first_check_delay_seconds,
        )


def audio_of(work: Work, storage: Storage) -> Audio:
    """The job's converted recording, as a recognizer takes it."""
    return Audio(
        path=storage.local_path(work.file),
        duration_seconds=work.job.duration_seconds or 0.0,
        language=work.job.language,
    )
