"""Q21: the power goes while processes hand in and work; what of the acknowledged is lost.

    python -m benchmarks.powercut

A disk of its own on a loop device is copied at random moments while those who write are stopped,
and each copy is mounted and compared with what had been acknowledged: hand-ins with their bytes,
claims, results of steps. Beside it the same without the syncs, which must be seen to lose: else the
cuts would prove nothing. Needs root, loop devices and mkfs.ext4.
"""

import argparse
import random
import sys
import tempfile
from pathlib import Path

from tests.reliability.loop_disk import NoDiskError
from tests.reliability.power_cut import Cut, cuts
from tests.reliability.power_writers import NO_SYNC, NORMAL, SAFE

WAYS = {
    SAFE: "as the product writes",
    NORMAL: "commits at synchronous=NORMAL",
    NO_SYNC: "files not synced",
}


def main() -> int:
    """Print a line for each way of writing; exit code 1 when the product lost anything."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--cuts", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    others = max(1, options.cuts // 4)
    found: dict[str, list[Cut]] = {}
    try:
        for how, words in WAYS.items():
            number = options.cuts if how == SAFE else others
            found[how] = _cut(how, number, options.seed)
            print(_line(words, found[how]), flush=True)
    except NoDiskError as error:
        print(f"skipped: no disk whose power could be cut: {error}")
        return 0
    return int(any(cut.lost or cut.integrity != "ok" for cut in found[SAFE]))


def _cut(how: str, number: int, seed: int) -> list[Cut]:
    chance = random.Random(seed)  # noqa: S311 - the moments only have to differ
    with tempfile.TemporaryDirectory(prefix="pisar-powercut-") as folder:
        return list(cuts(Path(folder), how, number, chance))


def _line(words: str, found: list[Cut]) -> str:
    judged = sum(cut.acknowledged for cut in found)
    lost = sum(len(cut.lost) for cut in found)
    damaged = sum(cut.integrity != "ok" for cut in found)
    return (
        f"{words}: {len(found)} cuts, {judged} acknowledged words judged, {lost} of them lost in "
        f"{sum(bool(cut.lost) for cut in found)} cuts, {damaged} databases that cannot be read"
    )


if __name__ == "__main__":
    sys.exit(main())
