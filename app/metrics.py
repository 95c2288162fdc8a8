"""Every metric, named once, and the loopback port that a process shows them on.

Labels are closed sets: never an id, a name or a path. docs/operations.md explains each.
"""

import logging
from collections.abc import Iterable, Iterator

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
    start_http_server,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from app import clock
from app.job import ACTIVE, Source, State, Step
from app.queue.port import Queue

log = logging.getLogger(__name__)

OUTCOMES = ("success", "failure")
RELEASE_CAUSES = ("shutdown", "worker_gone", "lease_ended")
UNDELIVERED_REASONS = ("intake_down", "no_addressee", "rejected", "unreachable")

# A convert of a voice message takes tenths of a second, an hour of speech takes many minutes.
_STEP_BUCKETS = (0.1, 0.3, 1, 3, 10, 30, 60, 180, 600, 1800, 3600, 4 * 3600, 8 * 3600)

# A `_created` twin of every series would double the page and tell nothing.
disable_created_metrics()  # type: ignore[no-untyped-call]  # the library left it untyped

registry = CollectorRegistry()
ProcessCollector(registry=registry)
PlatformCollector(registry=registry)

worker_runs = Counter(
    "transcriber_worker_runs",
    "Steps that ended, by outcome; an empty poll counts nothing.",
    ("step", "outcome"),
    registry=registry,
)
step_seconds = Histogram(
    "transcriber_step_seconds",
    "How long a run of a step took, in seconds.",
    ("step",),
    buckets=_STEP_BUCKETS,
    registry=registry,
)
accepted = Counter(
    "transcriber_accepted",
    "Recordings accepted, by the way they came in.",
    ("source",),
    registry=registry,
)
claims_lost = Counter(
    "transcriber_claims_lost",
    "Steps that found their claim taken over and wrote nothing.",
    ("step",),
    registry=registry,
)
claims_released = Counter(
    "transcriber_claims_released",
    "Claims given back before their lease ended, by cause.",
    ("cause",),
    registry=registry,
)
audio_seconds = Counter(
    "transcriber_audio_seconds",
    "Seconds of recordings turned into text.",
    registry=registry,
)
intake_up = Gauge(
    "transcriber_intake_up",
    "1 while this way in takes recordings, else 0.",
    ("intake",),
    registry=registry,
)
undelivered_replies = Counter(
    "transcriber_undelivered_reply_count",
    "Replies that could not be delivered, by reason.",
    ("reason",),
    registry=registry,
)

queue_wal_bytes = Gauge(
    "transcriber_queue_wal_bytes",
    "Bytes of the database's write-ahead log.",
    registry=registry,
)


def _show_zeros() -> None:
    """Begin every series at 0, so that the first failure is a rise that an alert can see."""
    for step in Step:
        step_seconds.labels(step)
        claims_lost.labels(step)
        for outcome in OUTCOMES:
            worker_runs.labels(step, outcome)
    for source in Source:
        accepted.labels(source)
    for cause in RELEASE_CAUSES:
        claims_released.labels(cause)
    for reason in UNDELIVERED_REASONS:
        undelivered_replies.labels(reason)


_show_zeros()


class QueueCollector(Collector):
    """The depth of the queue, asked for at each scrape."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """The names without values: registering must not open the database."""
        return _queue_gauges()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Jobs by state, how long the oldest of each active state has waited, and the pauses."""
        jobs, oldest, paused = _queue_gauges()
        counts = self._queue.counts()
        for state in State:
            jobs.add_metric([state], counts.get(state, 0))
        waiting = self._queue.oldest_waiting()
        now = clock.utcnow()
        for state in ACTIVE:
            since = waiting.get(state)
            # A clock set back would show a negative wait.
            oldest.add_metric([state], max(0.0, (now - since).total_seconds()) if since else 0.0)
        paused_steps = self._queue.paused_steps()
        for step in Step:
            paused.add_metric([step], float(step in paused_steps))
        yield jobs
        yield oldest
        yield paused


def _queue_gauges() -> tuple[GaugeMetricFamily, GaugeMetricFamily, GaugeMetricFamily]:
    return (
        GaugeMetricFamily("transcriber_jobs", "Jobs in each state.", labels=["state"]),
        GaugeMetricFamily(
            "transcriber_oldest_waiting_seconds",
            "Seconds since the oldest waiting job of a state was accepted; 0 when none waits.",
            labels=["state"],
        ),
        GaugeMetricFamily(
            "transcriber_step_paused", "1 while the owner has paused a step.", labels=["step"]
        ),
    )


def watch(queue: Queue) -> QueueCollector:
    """Show the queue's depth on this process's port; one process of a service does so: the web."""
    collector = QueueCollector(queue)
    registry.register(collector)
    return collector


def serve(port: int, setting: str) -> bool:
    """Show the metrics on 127.0.0.1; port 0 switches it off. False when nothing is shown.

    setting names the key to change when the port is taken: that is a warning, since a service
    without metrics still does its work.
    """
    if port == 0:
        return False
    try:
        start_http_server(port, addr="127.0.0.1", registry=registry)
    except OSError as error:
        log.warning(
            "no metrics: port %d cannot be opened (%s); set %s to a free port or to 0",
            port,
            error.strerror,
            setting,
        )
        return False
    return True
