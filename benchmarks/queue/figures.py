"""What a measurement came to, beside what it must reach; and the one table of them all."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_HEADER = ("", "what", "reached", "target", "")


@dataclass(frozen=True)
class Figure:
    """One row of the table; is_met is None where nothing has to be reached."""

    number: str
    what: str
    reached: str
    target: str = ""
    is_met: bool | None = None

    @property
    def verdict(self) -> str:
        """The last column."""
        return {True: "met", False: "MISSED", None: ""}[self.is_met]


def at_least(number: str, what: str, value: float, limit: float, unit: str = "×") -> Figure:
    """A figure that must not be below its limit."""
    return Figure(number, what, f"{value:.3g}{unit}", f"≥ {limit:.3g}{unit}", value >= limit)


def at_most(number: str, what: str, value: float, limit: float, unit: str = "×") -> Figure:
    """A figure that must not be above its limit."""
    return Figure(number, what, f"{value:.3g}{unit}", f"≤ {limit:.3g}{unit}", value <= limit)


def shown(number: str, what: str, reached: str) -> Figure:
    """A figure that stands in the table to be read, with nothing to reach."""
    return Figure(number, what, reached)


def left_out(number: str, what: str, reason: str) -> Figure:
    """A measurement that could not be made here, and why."""
    return Figure(number, what, f"left out: {reason}")


def percentile(samples: Iterable[float], share: float) -> float:
    """The sample below which that share (0-1) of them lies; ValueError when there is none."""
    ordered = sorted(samples)
    if not ordered:
        raise ValueError("there is no sample")
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def print_table(figures: Sequence[Figure]) -> None:
    """The figures in columns, and how many of the targets were met."""
    rows = [_HEADER] + [
        (figure.number, figure.what, figure.reached, figure.target, figure.verdict)
        for figure in figures
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADER))]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())
    judged = [figure for figure in figures if figure.is_met is not None]
    print(f"\n{sum(bool(figure.is_met) for figure in judged)} of {len(judged)} targets met")
