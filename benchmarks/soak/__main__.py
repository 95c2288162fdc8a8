"""Q20 and Q24 in their long forms; a line for each figure, and what must be nought beside it.

    python -m benchmarks.soak [--minutes 10] [--only Q20] [--seed 1] [--folder DIR]

Q20 kills the web, the workers and the bot at random while recordings come in over HTTP and from
Telegram's chats, and the tiny engine recognizes them. Q24 lets eight processes write to one store
without a pause. Exits with 1 when something that must be nought is not.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.soak import crowding, killing
from benchmarks.soak.report import Report

_SOAKS: Mapping[str, Callable[[Path, float, int], Report]] = {
    "Q20": killing.soak,
    "Q24": crowding.soak,
}
_ON_DISK = "/var/tmp"  # noqa: S108 - where a temporary file surely meets a disk; /tmp may be memory


def main() -> int:
    """Soak, and print the figures; gives the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--minutes", type=float, default=10, help="of each")
    parser.add_argument("--only", nargs="+", choices=list(_SOAKS), default=list(_SOAKS))
    parser.add_argument("--seed", type=int, default=1, help="of the moments and victims")
    parser.add_argument("--folder", default=_ON_DISK, help="where to make the temporary folder")
    options = parser.parse_args()
    is_clean = True
    for number in options.only:
        with tempfile.TemporaryDirectory(prefix="pisar-soak-", dir=options.folder) as name:
            report = _SOAKS[number](Path(name), options.minutes * 60, options.seed)
        print(f"{number}: {report}\n", flush=True)
        is_clean = is_clean and not report.faults
    return 0 if is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
