"""Q06: from accepted to claimed on an idle machine, and what waiting costs; see benchmarks.wake."""

from collections.abc import Sequence
from pathlib import Path

from benchmarks import wake
from benchmarks.queue.figures import Figure, at_most, percentile, shown
from benchmarks.queue.plan import Plan

_MOST_P50_MS = 5
_MOST_P99_MS = 50
_MOST_IDLE_MS = 2
_MS = 1000.0


def measure(folder: Path, plan: Plan) -> Sequence[Figure]:
    """The rows of Q06."""
    wakes = wake.measure(folder, plan.wakes, plan.idle_seconds)
    ms = {name: [each * _MS for each in found] for name, found in wakes.seconds.items()}
    bell = ms.pop("bell")
    return [
        at_most("Q06", "accepted to claimed, p50", percentile(bell, 0.5), _MOST_P50_MS, " ms"),
        at_most("Q06", "accepted to claimed, p99", percentile(bell, 0.99), _MOST_P99_MS, " ms"),
        *(shown("Q06", f"{n}, p50", f"{percentile(m, 0.5):.3g} ms") for n, m in ms.items()),
        at_most("Q06", "idle worker, CPU a second", wakes.idle_ms, _MOST_IDLE_MS, " ms"),
    ]
