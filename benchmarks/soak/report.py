"""What a soak came to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Report:
    """title says what was done, facts what was counted; nought names what must not have happened,
    each with the jobs or words it happened to.
    """

    title: str
    facts: Mapping[str, object]
    nought: Mapping[str, Sequence[str]]

    @property
    def faults(self) -> Sequence[str]:
        """What happened though it must not."""
        return [f"{what}: {', '.join(found[:5])}" for what, found in self.nought.items() if found]

    def __str__(self) -> str:
        rows = {**self.facts, **{what: len(found) for what, found in self.nought.items()}}
        width = max(map(len, rows))
        lines = [self.title, *(f"  {what:<{width}}  {count}" for what, count in rows.items())]
        return "\n".join([*lines, *(f"  FAULT {fault}" for fault in self.faults)])
