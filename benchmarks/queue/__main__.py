"""Q01-Q07 in one run and one table: `make bench-queue`; ARGS=--quick takes minutes.

    python -m benchmarks.queue [--quick] [--only Q01 Q03] [--folder DIR]

Everything is measured side by side in this run. Redis and PostgreSQL come from Debian's packages
and run on loopback over folders of this run's own; strace counts the syncs. A missed target is
said in the table; the exit code tells only that the benchmark itself worked.
"""

import argparse
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.queue import commits, crash, depth, fairness, pages, rates, waking
from benchmarks.queue.figures import Figure, print_table
from benchmarks.queue.plan import FULL, QUICK, Plan

_MEASURES: Mapping[str, Callable[[Path, Plan], Sequence[Figure]]] = {
    "Q01": commits.measure,
    "Q02": depth.measure,
    "Q03": rates.measure,
    "Q04": fairness.measure,
    "Q05": crash.measure,
    "Q06": waking.measure,
    "Q07": pages.measure,
}
_ON_DISK = "/var/tmp"  # noqa: S108 - where a temporary file surely meets a disk; /tmp may be memory


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds of everything")
    parser.add_argument("--only", nargs="+", choices=list(_MEASURES), default=list(_MEASURES))
    parser.add_argument("--folder", default=_ON_DISK, help="where to make the temporary folder")
    options = parser.parse_args()
    plan = QUICK if options.quick else FULL
    figures: list[Figure] = []
    began, loads = time.monotonic(), [os.getloadavg()[0]]
    for number in options.only:
        print(f"{number} …", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(prefix="pisar-bench-", dir=options.folder) as name:
            figures += _MEASURES[number](Path(name), plan)
        loads.append(os.getloadavg()[0])
    print_table(figures)
    print(
        f"{time.monotonic() - began:.0f} s{' (quick)' if options.quick else ''};"
        f" {os.cpu_count()} cores, load {min(loads):.1f} to {max(loads):.1f};"
        f" SQLite {sqlite3.sqlite_version}"
    )


if __name__ == "__main__":
    main()
