"""docs/rules.md: each rule's code and test exist, and every rule in the code is there."""

import re
from collections import Counter

import pytest

from tests.docs.tables import ROOT, rows

COVERED = (
    [f"P{number:02}" for number in (*range(1, 30), *range(40, 49), 50)]
    + [f"S{number:02}" for number in (*range(1, 14), 30, 31)]
    + [f"I{number:02}" for number in (*range(1, 9), 10)]
)
RULES = list(rows("rules.md", "rule"))
TESTS = {
    name
    for path in (ROOT / "tests").rglob("test_*.py")
    for name in re.findall(r"^ *def (test_\w+)", path.read_text(encoding="utf-8"), re.M)
}


def test_each_rule_stands_once() -> None:
    assert Counter(cells[0] for cells in RULES) == Counter(COVERED)


@pytest.mark.parametrize("cells", RULES, ids=lambda cells: cells[0])
def test_the_code_of_a_rule_is_where_it_says(cells: list[str]) -> None:
    places = re.findall(r"`([^`]+)` `([^`]+)`", cells[2])
    assert places
    for path, word in places:
        assert word in (ROOT / path).read_text(encoding="utf-8"), f"{path}: {word}"


@pytest.mark.parametrize("cells", RULES, ids=lambda cells: cells[0])
def test_the_test_of_a_rule_exists_and_names_it(cells: list[str]) -> None:
    name = cells[3].strip("`")
    assert name in TESTS
    assert f"_{cells[0].lower()}_" in name


def test_every_rule_that_the_code_names_is_listed() -> None:
    named = {
        rule
        for folder in ("app", "worker", "migrations")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".sql")
        for rule in re.findall(r"\b[PSI]\d\d\b", path.read_text(encoding="utf-8"))
    }
    assert named - set(COVERED) == set()
