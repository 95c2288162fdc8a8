"""The queue against a model of it, under random orders of everything that may happen.

The model knows each job's state, holder, pause and attempts. Rules use claims of any age, move
the clock both ways and let workers vanish; after each, the store must agree with the model.
"""

import tempfile
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule

from app.clock import later
from app.errors import AppError
from app.job import ACTIVE, REVIVABLE, STEP_OF, State, backoff_seconds
from app.migrate import open_database
from app.queue.port import Buried, Claim, Nothing
from app.queue.sqlite import SqliteQueue
from tests.queue.hands import RESULTS, START, claim, hand_in, piece

LEASE = 3600
LIMIT = 3
CAP = 300
WORKERS = st.sampled_from(["worker-a", "worker-b", "worker-c"])
CRASH = AppError("convert_crashed")
NEXT = {
    State.CREATED: State.CONVERTED,
    State.CONVERTED: State.TRANSCRIBE,
    State.TRANSCRIBE: State.DONE,
}


@dataclass
class Modelled:
    order: int
    state: State = State.CREATED
    token: str | None = None
    worker: str | None = None
    claimed_at: datetime | None = None
    pause_end: datetime | None = None
    attempts: int = 0
    ended_from: State | None = None
    name: str = "talk.ogg"
    is_deleted: bool = False
    finishes: dict[State, int] = field(default_factory=dict)

    def free(self) -> None:
        self.token = self.worker = self.claimed_at = None


class QueueMachine(RuleBasedStateMachine):
    claims = Bundle("claims")

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.database = open_database(Path(self.folder.name), START)
        # Durability is not under test here, and a sync for each step would cost minutes.
        with self.database.read() as connection:
            connection.execute("PRAGMA synchronous=OFF")
        self.queue = SqliteQueue(self.database, CAP)
        self.now = START
        self.jobs: dict[str, Modelled] = {}
        self.paused: set[State] = set()

    def teardown(self) -> None:
        self.database.close()
        self.folder.cleanup()

    @rule()
    def accept(self) -> None:
        job = hand_in(self.queue, self.now)
        self.jobs[job.id] = Modelled(order=job.seq)

    @rule(seconds=st.sampled_from([0.001, 1, 5, 61, 300, LEASE, 8 * 3600]))
    def time_passes(self, seconds: float) -> None:
        self.now = later(self.now, seconds)

    @rule(seconds=st.sampled_from([0.5, 60, 3600, 86400]))
    def the_clock_steps_back(self, seconds: float) -> None:
        self.now = later(self.now, -seconds)

    @rule(target=claims, state=st.sampled_from(ACTIVE), worker=WORKERS)
    def somebody_claims(self, state: State, worker: str):  # type: ignore[no-untyped-def]
        ready = [] if state in self.paused else self._ready(state)
        taken = claim(self.queue, state, self.now, worker, LEASE, LIMIT)
        if not ready:
            assert isinstance(taken, Nothing)
            return multiple()
        job_id = min(ready, key=self._place)
        known = self.jobs[job_id]
        known.attempts += 1
        if known.attempts > LIMIT:
            assert isinstance(taken, Buried)
            assert taken.job.id == job_id
            known.state, known.ended_from = State.DEAD, state
            return multiple()
        assert isinstance(taken, Claim)
        assert taken.job.id == job_id
        known.token, known.worker = taken.acquisition_id, worker
        known.claimed_at = self.now
        return taken

    @rule(taken=claims)
    def a_step_finishes(self, taken: Claim) -> None:
        known = self.jobs[taken.job.id]
        wrote = self.queue.finish(taken, RESULTS[taken.job.state](), self.now)
        assert wrote == self._holds(taken)
        if wrote:
            known.finishes[known.state] = known.finishes.get(known.state, 0) + 1
            known.state, known.attempts = NEXT[known.state], 0
            known.free()

    @rule(taken=claims)
    def a_step_fails(self, taken: Claim) -> None:
        pause = backoff_seconds(taken.job.attempts, CAP)
        wrote = self.queue.retry(taken, CRASH, pause, self.now)
        assert wrote == self._holds(taken)
        if wrote:
            self.jobs[taken.job.id].pause_end = later(self.now, pause)
            self.jobs[taken.job.id].free()

    @rule(taken=claims)
    def a_step_gives_its_verdict(self, taken: Claim) -> None:
        known = self.jobs[taken.job.id]
        wrote = self.queue.fail(taken, AppError("not_media"), self.now)
        assert wrote == self._holds(taken)
        if wrote:
            known.ended_from, known.state = known.state, State.FAILED
            known.free()

    @rule(taken=claims, delay=st.sampled_from([5, 10]))
    def a_step_snoozes(self, taken: Claim, delay: float) -> None:
        wrote = self.queue.snooze(taken, delay, self.now)
        assert wrote == self._holds(taken)
        if wrote:
            known = self.jobs[taken.job.id]
            known.pause_end, known.attempts = later(self.now, delay), 0
            known.free()

    @rule(taken=claims)
    def a_stopping_worker_gives_back(self, taken: Claim) -> None:
        wrote = self.queue.release(taken, self.now)
        assert wrote == self._holds(taken)
        if wrote:
            self.jobs[taken.job.id].attempts -= 1
            self.jobs[taken.job.id].free()

    @rule(taken=claims, with_piece=st.booleans())
    def a_step_reports(self, taken: Claim, with_piece: bool) -> None:
        if with_piece:
            wrote = self.queue.save_piece(taken, piece(), 0.5, self.now)
        else:
            wrote = self.queue.report(taken, 0.5, self.now)
        assert wrote == self._holds(taken)
        if wrote:
            self.jobs[taken.job.id].claimed_at = self.now

    @rule(worker=WORKERS)
    def a_worker_vanishes(self, worker: str) -> None:
        lost = {id for id, known in self.jobs.items() if known.worker == worker}
        freed = self.queue.release_lost(lambda name: name == worker, self.now)
        assert {job.id for job in freed} == lost
        for job_id in lost:
            known = self.jobs[job_id]
            known.free()
            if known.attempts > 2:
                known.pause_end = later(self.now, backoff_seconds(known.attempts, CAP))

    @rule(data=st.data())
    def the_owner_revives(self, data: st.DataObject) -> None:
        job_id = self._any(data)
        if job_id is None:
            return
        known = self.jobs[job_id]
        if known.state not in REVIVABLE:
            self._is_refused(self.queue.revive, job_id)
            return
        self.queue.revive(job_id, self.now)
        assert known.ended_from is not None
        known.state, known.ended_from, known.attempts = known.ended_from, None, 0
        known.pause_end = None

    @rule(data=st.data())
    def somebody_cancels(self, data: st.DataObject) -> None:
        job_id = self._any(data)
        if job_id is None:
            return
        known = self.jobs[job_id]
        if known.state not in ACTIVE:
            self._is_refused(self.queue.cancel, job_id)
            return
        self.queue.cancel(job_id, self.now)
        known.ended_from, known.state, known.pause_end = known.state, State.FAILED, None
        known.free()

    @rule(data=st.data())
    def the_owner_deletes(self, data: st.DataObject) -> None:
        job_id = self._any(data)
        if job_id is None:
            return
        known = self.jobs[job_id]
        self.queue.delete(job_id, self.now)
        known.is_deleted = True
        if known.state in ACTIVE:
            known.ended_from, known.state, known.pause_end = known.state, State.FAILED, None
            known.free()

    @rule(data=st.data())
    def the_owner_takes_out_of_the_bin(self, data: st.DataObject) -> None:
        binned = [job_id for job_id, known in self.jobs.items() if known.is_deleted]
        if not binned:
            return
        job_id = data.draw(st.sampled_from(binned))
        # The clock may have stepped either way since; a long bin forgives it.
        self.queue.undelete(job_id, 365 * 86400, self.now)
        self.jobs[job_id].is_deleted = False

    @rule(state=st.sampled_from(ACTIVE))
    def the_owner_pauses_a_step(self, state: State) -> None:
        assert self.queue.pause_step(STEP_OF[state], self.now) == (state not in self.paused)
        self.paused.add(state)

    @rule(state=st.sampled_from(ACTIVE))
    def the_owner_resumes_a_step(self, state: State) -> None:
        assert self.queue.resume_step(STEP_OF[state]) == (state in self.paused)
        self.paused.discard(state)

    @rule(data=st.data(), name=st.sampled_from(["one", "two"]))
    def the_owner_edits_a_name(self, data: st.DataObject, name: str) -> None:
        job_id = self._any(data)
        if job_id is None:
            return
        with self.database.transaction() as connection:
            connection.execute(
                "UPDATE transcribe_jobs SET display_name = ? WHERE id = ?", (name, job_id)
            )
        self.jobs[job_id].name = name

    @invariant()
    def no_job_is_lost_or_doubled(self) -> None:
        counts = self.queue.counts()
        expected = {
            state: sum(
                known.state is state and not known.is_deleted for known in self.jobs.values()
            )
            for state in State
        }
        assert counts == expected

    @invariant()
    def every_row_is_as_the_model_says(self) -> None:
        for job_id, known in self.jobs.items():
            if known.is_deleted:
                assert self.queue.find(job_id) is None
                continue
            row = self.queue.get(job_id)
            assert row.state is known.state
            assert row.acquisition_id == known.token
            assert row.worker == known.worker
            assert row.acquire_time == known.claimed_at
            assert row.attempts == known.attempts
            assert row.display_name == known.name
            if known.state is State.DONE:
                assert self.queue.transcript(job_id) is not None

    def _ready(self, state: State) -> list[str]:
        """The jobs that may be claimed now, after pauses and leases that ended are lifted."""
        for known in self.jobs.values():
            if known.state is not state:
                continue
            pause = known.pause_end
            if pause and (pause <= self.now or pause > later(self.now, CAP)):
                known.pause_end = None
            if known.claimed_at and known.claimed_at <= later(self.now, -LEASE):
                known.free()
        return [
            job_id
            for job_id, known in self.jobs.items()
            if known.state is state and known.token is None and known.pause_end is None
        ]

    def _holds(self, taken: Claim) -> bool:
        return self.jobs[taken.job.id].token == taken.acquisition_id

    def _any(self, data: st.DataObject) -> str | None:
        # In the order of acceptance: ids are random, and a replay must draw the same job.
        seen = [job_id for job_id, known in self.jobs.items() if not known.is_deleted]
        return data.draw(st.sampled_from(seen)) if seen else None

    def _place(self, job_id: str) -> tuple[int, int]:
        # What is owed to whom is tested apart; here, that the claim keeps to the row's own place.
        return self.queue.get(job_id).turn, self.jobs[job_id].order

    def _is_refused(self, verb, job_id: str) -> None:  # type: ignore[no-untyped-def]
        try:
            verb(job_id, self.now)
        except AppError as refused:
            assert refused.code == "wrong_state"
        else:
            raise AssertionError("the verb should have been refused")


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(
    max_examples=60,
    stateful_step_count=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
