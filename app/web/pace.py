"""How long a running job will still take, judged by the pace seen since somebody first looked."""

from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime
from threading import Lock

from app.job import Job

_KEPT = 500
_LEAST_SECONDS = 5.0
_LEAST_PROGRESS = 0.01


@dataclass(frozen=True)
class _Sight:
    acquisition_id: str
    time: datetime
    progress: float


class Pace:
    """The first sight of each running claim, for the jobs looked at last.

    A job that goes on from a kept piece starts far from zero, so that the time since the claim
    would promise too much; the pace between two looks does not.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._seen: OrderedDict[str, _Sight] = OrderedDict()

    def seconds_left(self, job: Job, now: datetime) -> float | None:
        """Seconds to the end of the running step; None while too little has been seen."""
        if job.acquisition_id is None or job.progress is None:
            return None
        first = self._first_sight(job, job.acquisition_id, job.progress, now)
        seconds = (now - first.time).total_seconds()
        done = job.progress - first.progress
        if seconds < _LEAST_SECONDS or done < _LEAST_PROGRESS:
            return None
        return seconds * (1 - job.progress) / done

    def _first_sight(self, job: Job, claim: str, progress: float, now: datetime) -> _Sight:
        with self._lock:
            sight = self._seen.get(job.id)
            if sight is None or sight.acquisition_id != claim or progress < sight.progress:
                sight = self._seen[job.id] = _Sight(claim, now, progress)
            self._seen.move_to_end(job.id)
            if len(self._seen) > _KEPT:
                self._seen.popitem(last=False)
            return sight
