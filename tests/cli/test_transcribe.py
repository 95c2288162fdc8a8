"""`pisar transcribe` on real speech, with the tiny English engine."""

import json
import os
import pty
import signal
import subprocess
from pathlib import Path

import pytest

from app import liveness
from app.assembly import opened
from app.job import State
from app.queue.port import JobFilter
from app.settings import load
from tests.cli.console import PISAR, Console
from tests.processes import children_of, is_running, wait_until
from tests.speech import long_speech, write_wav

DATA = Path(__file__).parent.parent / "data"
SPEECH = DATA / "english-short.mp3"

pytestmark = pytest.mark.engine


def test_the_text_goes_to_standard_output(console: Console) -> None:
    answer = console.run("transcribe", str(SPEECH))
    assert answer.code == 0, answer.err
    assert "young man" in answer.out
    # Plain lines where there is no terminal, each stage once.
    assert f"{SPEECH.name}: done" in answer.err.splitlines()
    assert "\r" not in answer.err
    assert liveness.workers_alive(console.data_dir) == 0, "its own worker ends with it"


def test_texts_go_into_files_named_after_the_recordings(console: Console) -> None:
    twin = console.folder / "english-short.wav.mp3"
    twin.write_bytes(SPEECH.read_bytes())
    answer = console.run("transcribe", "--format", "srt", "-o", "texts", str(SPEECH), str(twin))
    assert (answer.code, answer.out) == (0, "")
    texts = console.folder / "texts"
    assert {path.name for path in texts.iterdir()} == {"english-short.srt", "english-short.wav.srt"}
    assert (texts / "english-short.srt").read_text().startswith("1\n00:00:0")


def test_a_recording_that_gives_no_text_is_named_with_its_reason(console: Console) -> None:
    text = console.folder / "notes.txt"
    text.write_text("no sound at all\n" * 100)
    empty = console.folder / "empty.mp3"
    empty.touch()
    answer = console.run("transcribe", str(text), str(empty), str(SPEECH), "--format", "json")
    assert answer.code == 1
    assert f"{empty}: The file is empty." in answer.err
    assert f"{text}: This is not a sound or video file" in answer.err
    assert "young man" in json.loads(answer.out)["text"], "the others are done all the same"


def test_a_language_nobody_knows_stops_before_anything_is_handed_in(console: Console) -> None:
    answer = console.run("transcribe", "--language", "klingon", str(SPEECH))
    assert answer.code == 2, "the command line is wrong, not the recording"
    assert "'--language': The speech engine does not know this language." in answer.err
    assert console.run("jobs", "--json").out == "[]\n"


def test_on_a_terminal_there_is_a_bar(console: Console) -> None:
    leader, follower = pty.openpty()
    command = subprocess.Popen(
        [*PISAR, "transcribe", str(SPEECH)],
        cwd=console.folder,
        env=console.environ | {"TERM": "xterm"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=follower,
    )
    os.close(follower)
    shown = read_to_the_end(leader)
    assert command.wait(30) == 0
    assert b"100%" in shown
    assert b"\r" in shown
    assert SPEECH.name.encode() in shown


def read_to_the_end(terminal: int) -> bytes:
    shown = b""
    with os.fdopen(terminal, "rb", buffering=0) as file:
        try:
            while block := file.read(65536):
                shown += block
        except OSError:
            pass  # Linux says EIO when the other end has gone.
    return shown


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_wait_leaves_the_job_in_the_queue_and_no_process(
    console: Console, number: int
) -> None:
    # No time to end the step in: the claim must be given back.
    environ = {"PISAR_SERVER__SHUTDOWN_TIMEOUT": "0.1"}
    talk = write_wav(console.folder / "talk.wav", long_speech(240))
    command = console.start("transcribe", str(talk), **environ)
    wait_until(lambda: "talk.wav: recognizing" in console.err(), 60, console.err())
    children = children_of(command.pid)
    assert children
    command.send_signal(number)
    command.wait(30)
    wait_until(lambda: not any(is_running(child) for child in children), 30, "no child is left")
    with opened(load(console.environ), liveness.COMMAND) as house:
        (job,) = house.queue.page(JobFilter(), before=None, limit=2).jobs
        assert job.state.is_active
        if number == signal.SIGINT:
            assert command.returncode == 130
            assert f"Still in the queue: {job.id}" in console.err()
            assert job.acquisition_id is None, "its worker gave the claim back in order"
    worker = console.start("worker")
    try:
        with opened(load(console.environ), liveness.COMMAND) as house:
            wait_until(lambda: house.queue.get(job.id).state is State.DONE, 120, console.err())
    finally:
        worker.terminate()
        worker.wait(30)


def test_a_worker_that_runs_already_does_the_work(console: Console) -> None:
    worker = console.start("worker")
    try:
        wait_until(lambda: liveness.workers_alive(console.data_dir) == 1, 30)
        answer = console.run("transcribe", str(SPEECH))
        assert answer.code == 0
        assert liveness.workers_alive(console.data_dir) == 1, "it goes on afterwards"
    finally:
        worker.terminate()
        worker.wait(30)


def test_a_worker_that_cannot_run_ends_the_wait(console: Console) -> None:
    environ = {"PISAR_RECOGNIZER__MODEL_DIR": str(console.folder / "nowhere")}
    answer = console.run("check", environ=environ)
    assert answer.code == 1
    assert "broken  recognizer" in answer.out
