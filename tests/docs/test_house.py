"""docs/architecture.md against the modules, and the set-up files against each other (I01, I02)."""

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

from app.job import ACTIVE, REVIVABLE, State
from tests.docs.tables import DOCS, ROOT, rows

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOCKS = ("requirements.lock", "requirements-dev.lock")


def test_every_module_is_on_the_map() -> None:
    modules = {
        f"{package}.{path.stem}"
        for package in ("app", "worker")
        for path in (ROOT / package).iterdir()
        if (path.suffix == ".py" or (path / "__init__.py").exists()) and path.stem[0] != "_"
    }
    assert {cells[0].strip("`") for cells in rows("architecture.md", "module")} == modules


def test_the_diagram_draws_every_move_that_the_queue_makes() -> None:
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    drawn = set(re.findall(r"^ {4}(\w+) --> (\w+)", text, re.M))
    ends = {(state, end) for state in ACTIVE for end in (State.FAILED, State.DEAD)}
    revived = {(end, state) for end in REVIVABLE for state in ACTIVE}
    on = {("created", "converted"), ("converted", "transcribe"), ("transcribe", "done")}
    assert drawn == ends | revived | on | {("transcribe", "transcribe")}


def pinned(name: str) -> dict[str, str]:
    text = (ROOT / name).read_text(encoding="utf-8")
    return dict(re.findall(r"^([a-z0-9._-]+)==(\S+) \\$", text, re.M))


def test_i01_the_whole_tree_is_pinned_by_digest() -> None:
    for name in LOCKS:
        text = (ROOT / name).read_text(encoding="utf-8")
        entries = [part for part in re.split(r"^(?=[a-z0-9])", text, flags=re.M) if "==" in part]
        assert entries
        assert [part.split()[0] for part in entries if "--hash=sha256:" not in part] == []


def test_i01_the_locks_hold_what_the_project_asks_for() -> None:
    asked = PROJECT["dependencies"]
    dev = PROJECT["optional-dependencies"]["dev"]
    for name, wanted in zip(LOCKS, (asked, asked + dev), strict=True):
        held = pinned(name)
        for requirement in wanted:
            package, version = requirement.split("==")
            assert held[package.lower()] == version, f"{name}: run make lock"
    both = pinned(LOCKS[0]).items()
    assert both <= pinned(LOCKS[1]).items()


def test_i01_every_dependency_has_its_reason() -> None:
    text = (DOCS / "decisions" / "0002-dependencies.md").read_text(encoding="utf-8")
    names = [requirement.split("==")[0] for requirement in PROJECT["dependencies"]]
    assert [name for name in names if f"`{name}`" not in text] == []


def test_i01_no_file_names_where_packages_come_from() -> None:
    for name in (*LOCKS, "Makefile", "pyproject.toml", ".ci/run"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert (
            re.findall(r"(?<!no-emit-)(?:index-url|find-links)|https?://(?!127\.0\.0\.1)\S+", text)
            == []
        ), name


def test_i01_a_python_without_venv_is_told_what_to_install(tmp_path: Path) -> None:
    """As on Debian, where venv is a package of its own."""
    answer = make(
        tmp_path,
        '#!/bin/sh\ncase "$2" in *ensurepip*) exit 1;; esac\nexit 0\n',
    )
    assert "sudo apt install python3-venv" in answer


def test_i01_an_old_python_is_told_what_is_needed(tmp_path: Path) -> None:
    answer = make(tmp_path, '#!/bin/sh\ncase "$2" in *version_info*) exit 1;; esac\nexit 0\n')
    assert "Python 3.11 or newer" in answer


def make(folder: Path, python: str) -> str:
    """What `make install` says in a fresh clone whose python3 is this script."""
    script = folder / "python3"
    script.write_text(python)
    script.chmod(0o700)
    for name in ("Makefile", "pyproject.toml", "requirements.lock"):
        shutil.copy(ROOT / name, folder)
    done = subprocess.run(
        ["make", "install", f"PYTHON={script}"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    return done.stderr


def test_i02_ci_runs_make_check() -> None:
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert lines[-1] == "make check"
    assert "export CI=true" in lines
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_i02_every_benchmark_has_its_word() -> None:
    # The soak takes twenty minutes by itself: it has a word of its own.
    dry = subprocess.run(
        ["make", "--dry-run", "bench", "bench-soak"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    folder = ROOT / "benchmarks"
    packages = [path.parent for path in folder.glob("*/__main__.py")]
    for path in (*folder.glob("[a-z]*.py"), *packages):
        assert f"-m benchmarks.{path.stem}" in dry
