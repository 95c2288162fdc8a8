"""From the converted recording to the text, through the real queue and storage."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from app.errors import AppError
from app.job import Job, Segment, State, StoredFile, Transcript
from app.migrate import open_database
from app.queue.port import Claim, Converted, Recognized, Started
from app.queue.sqlite import SqliteQueue
from app.settings import Settings
from app.storage.kinds import WAV
from app.storage.local import LocalStorage
from tests.queue.hands import START, hand_in, held
from tests.recognizers.desk import settings_for, tiny_english_model
from tests.speech import DATA, RATE_HZ, reference, samples, word_error_rate, write_wav
from worker.recognizers.embedded import EmbeddedRecognizer
from worker.recognizers.port import Audio, Pending, Recognizer, Refused, Result
from worker.steps.check import CheckStep
from worker.steps.recognize import RecognizeStep
from worker.work import Snooze, Work

SOUND = samples(DATA / "english-phone.wav")


class FarAway:
    """A recognizer elsewhere that gives the answers it is told to."""

    name = "far"
    label = "Far away"
    lease_seconds = 3600.0
    first_check_delay_seconds = 10.0
    languages: Sequence[str] = ("en",)

    def __init__(self, *answers: Pending | Result | Refused) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, Audio]] = []

    def find(self, intent: str) -> str | None:
        return None

    def start(self, audio: Audio, intent: str) -> str:
        return "operation-7"

    def poll(self, operation_id: str, audio: Audio, work: Work) -> Pending | Result | Refused:
        self.asked.append((operation_id, audio))
        return self.answers.pop(0)

    def close(self) -> None:
        pass


class Bench:
    """One converted job in a queue, and the two steps that are left for it."""

    def __init__(self, folder: Path, settings: Settings, recognizer: Recognizer) -> None:
        self.folder = folder
        self.database = open_database(folder, START)
        self.queue = SqliteQueue(self.database)
        storage = LocalStorage(folder, folder)
        self.recognize = RecognizeStep(settings, storage, recognizer)
        self.check = CheckStep(settings, storage, recognizer)
        self.file = storage.adopt(write_wav(folder / "a.wav", SOUND), WAV.extension, WAV.media_type)
        hand_in(self.queue, language="en")
        seconds = len(SOUND) / RATE_HZ
        self.queue.finish(held(self.queue), Converted(self.file, seconds, False), START)

    def work(self, claim: Claim) -> Work:
        queue = self.queue
        return Work(
            job=claim.job,
            file=queue.file(claim.job.file),
            folder=self.folder,
            report=lambda progress: None,
            keep=lambda piece, progress: queue.save_piece(claim, piece, progress, START) or None,
            pieces=lambda engine: queue.pieces(claim.job.id, engine),
            intend=lambda intent: queue.intend(claim, intent, START) or None,
            stopped=lambda: False,
        )

    def started(self) -> tuple[Started, Claim]:
        claim = held(self.queue, State.CONVERTED)
        result = self.recognize.run(self.work(claim))
        self.queue.finish(claim, replace(result, check_delay_seconds=0), START)
        return result, held(self.queue, State.TRANSCRIBE)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    recognizer = EmbeddedRecognizer(settings_for(tmp_path, model_dir=tiny_english_model()))
    bench = Bench(tmp_path, settings_for(tmp_path), recognizer)
    yield bench
    recognizer.close()
    bench.database.close()


def far_away(folder: Path, *answers: Pending | Result | Refused) -> tuple[FarAway, Bench]:
    recognizer = FarAway(*answers)
    return recognizer, Bench(folder, settings_for(folder), recognizer)


@pytest.mark.engine
def test_a_converted_recording_becomes_the_text_of_its_job(bench: Bench) -> None:
    started, claim = bench.started()
    assert started.recognizer == "model"
    result = bench.check.run(bench.work(claim))
    assert isinstance(result, Recognized)
    said = " ".join(reference("english").splitlines()[1:3])
    assert word_error_rate(said, result.transcript.text, "en") <= 0.10
    assert bench.queue.finish(claim, result, START)
    job: Job = bench.queue.get(claim.job.id)
    assert (job.state, job.detected_language) == (State.DONE, "en")


@pytest.mark.engine
def test_a_data_folder_named_relatively_serves_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    here = Path("data")
    here.mkdir()
    recognizer = EmbeddedRecognizer(settings_for(here, model_dir=tiny_english_model()))
    bench = Bench(here, settings_for(here), recognizer)
    try:
        result = bench.check.run(bench.work(bench.started()[1]))
        assert isinstance(result, Recognized)
        assert result.transcript.text
    finally:
        recognizer.close()
        bench.database.close()


def test_p21_an_operation_that_still_runs_is_asked_for_again_after_its_own_delay(
    tmp_path: Path,
) -> None:
    text = Transcript("Good.", (Segment(0, 1, "Good."),))
    recognizer, bench = far_away(tmp_path, Pending(5), Result(text, "en"))
    started, claim = bench.started()
    assert started == Started("operation-7", "Far away", 10.0)
    assert bench.check.run(bench.work(claim)) == Snooze(5)
    assert bench.check.run(bench.work(claim)) == Recognized(text, "en")
    operation_id, audio = recognizer.asked[0]
    assert operation_id == "operation-7"
    assert audio.path.read_bytes()[:4] == b"RIFF"
    assert (audio.duration_seconds, audio.language) == (len(SOUND) / RATE_HZ, "en")
    bench.database.close()


def test_p17_the_engines_verdict_is_raised_for_good(tmp_path: Path) -> None:
    _, bench = far_away(tmp_path, Refused(AppError("recognizer_refused")))
    _, claim = bench.started()
    with pytest.raises(AppError) as caught:
        bench.check.run(bench.work(claim))
    assert (caught.value.code, caught.value.permanent) == ("recognizer_refused", True)
    bench.database.close()


def test_a_job_without_an_operation_starts_one(tmp_path: Path) -> None:
    recognizer, bench = far_away(tmp_path, Pending(5))
    _, claim = bench.started()
    orphan = replace(claim, job=replace(claim.job, recognition_op_id=None))
    assert bench.check.run(bench.work(orphan)) == Snooze(5)
    assert recognizer.asked[0][0] == "operation-7"
    bench.database.close()


def test_a_recording_that_is_gone_cannot_be_recognized(tmp_path: Path) -> None:
    _, bench = far_away(tmp_path)
    claim = held(bench.queue, State.CONVERTED)
    file: StoredFile = bench.queue.file(claim.job.file)
    LocalStorage(tmp_path, tmp_path).delete(file)
    with pytest.raises(AppError) as caught:
        bench.recognize.run(bench.work(claim))
    assert caught.value.code == "source_missing"
    bench.database.close()
