"""Q03: jobs a second of one worker, each queue between two turns of ours; syncs for each job."""

import re
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.queue import servers
from benchmarks.queue.figures import Figure, at_least, at_most, left_out, shown
from benchmarks.queue.peers.on_postgres import Procrastinate
from benchmarks.queue.peers.on_redis import Rq
from benchmarks.queue.peers.ours import Ours, Pipeline
from benchmarks.queue.peers.port import Peer, Place
from benchmarks.queue.peers.turns import PEERS, Rate, take
from benchmarks.queue.plan import Plan
from tests.crew import ROOT

_LEAST: dict[type[Peer], float] = {Rq: 8, Procrastinate: 1.5}
_MOST_SYNCS = 3
_SYNC_JOBS = 300
_SYNC_CALL = re.compile(r"\bf(data)?sync\(")


def measure(folder: Path, plan: Plan) -> Sequence[Figure]:
    """The rows of Q03."""
    figures = [
        shown(
            "Q03",
            "jobs/s of 1 worker, enqueue to end (of it: enqueued, completed); × : ours beside it",
            "",
        )
    ]
    for peer in PEERS:
        try:
            figures.append(_beside(peer, folder, plan))
        except servers.MissingError as missing:
            figures.append(left_out("Q03", peer.name, str(missing)))
    pipeline = [take(Pipeline, folder, plan.peer_jobs) for _ in range(plan.peer_rounds)]
    figures.append(shown("Q03", Pipeline.name, _told(pipeline)))
    figures.append(_syncs(folder))
    return figures


def _beside(peer: type[Peer], folder: Path, plan: Plan) -> Figure:
    """A peer between two turns of ours, and again: disk and neighbours change, the ratio holds."""
    ours, theirs, ratios = [], [], []
    for _ in range(plan.peer_rounds):
        before, turn, after = (take(who, folder, plan.peer_jobs) for who in (Ours, peer, Ours))
        ours += [before, after]
        theirs.append(turn)
        ratios.append((before.whole + after.whole) / 2 / turn.whole)
    ratio = statistics.median(ratios)
    what = f"{peer.name}: {_told(theirs)}; ours {_told(ours)}; survives {peer.survives}"
    if peer in _LEAST:
        return at_least("Q03", what, ratio, _LEAST[peer])
    return shown("Q03", what, f"{ratio:.3g}×")


def _told(rates: Sequence[Rate]) -> str:
    whole, enqueued, completed = (
        statistics.median(numbers)
        for numbers in zip(*((r.whole, r.enqueued, r.completed) for r in rates), strict=True)
    )
    return f"{whole:.0f} ({enqueued:.0f}, {completed:.0f})"


def _syncs(folder: Path) -> Figure:
    """Counted by strace over a process that carries jobs through, less one that carries one."""
    what = f"disk syncs for each of our jobs, over {_SYNC_JOBS}, checkpoints included"
    try:
        strace = servers.program("strace")
    except servers.MissingError as missing:
        return left_out("Q03", what, str(missing))
    few, many = (_count_syncs(strace, folder / f"syncs-{n}", n) for n in (1, _SYNC_JOBS + 1))
    return at_most("Q03", what, (many - few) / _SYNC_JOBS, _MOST_SYNCS, "")


def _count_syncs(strace: Path, home: Path, jobs: int) -> int:
    home.mkdir()
    Ours(Place(home)).prepare()
    log = home / "calls"
    subprocess.run(
        [
            *(strace, "-f", "-qq", "-e", "trace=fsync,fdatasync", "-o", log),
            *(sys.executable, "-m", "benchmarks.queue.rates", home, str(jobs)),
        ],
        cwd=ROOT,
        check=True,
    )
    return sum(bool(_SYNC_CALL.search(line)) for line in log.read_text().splitlines())


def _carry(home: str, jobs: str) -> None:
    """In a process under strace: carry so many jobs through."""
    ours = Ours(Place(Path(home)))
    ours.enqueue(int(jobs))
    ours.drain()


if __name__ == "__main__":
    _carry(*sys.argv[1:])
