import ctypes
import errno
import hashlib
import io
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import AppError
from app.job import StoredFile
from app.storage import kinds
from app.storage.kinds import HEAD_BYTES, KINDS, UNKNOWN, sniff
from app.storage.local import LocalDraft, LocalStorage

OGG = b"OggS" + bytes(60)
LIMIT = 1 << 20
_MNT_DETACH = 2


@pytest.fixture
def scratch(data_dir: Path) -> Path:
    folder = data_dir / "tmp" / "me"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def storage(data_dir: Path, scratch: Path) -> LocalStorage:
    return LocalStorage(data_dir, scratch)


def received(storage: LocalStorage, data: bytes = OGG) -> LocalDraft:
    draft = storage.draft(LIMIT)
    draft.write(data)
    return draft


def stored(storage: LocalStorage, data: bytes = OGG) -> StoredFile:
    return storage.keep(received(storage, data))


def content(storage: LocalStorage, file: StoredFile) -> bytes:
    with storage.open(file) as stream:
        return stream.read()


def files_under(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_s11_a_file_lies_under_its_collection_record_and_name(
    storage: LocalStorage, data_dir: Path
) -> None:
    file = stored(storage, OGG * 1000)
    path = data_dir / "storage" / "files" / file.id / file.file
    assert path.read_bytes() == OGG * 1000
    assert storage.local_path(file) == path
    assert path.stat().st_mode & 0o777 == 0o600
    assert (file.size, file.location, file.object_key) == (64_000, "local", "")
    assert file.sha256 == hashlib.sha256(OGG * 1000).hexdigest()


def test_s04_a_stored_name_is_a_random_uuid_and_an_extension_of_the_closed_list(
    storage: LocalStorage,
) -> None:
    names = [stored(storage).file for _ in range(20)]
    form = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\.ogg"
    assert all(re.fullmatch(form, name) for name in names)
    assert len(set(names)) == 20


@pytest.mark.parametrize(
    ("head", "extension"),
    [
        (b"OggS", ".ogg"),
        (b"ID3\x04", ".mp3"),
        (b"\xff\xfb\x90\x00", ".mp3"),
        (b"\xff\xf1\x50\x80", ".aac"),
        (b"fLaC", ".flac"),
        (b"RIFF\x00\x00\x00\x00WAVEfmt ", ".wav"),
        (b"RF64\xff\xff\xff\xffWAVE", ".wav"),
        (b"RIFF\x00\x00\x00\x00AVI LIST", ".avi"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", ".bin"),
        (b"FORM\x00\x00\x00\x00AIFF", ".aiff"),
        (b"\x1a\x45\xdf\xa3", ".webm"),
        (b"\x00\x00\x00\x20ftypM4A ", ".m4a"),
        (b"\x00\x00\x00\x20ftypisom", ".mp4"),
        (b"\x00\x00\x00\x14ftypqt  ", ".mov"),
        (b"\x00\x00\x00\x18ftyp3gp4", ".3gp"),
        (b"\x00\x00\x00\x08moov", ".mov"),
        (b"#!AMR\n", ".amr"),
        (b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", ".wma"),
        (b"<html><script>", ".bin"),
        (b"#EXTM3U\nfile:///etc/passwd", ".bin"),
        (b"%PDF-1.7", ".bin"),
        (b"\xff", ".bin"),
        (b"R", ".bin"),
    ],
)
def test_s04_the_extension_is_what_the_bytes_are(head: bytes, extension: str) -> None:
    assert sniff(head).extension == extension


@given(st.binary(max_size=HEAD_BYTES))
def test_s04_whatever_the_bytes_the_kind_is_of_the_closed_list(head: bytes) -> None:
    assert sniff(head) in KINDS


def test_s04_nothing_of_the_closed_list_is_served_as_a_page() -> None:
    served = {kind.media_type.split("/")[0] for kind in KINDS - {UNKNOWN}}
    assert served == {"audio", "video"}
    assert kinds.UNKNOWN.media_type == "application/octet-stream"
    assert all(re.fullmatch(r"\.[a-z0-9]{2,4}", kind.extension) for kind in KINDS)


def test_the_head_is_gathered_however_small_the_parts(storage: LocalStorage) -> None:
    draft = storage.draft(LIMIT)
    for byte in b"RIFF\x00\x00\x00\x00WAVE" + bytes(100):
        assert draft.write(bytes([byte])) == 1
    file = storage.keep(draft)
    assert (file.file[-4:], file.size) == (".wav", 112)


def test_a_draft_takes_its_limit_and_not_a_byte_more(storage: LocalStorage) -> None:
    draft = storage.draft(10)
    draft.write(b"123456789")
    with pytest.raises(AppError) as refused:
        draft.write(b"01")
    assert refused.value.code == "too_large"
    draft.write(b"0")
    assert draft.size == 10
    draft.discard()


def test_an_empty_draft_is_refused_and_leaves_nothing(
    storage: LocalStorage, data_dir: Path
) -> None:
    before = files_under(data_dir)
    with pytest.raises(AppError) as refused:
        storage.keep(storage.draft(LIMIT))
    assert refused.value.code == "empty_file"
    assert files_under(data_dir) == before


def test_a_discarded_draft_leaves_nothing_and_discarding_again_is_harmless(
    storage: LocalStorage, data_dir: Path
) -> None:
    before = files_under(data_dir)
    draft = received(storage)
    draft.discard()
    draft.discard()
    assert files_under(data_dir) == before


def test_a_draft_that_is_kept_stays_when_it_is_discarded_afterwards(storage: LocalStorage) -> None:
    draft = received(storage)
    file = storage.keep(draft)
    draft.discard()
    assert storage.exists(file)


def test_a_kept_draft_is_moved_not_copied(storage: LocalStorage, scratch: Path) -> None:
    draft = received(storage)
    inode = draft.path.stat().st_ino
    file = storage.keep(draft)
    assert storage.local_path(file).stat().st_ino == inode
    assert not list(scratch.iterdir())


def test_adopting_moves_a_finished_file_in(storage: LocalStorage, scratch: Path) -> None:
    path = scratch / "result.wav"
    path.write_bytes(b"RIFF")
    file = storage.adopt(path, ".wav", "audio/wav")
    assert not path.exists()
    assert content(storage, file) == b"RIFF"
    assert (file.size, file.media_type, file.file[-4:]) == (4, "audio/wav", ".wav")
    assert storage.local_path(file).stat().st_mode & 0o777 == 0o600


def test_a_copy_shares_the_bytes_and_outlives_the_first(
    storage: LocalStorage, scratch: Path
) -> None:
    first = stored(storage)
    second = storage.copy(first)
    assert (second.sha256, second.size, second.media_type) == (
        first.sha256,
        first.size,
        first.media_type,
    )
    assert second.id != first.id and second.file != first.file
    assert storage.local_path(second).samefile(storage.local_path(first))
    storage.delete(first)
    assert not storage.exists(first)
    assert content(storage, second) == OGG
    assert not list(scratch.iterdir())


def test_a_disk_without_hard_links_gets_a_real_copy(
    storage: LocalStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_link(*_: Any) -> None:
        raise OSError(errno.EPERM, "no links here")

    first = stored(storage)
    monkeypatch.setattr(os, "link", no_link)
    second = storage.copy(first)
    assert not storage.local_path(second).samefile(storage.local_path(first))
    assert content(storage, second) == OGG


def test_deleting_takes_the_record_and_its_folder_alone(
    storage: LocalStorage, data_dir: Path
) -> None:
    one, other = stored(storage), stored(storage)
    storage.delete(one)
    storage.delete(one)
    assert files_under(data_dir / "storage" / "files") == {other.id, f"{other.id}/{other.file}"}


@pytest.mark.parametrize(
    "changes",
    [
        {"file": "", "location": "s3", "object_key": "files/key"},
        {"id": ""},
        {"id": ".."},
        {"id": "../../outside00"},
        {"file": ".."},
        {"file": "../../../outside"},
        {"file": "/etc/passwd"},
        {"file": "a/b.ogg"},
    ],
)
def test_cu13_only_names_of_our_own_making_become_paths(
    storage: LocalStorage, data_dir: Path, changes: dict[str, str]
) -> None:
    file = stored(storage)
    (data_dir / "outside").write_text("not ours")
    before = files_under(data_dir)
    strange = replace(file, **changes)  # type: ignore[arg-type]
    assert not storage.exists(strange)
    for use in (storage.open, storage.local_path, storage.copy):
        with pytest.raises(AppError) as refused:
            use(strange)
        assert refused.value.code == "source_missing"
    storage.delete(strange)
    assert files_under(data_dir) == before


def failing(*wanted: int) -> Callable[..., Any]:
    """A call of the system that fails as it does, with the path in its error."""

    def fail(path: Any, *_: Any, **__: Any) -> Any:
        raise OSError(wanted[0], "the path is secret", str(path))

    return fail


def assert_silent(error: AppError, *secrets: str) -> None:
    """S12: what is raised carries neither names nor the system's own error."""
    assert error.__cause__ is None
    assert error.__context__ is None
    told = f"{error} {error.detail} {error.args} {error!r}"
    assert not [secret for secret in (*secrets, "secret", "/") if secret in told]


def test_s12_a_missing_file_is_told_by_its_record(storage: LocalStorage) -> None:
    file = stored(storage)
    storage.local_path(file).unlink()
    for use in (storage.open, storage.local_path, storage.copy):
        with pytest.raises(AppError) as missing:
            use(file)
        assert missing.value.code == "source_missing"
        assert file.id in missing.value.detail
        assert_silent(missing.value, file.file)


@pytest.mark.parametrize("call", ["chmod", "rename", "mkdir"])
def test_s12_a_move_that_fails_says_no_name_and_leaves_nothing(
    storage: LocalStorage, data_dir: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    stored(storage)
    before = files_under(data_dir)
    draft = received(storage)
    with monkeypatch.context() as patch, pytest.raises(AppError) as failed:
        patch.setattr(Path, call, failing(errno.EACCES))
        storage.keep(draft)
    draft.discard()
    assert failed.value.code == "storage_failed"
    assert re.fullmatch(r"file record [a-z0-9]{15}: EACCES", failed.value.detail)
    assert_silent(failed.value, draft.path.name)
    assert files_under(data_dir) == before


def test_s12_a_full_disk_at_any_sync_says_so_and_leaves_nothing(
    storage: LocalStorage, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = stored(storage)
    before = files_under(data_dir)
    real = os.fsync
    for good_ones in range(3):
        synced: list[int] = []

        def sync(descriptor: int, synced: list[int] = synced, good_ones: int = good_ones) -> None:
            synced.append(descriptor)
            if len(synced) > good_ones:
                raise OSError(errno.ENOSPC, "the path is secret", "/secret")
            real(descriptor)

        draft = received(storage)
        for use in (partial(storage.keep, draft), partial(storage.copy, first)):
            with monkeypatch.context() as patch, pytest.raises(AppError) as full:
                patch.setattr(os, "fsync", sync)
                synced.clear()
                use()
            draft.discard()
            assert full.value.code == "disk_full"
            assert_silent(full.value)
            assert files_under(data_dir) == before


def test_s12_bytes_that_a_full_disk_refuses(
    storage: LocalStorage, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = tempfile.mkstemp

    def on_a_full_disk(**how: Any) -> tuple[int, str]:
        descriptor, name = real(**how)
        full = os.open("/dev/full", os.O_WRONLY)
        os.dup2(full, descriptor)
        os.close(full)
        return descriptor, name

    monkeypatch.setattr(tempfile, "mkstemp", on_a_full_disk)
    draft = storage.draft(LIMIT)
    with pytest.raises(AppError) as full:
        for _ in range(100):
            draft.write(bytes(10_000))
    assert full.value.code == "disk_full"
    assert_silent(full.value, draft.path.name)
    draft.discard()
    assert not list(scratch.iterdir())


def test_s12_a_draft_that_cannot_begin(storage: LocalStorage, scratch: Path) -> None:
    scratch.rmdir()
    with pytest.raises(AppError) as failed:
        storage.draft(LIMIT)
    assert failed.value.code == "storage_failed"
    assert_silent(failed.value)


def test_s12_a_file_that_may_not_be_read(
    storage: LocalStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = stored(storage)
    for call in ("is_file", "open"):
        with monkeypatch.context() as patch, pytest.raises(AppError) as refused:
            patch.setattr(Path, call, failing(errno.EACCES))
            storage.open(file)
        assert refused.value.code == "storage_failed"
        assert refused.value.detail == f"file record {file.id}: EACCES"
        assert_silent(refused.value, file.file)


def test_a_draft_that_cannot_be_removed_is_left_to_the_sweep(
    storage: LocalStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = received(storage)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", failing(errno.EROFS))
        draft.discard()
    assert draft.path.exists()


def test_p45_the_file_is_synced_before_it_is_renamed_and_the_folders_after(
    storage: LocalStorage, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    sync, rename = os.fsync, Path.rename

    def traced_sync(descriptor: int) -> None:
        seen.append(f"sync {Path(f'/proc/self/fd/{descriptor}').readlink()}")
        sync(descriptor)

    def traced_rename(path: Path, target: Path) -> Path:
        seen.append(f"rename {target}")
        return rename(path, target)

    draft = received(storage)
    monkeypatch.setattr(os, "fsync", traced_sync)
    monkeypatch.setattr(Path, "rename", traced_rename)
    path = storage.local_path(storage.keep(draft))
    folders = [path.parent, data_dir / "storage" / "files"]
    assert seen == [
        f"sync {draft.path}",
        # The first recording of all: the names of the new folders must last too.
        f"sync {data_dir}",
        f"sync {data_dir / 'storage'}",
        f"rename {path}",
        *[f"sync {folder}" for folder in folders],
    ]
    seen.clear()
    draft = received(storage)
    path = storage.local_path(storage.keep(draft))
    assert seen == [
        f"sync {draft.path}",
        f"rename {path}",
        f"sync {path.parent}",
        f"sync {data_dir / 'storage' / 'files'}",
    ]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes, where the machine lets us mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"none", bytes(folder), b"tmpfs", 0, b"size=2m") != 0:
        pytest.skip("this machine does not let us mount a small disk")
    yield folder
    # Detached at once even when a failed test still holds a file open: a mount that stayed would
    # be in the way of every later run.
    assert libc.umount2(bytes(folder), _MNT_DETACH) == 0


def test_q22_a_full_disk_refuses_a_recording_and_takes_it_once_there_is_room(
    small_disk: Path,
) -> None:
    scratch = small_disk / "tmp"
    scratch.mkdir()
    storage = LocalStorage(small_disk, scratch)
    first = stored(storage, OGG * 10_000)
    draft = storage.draft(1 << 30)
    with pytest.raises(AppError) as full:
        for _ in range(100):
            draft.write(bytes(100_000))
    assert full.value.code == "disk_full"
    assert_silent(full.value)
    draft.discard()
    assert shutil.disk_usage(small_disk).free > 1_000_000
    assert content(storage, first) == OGG * 10_000
    assert storage.exists(stored(storage, OGG * 10_000))


def test_reading_gives_a_seekable_stream(storage: LocalStorage) -> None:
    file = stored(storage, OGG + b"end")
    with storage.open(file) as stream:
        stream.seek(-3, io.SEEK_END)
        assert stream.read() == b"end"
