"""Q20: SIGKILL at random of web, workers and bot under load; nothing accepted may be lost."""

import random
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from app.job import State
from benchmarks.soak import chatting
from benchmarks.soak.chatting import Door, Talker
from benchmarks.soak.report import Report
from benchmarks.soak.sender import Sender
from tests.service.house import Service, service
from tests.speech import DATA
from tests.web.site import Site, running

RECORDINGS = (DATA / "english-short.mp3", DATA / "english-phone.wav")
_WORKERS = 2
_SENDERS = 2
_PEOPLE = ("Alpha", "Beta", "Gamma")
_VICTIMS = _WORKERS + 2
_LINE = 6
"""So many jobs of each door may wait or run: the line must end soon after the last kill."""

_PAUSES_SECONDS = (0.2, 4.0)
"""Between two kills; a worker needs one to two seconds to come up, so some die before they work."""

_DRAIN_SECONDS = 600.0


def soak(folder: Path, seconds: float, seed: int, line: int = _LINE) -> Report:
    """Kill for so many seconds, at least each process once; then let the line end, and count.

    No more than `line` jobs of each door wait or run at a time, those of people and of programs.
    """
    chance = random.Random(seed)  # noqa: S311 - the moments only have to differ
    data_dir = folder / "data"
    with (
        service(data_dir, WORKER__POLL_INTERVAL="1") as house,
        running(folder, PISAR_LOG__FORMAT="json") as site,
        chatting.opened(data_dir) as door,
    ):
        stopping = threading.Event()
        senders = [
            Sender(f"sender{n}", site, RECORDINGS, lambda: _active(house, "api") >= line, stopping)
            for n in range(_SENDERS)
        ]
        talkers = [
            Talker(person, RECORDINGS, lambda: _with_the_bot(house, door) >= line, stopping)
            for person in map(door.telegram.person, _PEOPLE)
        ]
        kills, began = Counter[str](), time.monotonic()
        workers = [house.start_worker() for _ in range(_WORKERS)]
        victims = _victims(chance)
        for each in (*senders, *talkers):
            each.start()
        try:
            while time.monotonic() - began < seconds or len(kills) < _VICTIMS:
                time.sleep(chance.uniform(*_PAUSES_SECONDS))
                kills[_kill(next(victims), house, site, door, workers)] += 1
        finally:
            stopping.set()
            for each in (*senders, *talkers):
                each.join()
        killed_for = time.monotonic() - began
        left = _drained(house, door)
        drained_for = time.monotonic() - began - killed_for
        facts, nought = _counted(house, senders, talkers)
        of_chats, nought_of_chats = chatting.counted(house.house.database, door.telegram, talkers)
    facts = {
        "kills": ", ".join(f"{role} {count}" for role, count in sorted(kills.items())),
        "seconds of killing, then to the last end": f"{killed_for:.0f}, {drained_for:.0f}",
        **facts,
        **of_chats,
    }
    nought = {"not ended": left, **nought, **nought_of_chats}
    return Report("SIGKILL at random under load", facts, nought)


def _victims(chance: random.Random) -> Iterator[int]:
    """Which process is next: each once, then any; the workers by number, then web and bot."""
    yield from chance.sample(range(_VICTIMS), _VICTIMS)
    while True:
        yield chance.randrange(_VICTIMS)


def _kill(
    number: int,
    house: Service,
    site: Site,
    door: Door,
    workers: "list[subprocess.Popen[bytes]]",
) -> str:
    """Kill a process and start it again; gives its role."""
    if number == _WORKERS:
        site.stop(signal.SIGKILL)
        site.restart()
        return "web"
    if number > _WORKERS:
        door.kill()
        return "bot"
    house.kill(workers[number])
    workers[number] = house.start_worker()
    return f"worker {number + 1}"


def _active(house: Service, source: str) -> int:
    return len(_column(house, f"{_NOT_ENDED} AND source = '{source}'"))


def _with_the_bot(house: Service, door: Door) -> int:
    """Voice messages that wait in Telegram, and those whose text is not there yet."""
    return door.untaken() + _active(house, "telegram")


def _drained(house: Service, door: Door) -> Sequence[str]:
    """Wait until nothing is under way; gives the jobs that have not ended in time."""

    def is_over() -> bool:
        # In this order: what leaves one of them is then seen in the next.
        return not (door.untaken() or _column(house, _NOT_ENDED) or _column(house, _UNSETTLED))

    try:
        house.wait(is_over, _DRAIN_SECONDS, "every job ends, and every reply")
    except AssertionError:
        return _column(house, _NOT_ENDED)
    return []


def _counted(
    house: Service, senders: Sequence[Sender], talkers: Sequence[Talker]
) -> tuple[Mapping[str, object], Mapping[str, Sequence[str]]]:
    accepted = {key: ids for sender in senders for key, ids in sender.accepted.items()}
    ids = {job for answers in accepted.values() for job in answers}
    stored = set(_column(house, "SELECT id FROM transcribe_jobs WHERE source = 'api'"))
    counts = house.queue.counts()
    known = set(_column(house, "SELECT id FROM files"))
    on_disk = {path.name for path in (house.data_dir / "storage" / "files").iterdir()}
    facts = {
        "accepted": len(ids) + sum(len(talker.sent) for talker in talkers),
        **{f"ended {state}": counts[state] for state in (State.DONE, State.FAILED, State.DEAD)},
        "requests that a kill cut off, sent again": sum(sender.unanswered for sender in senders),
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
_UNSETTLED = "SELECT id FROM replies WHERE state IN ('owed', 'sending')"
