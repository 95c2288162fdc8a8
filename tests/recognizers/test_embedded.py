"""The warm child and the pieces, with a small real model: English only, a fifth of the time."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic

import numpy as np
import pytest

from app.errors import AppError
from tests.processes import children_of, wait_until
from tests.recognizers.desk import Desk, settings_for, tiny_english_model
from tests.speech import DATA, Samples, reference, samples, silence, word_error_rate
from worker.recognizers.embedded import EmbeddedRecognizer
from worker.recognizers.port import Refused
from worker.work import Stopped

pytestmark = pytest.mark.engine

PIECE_SECONDS = 30
Make = Callable[..., EmbeddedRecognizer]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Makes a recognizer; whatever happens, no child of it is left afterwards."""
    before = children_of()
    made: list[EmbeddedRecognizer] = []

    def make_one(**recognizer: object) -> EmbeddedRecognizer:
        chosen = {"model_dir": tiny_english_model(), "piece_seconds": PIECE_SECONDS, **recognizer}
        made.append(EmbeddedRecognizer(settings_for(tmp_path / "service", **chosen)))
        return made[-1]

    yield make_one
    for recognizer in made:
        recognizer.close()
    assert children_of() <= before


def english(times: int) -> Samples:
    return np.concatenate([samples(DATA / "english.flac"), silence(1.5)] * times)


def phrases(times: int) -> Samples:
    """Two sentences for each piece, and silence, which costs nothing."""
    return np.concatenate([samples(DATA / "english-phone.wav"), silence(20)] * times)


def the_child(before: set[int]) -> int:
    (pid,) = children_of() - before
    return pid


def test_p41_cm17_after_kill_9_in_a_piece_it_goes_on_from_the_last_kept_one(
    make: Make, tmp_path: Path
) -> None:
    sound = phrases(4)
    at_once = Desk.with_sound(make(), tmp_path, sound)
    whole = at_once.recognize()
    assert len(at_once.kept) >= 4

    before = children_of()
    desk = Desk.with_sound(make(), tmp_path, sound)

    def kill_in_the_third_piece() -> None:
        if len(desk.kept) == 2:
            os.kill(the_child(before), signal.SIGKILL)

    desk.on_keep = kill_in_the_third_piece
    with pytest.raises(AppError) as caught:
        desk.recognize()
    assert (caught.value.code, caught.value.detail) == ("engine_crashed", "ended by SIGKILL")
    assert not caught.value.permanent
    assert children_of() == before
    assert len(desk.kept) == 2

    kept = list(desk.kept)
    desk.on_keep = lambda: None
    assert desk.recognize() == whole
    assert desk.kept[:2] == kept
    assert desk.kept == at_once.kept


def test_a_recording_whose_pieces_are_all_kept_is_not_recognized_again(
    make: Make, tmp_path: Path
) -> None:
    desk = Desk.with_sound(make(), tmp_path, english(1))
    whole = desk.recognize()
    kept = list(desk.kept)
    assert desk.recognize() == whole
    assert desk.kept == kept


def test_pieces_of_another_language_or_with_a_gap_are_not_taken_up(
    make: Make, tmp_path: Path
) -> None:
    recognizer = make()
    desk = Desk.with_sound(recognizer, tmp_path, phrases(3))
    whole = desk.recognize()
    pieces = list(desk.kept)
    del desk.kept[1]
    assert desk.recognize() == whole
    assert desk.kept[-len(pieces) + 1 :] == pieces[1:]

    chosen = Desk.with_sound(recognizer, tmp_path, phrases(3), language="en")
    chosen.kept = list(pieces)
    chosen.recognize()
    assert len(chosen.kept) == 2 * len(pieces)


def test_p44_p48_told_to_stop_it_ends_within_a_second_and_leaves_no_process(
    make: Make, tmp_path: Path
) -> None:
    before = children_of()
    desk = Desk.with_sound(make(), tmp_path, english(6))
    asked: list[float] = []

    def is_stopped() -> bool:
        if desk.kept:
            asked.append(monotonic())
        return bool(desk.kept)

    desk.is_stopped = is_stopped
    with pytest.raises(Stopped):
        desk.recognize()
    assert monotonic() - asked[0] < 1
    assert children_of() == before
    assert len(desk.kept) == 1


def test_a_child_without_a_sign_of_life_is_given_up(make: Make, tmp_path: Path) -> None:
    before = children_of()
    desk = Desk.with_sound(make(piece_timeout=1), tmp_path, english(6))
    desk.on_keep = lambda: os.kill(the_child(before), signal.SIGSTOP)
    with pytest.raises(AppError) as caught:
        desk.recognize()
    assert caught.value.code == "engine_silent"
    assert children_of() == before


def test_the_child_stays_warm_and_one_that_died_meanwhile_is_replaced(
    make: Make, tmp_path: Path
) -> None:
    before = children_of()
    desk = Desk.with_sound(make(), tmp_path, samples(DATA / "english-short.mp3"))
    desk.recognize()
    first = the_child(before)
    desk.kept.clear()
    desk.recognize()
    assert the_child(before) == first

    os.kill(first, signal.SIGKILL)
    os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
    desk.kept.clear()
    desk.recognize()
    assert the_child(before) != first


def test_an_idle_child_ends_and_frees_its_memory(make: Make, tmp_path: Path) -> None:
    before = children_of()
    desk = Desk.with_sound(make(idle_unload=0.3), tmp_path, silence(1))
    desk.recognize()
    wait_until(lambda: children_of() == before, what="the idle child is gone")
    desk.kept.clear()
    assert desk.recognize().transcript.text == ""


def test_closing_the_recognizer_ends_its_child(make: Make, tmp_path: Path) -> None:
    before = children_of()
    recognizer = make(idle_unload=0)
    Desk.with_sound(recognizer, tmp_path, silence(1)).recognize()
    assert len(children_of() - before) == 1
    recognizer.close()
    assert children_of() == before


def test_the_kernel_would_end_the_child_rather_than_the_worker(make: Make, tmp_path: Path) -> None:
    before = children_of()
    Desk.with_sound(make(), tmp_path, silence(1)).recognize()
    process = Path("/proc") / str(the_child(before))
    assert (process / "oom_score_adj").read_text() == "1000\n"
    limits = (process / "limits").read_text()
    assert "Max core file size        0 " in limits
    assert "Max file size             0 " in limits
    environment = (process / "environ").read_bytes().split(b"\0")
    assert b"HF_HUB_OFFLINE=1" in environment


def test_a_language_that_the_model_does_not_know_is_refused(make: Make, tmp_path: Path) -> None:
    desk = Desk.with_sound(make(), tmp_path, silence(1), language="ru")
    answer = desk.recognizer.poll("embedded:any", desk.audio, desk.work())
    assert isinstance(answer, Refused)
    assert answer.error.code == "unknown_language"


def test_a_broken_model_is_an_engine_that_cannot_be_started(make: Make, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(tiny_english_model(), broken)
    with (broken / "model.bin").open("r+b") as file:
        file.truncate(1_000_000)
    before = children_of()
    with pytest.raises(AppError) as caught:
        Desk.with_sound(make(model_dir=broken), tmp_path, silence(1)).recognize()
    assert caught.value.code == "engine_unavailable"
    assert str(tmp_path) not in caught.value.detail
    assert children_of() == before


def test_a_model_that_is_put_in_place_later_is_found(make: Make, tmp_path: Path) -> None:
    later = tmp_path / "later"
    recognizer = make(model_dir=later)
    desk = Desk.with_sound(recognizer, tmp_path, silence(1))
    with pytest.raises(AppError) as caught:
        desk.recognize()
    assert caught.value.code == "engine_unavailable"
    shutil.copytree(tiny_english_model(), later)
    assert desk.recognize().transcript.text == ""
    assert recognizer.label == "later"


def test_a_converted_recording_that_is_damaged_is_a_fault_of_the_storage(
    make: Make, tmp_path: Path
) -> None:
    desk = Desk.with_sound(make(), tmp_path, silence(1))
    desk.audio.path.write_bytes(b"RIFF")
    with pytest.raises(AppError) as caught:
        desk.recognize()
    assert caught.value.code == "storage_failed"


ALONE = """
import sys
from pathlib import Path
from tests.recognizers.desk import Desk, settings_for, tiny_english_model
from tests.speech import DATA, samples
from worker.recognizers.embedded import EmbeddedRecognizer

folder = Path(sys.argv[1])
recognizer = EmbeddedRecognizer(settings_for(folder / "service", model_dir=tiny_english_model()))
result = Desk.with_sound(recognizer, folder, samples(DATA / "english.flac")).recognize()
recognizer.close()
sys.stdout.write(result.transcript.text)
"""


def test_it_needs_no_network_and_no_home(tmp_path: Path) -> None:
    without_network = ["unshare", "--map-root-user", "--net"]
    if not shutil.which("unshare") or subprocess.run([*without_network, "true"]).returncode:
        pytest.skip("this machine gives no network namespace: unshare --map-root-user --net")
    done = subprocess.run(
        [*without_network, sys.executable, "-c", ALONE, str(tmp_path)],
        env={"HOME": "/nonexistent", "PATH": os.defpath, "LANG": "C.UTF-8"},
        cwd=DATA.parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert word_error_rate(reference("english"), done.stdout, "en") <= 0.10
