"""Files that want the converter to read, hang, burn or write what it should not."""

import os
import random
import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import av
import pytest

from app.errors import KINDS, AppError
from tests.media import recordings
from tests.media.desk import run, settings
from tests.media.watch import opened_in
from tests.processes import children_of, is_running
from worker.media.converter import convert
from worker.work import Stopped

STANDIN = "tests.media.standin"
VERDICTS = {"not_media", "no_audio_track", "truncated", "no_audio_decoded", "playlist"}


@pytest.fixture
def canary() -> Iterator[socket.socket]:
    """A server that must never hear from the converter."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)
        yield server
        with pytest.raises(TimeoutError):
            server.accept()


def address(server: socket.socket) -> str:
    return f"http://127.0.0.1:{server.getsockname()[1]}/secret.wav"


@pytest.mark.parametrize("ending", [".mp3", ".ogg", ".m3u8", ""])
@pytest.mark.parametrize("kind", recordings.PLAYLISTS)
def test_cm19_a_playlist_reads_no_sibling_and_no_address(
    kind: str, ending: str, canary: socket.socket, tmp_path: Path
) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    recordings.wav(folder / "secret.wav")
    source = folder / f"list{ending}"
    recordings.PLAYLISTS[kind](source, "secret.wav", address(canary))
    with opened_in(folder) as opened, pytest.raises(AppError) as caught:
        run(source, tmp_path / "claim")
    assert caught.value.code == "playlist"
    assert caught.value.permanent
    assert opened == {source.name}


def test_cm19_the_attack_works_on_a_reader_without_our_rules(tmp_path: Path) -> None:
    recordings.wav(tmp_path / "secret.wav")
    recordings.ffconcat(tmp_path / "list.mp3", "secret.wav", "http://127.0.0.1:9/")
    with opened_in(tmp_path) as opened, av.open(str(tmp_path / "list.mp3")) as container:
        next(container.decode(audio=0))
    assert opened == {"list.mp3", "secret.wav"}


def test_cm19_a_playlist_behind_other_bytes_reads_nothing_either(
    canary: socket.socket, tmp_path: Path
) -> None:
    """What our own look at the first bytes misses, FFmpeg's whitelists catch."""
    recordings.wav(tmp_path / "secret.wav")
    source = tmp_path / "list.mp3"
    recordings.hls(source, "secret.wav", address(canary))
    source.write_text("\n \n" * 3000 + source.read_text())
    with opened_in(tmp_path) as opened, pytest.raises(AppError) as caught:
        run(source, tmp_path / "claim")
    assert caught.value.code in VERDICTS
    assert opened <= {"list.mp3", "claim"}


def test_cm19_a_container_off_the_list_is_not_read(tmp_path: Path) -> None:
    """FFmpeg knows hundreds; each that nobody sends would only be one more way in."""
    recordings.encode(tmp_path / "sound", "pcm_s16le", "nut")
    with pytest.raises(AppError) as caught:
        run(tmp_path / "sound", tmp_path / "claim")
    assert caught.value.code == "not_media"


def test_cm19_a_decoder_off_the_list_is_not_run(tmp_path: Path) -> None:
    recordings.encode(tmp_path / "sound", "pcm_s64le", "wav")
    with pytest.raises(AppError) as caught:
        run(tmp_path / "sound", tmp_path / "claim")
    assert caught.value.code == "not_media"


@pytest.mark.parametrize(
    "mode", ["sleep", "write_to_stderr_endlessly", "ignore_sigterm_and_start_another"]
)
def test_cm15_a_converter_without_progress_is_stopped_and_tried_again(
    mode: str, tmp_path: Path
) -> None:
    (tmp_path / "source").write_text(mode)
    started = time.monotonic()
    with pytest.raises(AppError) as caught:
        run(tmp_path / "source", tmp_path / "claim", settings(stall_timeout=1), converter=STANDIN)
    assert (caught.value.code, caught.value.permanent) == ("convert_timeout", False)
    assert time.monotonic() - started < 5


def test_cm15_a_converter_that_goes_on_for_ever_is_stopped_by_the_time_limit(
    tmp_path: Path,
) -> None:
    (tmp_path / "source").write_text("report_endlessly")
    limits = settings(convert_timeout=1)
    with pytest.raises(AppError) as caught:
        run(tmp_path / "source", tmp_path / "claim", limits, converter=STANDIN)
    assert (caught.value.code, caught.value.detail) == ("convert_timeout", "time limit")


@pytest.mark.parametrize(
    ("mode", "code"), [("crash", "convert_crashed"), ("burn_cpu", "unsafe_media")]
)
def test_cm19_a_crash_is_tried_again_and_a_limit_is_a_verdict(
    mode: str, code: str, tmp_path: Path
) -> None:
    (tmp_path / "source").write_text(mode)
    with pytest.raises(AppError) as caught:
        run(tmp_path / "source", tmp_path / "claim", converter=STANDIN)
    assert caught.value.code == code


def test_cm19_a_file_that_asks_for_much_memory_gets_a_verdict(tmp_path: Path) -> None:
    source = tmp_path / "greedy.wav"
    recordings.multitrack(source, 3)
    data = bytearray(source.read_bytes())
    data[24:28] = (0x7FFFFFFF).to_bytes(4, "little")  # samples a second
    source.write_bytes(data)
    with pytest.raises(AppError) as caught:
        run(source, tmp_path / "claim")
    assert (caught.value.code, caught.value.detail) == ("unsafe_media", "memory")


def test_p44_a_told_stop_ends_the_conversion_within_a_second(tmp_path: Path) -> None:
    (tmp_path / "source").write_text("report_endlessly")
    told = threading.Event()
    reported: list[float] = []

    def report(share: float) -> None:
        reported.append(time.monotonic())
        told.set()

    with pytest.raises(Stopped):
        run(
            tmp_path / "source",
            tmp_path / "claim",
            converter=STANDIN,
            report=report,
            stopped=told.is_set,
        )
    assert time.monotonic() - reported[0] < 1


def test_cm19_the_converter_itself_is_confined_while_it_decodes(tmp_path: Path) -> None:
    source = tmp_path / "long.wav"
    _long_wav(source, hours=5)
    before = children_of()
    seen: dict[str, str] = {}

    def report(share: float) -> None:
        (pid,) = children_of() - before
        for name in ("status", "limits", "environ", "cmdline"):
            seen[name] = Path(f"/proc/{pid}/{name}").read_text()
        seen["pid"] = str(pid)
        seen["threads"] = str(len(list(Path(f"/proc/{pid}/task").iterdir())))

    with pytest.raises(Stopped):
        run(source, tmp_path / "claim", report=report, stopped=lambda: bool(seen))
    assert not is_running(int(seen["pid"]))
    assert re.search(r"^NoNewPrivs:\s1$", seen["status"], re.M)
    assert re.search(r"^Seccomp:\s2$", seen["status"], re.M)
    assert re.search(rf"^Max address space\s+{2**30}\s", seen["limits"], re.M)
    assert re.search(r"^Max cpu time\s+3600\s", seen["limits"], re.M)
    assert re.search(r"^Max core file size\s+0\s", seen["limits"], re.M)
    assert {entry.split("=")[0] for entry in seen["environ"].split("\0") if entry} == {
        "PATH", "LANG", "HOME", "PYTHONPATH",
    }  # fmt: skip
    assert "long.wav" not in seen["cmdline"]
    assert seen["threads"] == "1"


@pytest.mark.parametrize("name", ["plain.flac", "live.webm"])
def test_p43_progress_rises_by_the_claimed_length_or_by_the_bytes_read(
    name: str, recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.media.converter._REPORT_SECONDS", 0)
    shares: list[float] = []
    source = os.open(recorded / name, os.O_RDONLY)
    target = os.open(tmp_path / "out.wav", os.O_WRONLY | os.O_CREAT)
    try:
        convert(source, target, 60, shares.append)
    finally:
        os.close(source)
        os.close(target)
    assert len(shares) == 6
    assert shares == sorted(shares)
    assert 0 < shares[0] < 0.3
    assert 0.8 < shares[-1] <= 0.99


BASES = ["voice.ogg", "plain.mp3", "moov_front.m4a", "live.webm", "adpcm.wav", "plain.flac"]


@pytest.mark.parametrize("seed", range(60))
def test_q26_a_mutated_recording_ends_in_a_wav_or_a_verdict(
    seed: int, recorded: Path, tmp_path: Path
) -> None:
    source = tmp_path / "mutated"
    source.write_bytes(_mutate((recorded / BASES[seed % len(BASES)]).read_bytes(), seed))
    with opened_in(tmp_path) as opened:
        try:
            result = run(source, tmp_path / "claim", settings(stall_timeout=20))
        except AppError as error:
            assert error.code in VERDICTS
            assert KINDS[error.code].permanent
        else:
            assert len(result.samples)
    assert opened <= {"mutated", "claim"}


def _mutate(data: bytes, seed: int) -> bytes:
    """A few of: flipped bytes, a stretch of zeros, a stretch twice, a stretch gone, the end cut."""
    dice = random.Random(seed)  # noqa: S311 - seeded: the same files each run
    changed = bytearray(data)
    for _ in range(dice.randint(1, 4)):
        # Half of the strokes hit the header, where a decoder believes most.
        start = dice.randrange(min(len(changed), 600) if dice.random() < 0.5 else len(changed))
        length = dice.randint(1, 2000)
        match dice.randrange(5):
            case 0:
                for _ in range(dice.randint(1, 60)):
                    changed[dice.randrange(len(changed))] = dice.randrange(256)
            case 1:
                changed[start : start + length] = bytes(len(changed[start : start + length]))
            case 2:
                changed[start:start] = changed[start : start + length]
            case 3:
                del changed[start : start + length]
            case _:
                del changed[max(200, start) :]
    return bytes(changed)


def _long_wav(path: Path, hours: int) -> None:
    """Hours of silence that take no room on the disk."""
    recordings.wav(path)
    size = hours * 3600 * 44100 * 2
    with path.open("r+b") as file:
        head = bytearray(file.read(200))
        at = head.index(b"data") + 4
        head[at : at + 4] = size.to_bytes(4, "little")
        file.seek(0)
        file.write(head)
        file.truncate(at + 4 + size)
