"""docs/reliability.md: every hazard, case and quality has its row, and what it names exists."""

import re
from collections import Counter

import pytest

from tests.docs.tables import ROOT, rows

HAZARDS = [f"{number:02}" for number in range(1, 30)]
CASES = [f"CQ{number:02}" for number in (1, 2, 3, 4, 6, 7, 9, 11, 13, 14, 18, 20)]
QUALITIES = ["Q05", *(f"Q{number}" for number in (20, 21, 22, 23, 24, 25, 27))]
PAGE = "reliability.md"
TESTS = {
    name
    for path in (ROOT / "tests").rglob("test_*.py")
    for name in re.findall(r"^ *def (test_\w+)", path.read_text(encoding="utf-8"), re.M)
}


@pytest.mark.parametrize(
    ("first", "numbers"), [("hazard", HAZARDS), ("case", CASES), ("quality", QUALITIES)]
)
def test_each_number_has_one_row(first: str, numbers: list[str]) -> None:
    assert Counter(cells[0] for cells in rows(PAGE, first)) == Counter(numbers)


@pytest.mark.parametrize("first", ["hazard", "case", "quality"])
def test_each_row_names_tests_that_exist_and_bear_its_number(first: str) -> None:
    word = "hazard_" if first == "hazard" else ""
    for cells in rows(PAGE, first):
        named = re.findall(r"`(test_\w+)`", cells[-1])
        assert named, cells[0]
        for name in named:
            assert name in TESTS, name
            assert f"_{word}{cells[0].lower()}_" in name, f"{name} is not of {cells[0]}"


def test_every_number_that_a_test_bears_has_its_row() -> None:
    borne = {number for name in TESTS for number in re.findall(r"_hazard_(\d\d)_", name)}
    assert borne <= set(HAZARDS)
    cases = {number.upper() for name in TESTS for number in re.findall(r"_(cq\d\d)_", name)}
    assert cases <= set(CASES)


def test_each_command_of_the_figures_is_there() -> None:
    for cells in rows(PAGE, "command"):
        command = cells[0].strip("`")
        name = command.removeprefix("make bench-").removeprefix("python -m benchmarks.")
        folder = ROOT / "benchmarks"
        assert (folder / f"{name}.py").exists() or (folder / name / "__main__.py").exists(), command
