"""The recognize step: hands the converted recording to the recognizer."""

from app.clock import new_token
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
        operation_id = begin(work, self._recognizer, audio_of(work, self._storage))
        return Started(
            recognition_op_id=operation_id,
            recognizer=self._recognizer.label,
            check_delay_seconds=self._recognizer.first_check_delay_seconds,
        )


def begin(work: Work, recognizer: Recognizer, audio: Audio) -> str:
    """The id of the job's operation: of the one that was begun already, or of a new one.

    The intent is stored before the engine is asked. A worker that ends between the engine's
    answer and the stored id leaves it behind, and the next one does not pay a second time.
    """
    intent = work.job.recognition_intent
    if intent is not None and (found := recognizer.find(intent)) is not None:
        return found
    if intent is None:
        intent = new_token()
        work.intend(intent)
    return recognizer.start(audio, intent)


def audio_of(work: Work, storage: Storage) -> Audio:
    """The job's converted recording, as a recognizer takes it."""
    return Audio(
        path=storage.local_path(work.file),
        duration_seconds=work.job.duration_seconds or 0.0,
        language=work.job.language,
    )
