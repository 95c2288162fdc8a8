"""How long a run measures: the full one, and the quick one of about four minutes."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Plan:
    """Rounds are alternating turns of what is compared; a figure is the median over them."""

    commit_rounds: int
    commit_turn: int
    waiting_rows: int
    claims: int
    peer_rounds: int
    peer_jobs: int
    contest_seconds: float
    kills: int
    transcripts: int
    page_rounds: int
    wakes: int
    idle_seconds: float


FULL = Plan(
    commit_rounds=25,
    commit_turn=120,
    waiting_rows=1_000_000,
    claims=2000,
    peer_rounds=3,
    peer_jobs=400,
    contest_seconds=20,
    kills=10,
    transcripts=4000,
    page_rounds=15,
    wakes=200,
    idle_seconds=60,
)
QUICK = Plan(
    commit_rounds=8,
    commit_turn=60,
    waiting_rows=1_000_000,
    claims=400,
    peer_rounds=1,
    peer_jobs=120,
    contest_seconds=5,
    kills=3,
    transcripts=600,
    page_rounds=4,
    wakes=20,
    idle_seconds=10,
)
