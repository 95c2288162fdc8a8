"""The tables of a Markdown page, as lists of cells."""

from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def rows(page: str, first: str) -> Iterator[list[str]]:
    """The rows of every table of a page whose first column is headed so."""
    is_inside = False
    for line in (DOCS / page).read_text(encoding="utf-8").splitlines():
        if not line.startswith("|"):
            is_inside = False
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0] == first:
            is_inside = True
        elif is_inside and set(line) - set("|-: "):
            yield cells
