"""The check step: asks the recognizer for the result; a local engine works inside that call."""

from app.queue.port import Recognized
from app.settings import Settings
from app.storage.port import Storage
from worker.recognizers.port import Audio, Pending, Recognizer, Refused
from worker.steps.recognize import audio_of, begin
from worker.work import Snooze, Work


class CheckStep:
    """Turns a job that waits for its recognition into a finished one."""

    def __init__(self, settings: Settings, storage: Storage, recognizer: Recognizer) -> None:
        self._settings = settings
        self._storage = storage
        self._recognizer = recognizer

    def run(self, work: Work) -> Recognized | Snooze:
        """The text; Snooze while an operation elsewhere still runs; the engine's verdict raised."""
        audio = audio_of(work, self._storage)
        answer = self._recognizer.poll(self._operation_id(work, audio), audio, work)
        if isinstance(answer, Pending):
            return Snooze(answer.delay_seconds)
        if isinstance(answer, Refused):
            raise answer.error
        return Recognized(answer.transcript, answer.language)

    def _operation_id(self, work: Work, audio: Audio) -> str:
        # A job without one can only start anew; that loses nothing.
        return work.job.recognition_op_id or begin(work, self._recognizer, audio)
