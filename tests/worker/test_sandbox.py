import os
import signal
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from worker.child import Child, ChildFailed
from worker.sandbox import describe

NOBODY = 65534


def messages(child: Child):
    return child.messages(timeout_seconds=30, stall_seconds=30, stopped=lambda: False)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that any user can reach, which tmp_path is not."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield Path(name)


@pytest.mark.parametrize(
    "user",
    [
        os.getuid(),
        pytest.param(
            NOBODY,
            marks=pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user"),
        ),
    ],
)
def test_cm19_a_confined_child_reaches_only_its_source_and_its_folder(
    open_folder: Path, user: int
) -> None:
    if not describe().files:
        pytest.skip("this kernel has no Landlock")
    source, folder, data = open_folder / "source", open_folder / "folder", open_folder / "data"
    source.write_bytes(b"sound")
    folder.mkdir()
    data.mkdir()
    (data / "secret").write_text("canary")
    for path in (open_folder, source, folder, data, data / "secret"):
        path.chmod(0o777)
    with socket.create_server(("127.0.0.1", 0)) as canary:
        canary.settimeout(0.2)
        port = canary.getsockname()[1]
        arguments = [str(source), str(folder), str(data), str(port), str(os.getpid()), str(user)]
        with Child.start("tests.worker.prisoners", arguments) as child:
            message = next(messages(child))
        with pytest.raises(TimeoutError):
            canary.accept()
    assert message["done"] == [True, True]
    assert message["succeeded"] == ["read source", "write in folder"]
    assert (data / "secret").read_text() == "canary"
    assert message["limits"] == {
        "AS": 2**30, "CPU": 60, "FSIZE": 2**20, "NOFILE": 64, "CORE": 0,
    }  # fmt: skip


def test_libraries_can_be_imported_inside() -> None:
    with Child.start("tests.worker.importers") as child:
        assert next(messages(child))["version"]


def test_a_process_with_threads_is_not_half_confined() -> None:
    with Child.start("tests.worker.importers", ["with a thread"]) as child:
        assert "threads" in next(messages(child))["refused"]


def test_a_child_that_burns_its_cpu_time_is_ended_by_the_kernel() -> None:
    with (
        pytest.raises(ChildFailed) as caught,
        Child.start("tests.worker.importers", ["burn"]) as child,
    ):
        next(messages(child))
    assert caught.value.exit_code == -signal.SIGXCPU
