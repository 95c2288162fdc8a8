"""Q20: SIGKILL at random of the web and the workers under load; nothing accepted may be lost."""

import random
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from app.job import ACTIVE, State
from benchmarks.soak.report import Report
from benchmarks.soak.sender import Sender
from tests.service.house import Service, service
from tests.speech import DATA
from tests.web.site import Site, running

RECORDINGS = (DATA / "english-short.mp3", DATA / "english-phone.wav")
_WORKERS = 2
_SENDERS = 2
_LINE = 12
"""So many jobs may wait or run: the line must end soon after the last kill."""

_PAUSES_SECONDS = (0.2, 4.0)
"""Between two kills; a worker needs one to two seconds to come up, so some die before they work."""

_DRAIN_SECONDS = 600.0


def soak(folder: Path, seconds: float, seed: int, line: int = _LINE) -> Report:
    """Kill for so many seconds, at least each process once; then let the line end, and count.

    No more than `line` jobs wait or run at a time.
    """
    chance = random.Random(seed)  # noqa: S311 - the moments only have to differ
    data_dir = folder / "data"
    with (
        service(data_dir, WORKER__POLL_INTERVAL="1") as house,
        running(folder, PISAR_LOG__FORMAT="json") as site,
    ):
        stopping = threading.Event()
        senders = [
            Sender(f"sender{n}", site, RECORDINGS, lambda: _active(house) >= line, stopping)
            for n in range(_SENDERS)
        ]
        kills, began = Counter[str](), time.monotonic()
        victims = _victims(chance)
        workers = [house.start_worker() for _ in range(_WORKERS)]
        for sender in senders:
            sender.start()
        try:
            while time.monotonic() - began < seconds or len(kills) < 1 + _WORKERS:
                time.sleep(chance.uniform(*_PAUSES_SECONDS))
                kills[_kill(next(victims), house, site, workers)] += 1
        finally:
            stopping.set()
            for sender in senders:
                sender.join()
        killed_for = time.monotonic() - began
        left = _drained(house)
        drained_for = time.monotonic() - began - killed_for
        facts, nought = _counted(house, senders)
    facts = {
        "kills": ", ".join(f"{role} {count}" for role, count in sorted(kills.items())),
        "seconds of killing, then to the last end": f"{killed_for:.0f}, {drained_for:.0f}",
        **facts,
    }
    return Report("SIGKILL at random under load", facts, {"not ended": left, **nought})


def _victims(chance: random.Random) -> Iterator[int]:
    """Which process is next: each once, then any; the workers by number, the web after them."""
    yield from chance.sample(range(_WORKERS + 1), _WORKERS + 1)
    while True:
        yield chance.randrange(_WORKERS + 1)


def _kill(number: int, house: Service, site: Site, workers: "list[subprocess.Popen[bytes]]") -> str:
    """Kill a process and start it again; gives its role."""
    if number == _WORKERS:
        site.stop(signal.SIGKILL)
        site.restart()
        return "web"
    house.kill(workers[number])
    workers[number] = house.start_worker()
    return f"worker {number + 1}"


def _active(house: Service) -> int:
    counts = house.queue.counts()
    return sum(counts[state] for state in ACTIVE)


def _drained(house: Service) -> Sequence[str]:
    """Wait until nothing is active; gives the jobs that have not ended in time."""
    try:
        house.wait(lambda: not _active(house), _DRAIN_SECONDS, "every job ends")
    except AssertionError:
        return _column(house, _NOT_ENDED)
    return []


def _counted(
    house: Service, senders: Sequence[Sender]
) -> tuple[Mapping[str, object], Mapping[str, Sequence[str]]]:
    accepted = {key: ids for sender in senders for key, ids in sender.accepted.items()}
    ids = {job for answers in accepted.values() for job in answers}
    stored = set(_column(house, "SELECT id FROM transcribe_jobs"))
    counts = house.queue.counts()
    known = set(_column(house, "SELECT id FROM files"))
    on_disk = {path.name for path in (house.data_dir / "storage" / "files").iterdir()}
    facts = {
        "accepted": len(ids),
        **{f"ended {state}": counts[state] for state in (State.DONE, State.FAILED, State.DEAD)},
        "requests that a kill cut off, sent again": sum(sender.unanswered for sender in senders),
        "replies in doubt (P47)": len(_column(house, _DOUBTFUL)),
        "files of no job, left by a killed hand-in": len(on_disk - known),
    }
    nought = {
        "accepted and lost": sorted(ids - stored),
        "accepted, its recording lost": sorted(set(_column(house, _SOURCES)) - on_disk),
        "done without a text": _column(house, _TEXTLESS),
        "one key, two jobs": [key for key, answers in accepted.items() if len(answers) > 1],
        "jobs that nobody handed in": sorted(stored - ids),
        "a step's result written twice": _column(house, _TWICE),
        "a reply owed twice": _column(house, _REPLIES_TWICE),
        "refused": [word for sender in senders for word in sender.refused],
        "damage found by SQLite": [
            word for word in _column(house, "PRAGMA integrity_check") if word != "ok"
        ],
    }
    return facts, nought


def _column(house: Service, query: str) -> list[str]:
    with house.house.database.read() as connection:
        return [str(row[0]) for row in connection.execute(query).fetchall()]


_NOT_ENDED = "SELECT id FROM transcribe_jobs WHERE state IN ('created', 'converted', 'transcribe')"
_SOURCES = "SELECT source_file FROM transcribe_jobs"
_TEXTLESS = """
SELECT id FROM transcribe_jobs
WHERE state = 'done' AND id NOT IN (SELECT job FROM transcripts)
"""
_TWICE = """
SELECT job FROM job_events
WHERE outcome = 'success'
GROUP BY job, step
HAVING count(*) > 1
"""
_REPLIES_TWICE = "SELECT job FROM replies GROUP BY job, verdict HAVING count(*) > 1"
_DOUBTFUL = "SELECT id FROM replies WHERE state = 'doubtful'"
