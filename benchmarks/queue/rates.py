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

_HEADING = "1 worker: jobs/s claimed and ended (enqueued/s before); ×: ours to it, of ended ones"
_LEAST: dict[type[Peer], float] = {Rq: 8, Procrastinate: 1.5}
_JUDGED_ROUNDS = 3
_MOST_SYNCS = 3
_SYNC_JOBS = 300
_SYNC_CALL = re.compile(r"\bf(?:data)?sync\(\d+<([^>]+)>")


def measure(folder: Path, plan: Plan) -> Sequence[Figure]:
    """The rows of Q03."""
    figures = [shown("Q03", _HEADING, "")]
    for peer in PEERS:
        try:
            figures.append(_beside(peer, folder, plan))
        except servers.MissingError as missing:
            figures.append(left_out("Q03", peer.name, str(missing)))
    pipeline = [take(Pipeline, folder, plan.peer_jobs) for _ in range(plan.peer_rounds)]
    figures.append(shown("Q03", f"{Pipeline.name}: {_told(pipeline)}", ""))
    return [*figures, _syncs(folder)]


def _beside(peer: type[Peer], folder: Path, plan: Plan) -> Figure:
    """A peer between two turns of ours, and again: disk and neighbours change, the ratio holds."""
    ours, theirs, completed, whole = [], [], [], []
    for _ in range(max(plan.peer_rounds, _JUDGED_ROUNDS if peer in _LEAST else 0)):
        before, turn, after = (take(who, folder, plan.peer_jobs) for who in (Ours, peer, Ours))
        ours += [before, after]
        theirs.append(turn)
        completed.append((before.completed + after.completed) / 2 / turn.completed)
        whole.append((before.whole + after.whole) / 2 / turn.whole)
    ratio = statistics.median(completed)
    what = (
        f"{peer.name}: {_told(theirs)}, ours {_told(ours)};"
        f" from enqueue to end {statistics.median(whole):.3g}×; survives {peer.survives}"
    )
    if peer in _LEAST:
        return at_least("Q03", what, ratio, _LEAST[peer])
    return shown("Q03", what, f"{ratio:.3g}×")


def _told(rates: Sequence[Rate]) -> str:
    completed = statistics.median(rate.completed for rate in rates)
    enqueued = statistics.median(rate.enqueued for rate in rates)
    return f"{completed:.0f} ({enqueued:.0f})"


def _syncs(folder: Path) -> Figure:
    """Counted by strace over a process that carries jobs through, less one that carries one.

    The three commits of a job sync the log once each. A checkpoint, one in forty jobs or so, adds
    three: of the log, of the database, and of the log's new beginning.
    """
    what = "disk syncs for each of our jobs, by its commits"
    try:
        strace = servers.program("strace")
    except servers.MissingError as missing:
        return left_out("Q03", what, str(missing))
    few, many = (_count_syncs(strace, folder / f"syncs-{n}", n) for n in (1, _SYNC_JOBS + 1))
    of_log, of_database = ((many[n] - few[n]) / _SYNC_JOBS for n in (0, 1))
    commits = of_log - 2 * of_database
    what += f" (with those of checkpoints {of_log + of_database:.2f})"
    return at_most("Q03", what, commits, _MOST_SYNCS, "")


def _count_syncs(strace: Path, home: Path, jobs: int) -> tuple[int, int]:
    """Syncs of the log, and of everything else."""
    home.mkdir()
    Ours(Place(home)).prepare()
    log = home / "calls"
    subprocess.run(
        [
            *(strace, "-f", "-qq", "-y", "-e", "trace=fsync,fdatasync", "-o", log),
            *(sys.executable, "-m", "benchmarks.queue.rates", home, str(jobs)),
        ],
        cwd=ROOT,
        check=True,
    )
    files = _SYNC_CALL.findall(log.read_text())
    of_log = sum(file.endswith("-wal") for file in files)
    return of_log, len(files) - of_log


def _carry(home: str, jobs: str) -> None:
    """In a process under strace: carry so many jobs through."""
    ours = Ours(Place(Path(home)))
    ours.enqueue(int(jobs))
    ours.drain()


if __name__ == "__main__":
    _carry(*sys.argv[1:])
