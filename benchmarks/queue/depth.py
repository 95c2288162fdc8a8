"""Q02: what a claim costs at a depth, in alternating turns with the claim at 1,000 rows."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from datetime import datetime
from pathlib import Path

from app.clock import later, utcnow
from app.db import Database
from app.errors import AppError
from app.queue.sqlite import SqliteQueue
from benchmarks.queue.figures import Figure, at_most, percentile, shown
from benchmarks.queue.fill import Filled
from benchmarks.queue.plan import Plan
from tests.queue.hands import hand_in, held

_MOST = 1.5
_SHALLOW = 1000
_TURN = 20
_MS = 1000.0
_PAUSE_SECONDS = 200.0
"""Within the longest pause that the queue was told of: a longer one would count as ended."""


def measure(folder: Path, plan: Plan) -> Sequence[Figure]:
    """The rows of Q02."""
    now = utcnow()
    many = plan.waiting_rows
    with ThreadPoolExecutor() as fillers, ExitStack() as stack:
        databases = [
            stack.enter_context(closing(filling.result()))
            for filling in (
                fillers.submit(_waiting, folder / "deep", many, now),
                fillers.submit(_among_others, folder / "mixed", many, now),
                fillers.submit(_waiting, folder / "shallow", _SHALLOW, now),
            )
        ]
        waiting, around, base = _claims([SqliteQueue(d) for d in databases], plan.claims, now)
    return [
        shown("Q02", "claim at 1,000 waiting, CPU, median", f"{base:.3f} ms"),
        _against(f"{many:,} waiting", waiting, base),
        _against(
            f"{many:,} done, {many * 9 // 100:,} delayed, {many // 100:,} ready", around, base
        ),
    ]


def _waiting(data_dir: Path, jobs: int, now: datetime) -> Database:
    with Filled(data_dir, now) as filled:
        filled.add("created", jobs)
    return filled.opened()


def _among_others(data_dir: Path, jobs: int, now: datetime) -> Database:
    due = later(now, _PAUSE_SECONDS)
    with Filled(data_dir, now) as filled:
        filled.add("done", jobs)
        filled.add("created", jobs // 10, delayed_in_100=90, due=due)
    return filled.opened()


def _against(depth: str, claim: float, base: float) -> Figure:
    what = f"claim at {depth}: {claim:.3f} ms CPU, of that at 1,000"
    return at_most("Q02", what, claim / base, _MOST)


def _claims(queues: Sequence[SqliteQueue], count: int, now: datetime) -> Sequence[float]:
    """The median CPU time of a claim in each queue, in milliseconds; the whole process counts."""
    spent: list[list[float]] = [[] for _ in queues]
    verdict = AppError("too_long")
    for _ in range(count // _TURN):
        for queue, samples in zip(queues, spent, strict=True):
            for _ in range(_TURN):
                began = time.process_time()
                claim = held(queue, now=now)
                samples.append(time.process_time() - began)
                queue.fail(claim, verdict, now)
                hand_in(queue, now)  # the depth stays what it is
    return [percentile(samples, 0.5) * _MS for samples in spent]
