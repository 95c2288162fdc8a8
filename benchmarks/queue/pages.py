"""Q07: the list and the claim with texts of 50 KB behind the jobs, against none, in turns."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from app.assembly import House, opened
from app.clock import utcnow
from app.errors import AppError
from app.liveness import WEB
from app.queue.port import Claim, JobFilter
from app.settings import Settings
from app.web.factory import create_app
from app.web.services import Services
from benchmarks.queue.figures import Figure, at_most, percentile
from benchmarks.queue.fill import Filled
from benchmarks.queue.plan import Plan
from tests.queue.hands import held
from tests.web.visitor import PASSWORD, Visitor

_MOST = 1.2
_TEXT_CHARACTERS = 50 * 1024
_PAGE = 50
_TURNS = 20
_MS = 1000.0


def measure(folder: Path, plan: Plan) -> Sequence[Figure]:
    """The rows of Q07; the time is CPU of the whole process, so that neighbours do not count."""
    with (
        _service(folder / "with", plan, _TEXT_CHARACTERS) as full,
        _service(folder / "without", plan, 0) as empty,
    ):
        works = {
            f"queue.page of {_PAGE}": (_list(full), _list(empty)),
            "the page /jobs": (_browse(full), _browse(empty)),
            "claim": (_claim(full), _claim(empty)),
        }
        return [_compared(what, *pair, plan.page_rounds) for what, pair in works.items()]


def _compared(
    what: str, full: Callable[[], float], empty: Callable[[], float], rounds: int
) -> Figure:
    samples: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for work, spent in zip((full, empty), samples, strict=True):
            spent += [work() for _ in range(_TURNS)]
    with_texts, without = (percentile(spent, 0.5) for spent in samples)
    named = f"{what} with 50 KB texts: {with_texts * _MS:.2f} ms CPU, of that without"
    return at_most("Q07", named, with_texts / without, _MOST)


def _list(house: House) -> Callable[[], float]:
    return lambda: _cpu(lambda: house.queue.page(JobFilter(), before=None, limit=_PAGE))


def _browse(house: House) -> Callable[[], float]:
    """The panel's list as a browser gets it that the owner has signed in with."""
    app = create_app(
        Services(
            settings=house.settings,
            database=house.database,
            queue=house.queue,
            storage=house.storage,
            intake=house.intake,
            owners=house.owners,
            workers_alive=lambda: 1,
        )
    )
    house.owners.accept_invitation(house.owners.invite(utcnow()), "scribe", PASSWORD, utcnow())
    browser = Visitor(app)
    browser.sign_in()
    if browser.get("/jobs").status_code != 200:
        raise RuntimeError("the list does not answer")
    return lambda: _cpu(lambda: browser.get("/jobs"))


def _claim(house: House) -> Callable[[], float]:
    verdict = AppError("too_long")

    def claim_and_end() -> float:
        taken: list[Claim] = []
        seconds = _cpu(lambda: taken.append(held(house.queue, now=utcnow())))
        house.queue.fail(taken[0], verdict, utcnow())
        return seconds

    return claim_and_end


def _cpu(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


@contextmanager
def _service(data_dir: Path, plan: Plan, characters: int) -> Iterator[House]:
    """A service whose newest jobs are done; those that wait were revived, and keep their text."""
    with Filled(data_dir, utcnow()) as filled:
        filled.add("created", plan.page_rounds * _TURNS)
        filled.add("done", plan.transcripts)
        if characters:
            filled.write_texts(characters)
    with opened(Settings.model_validate({"storage": {"data_dir": data_dir}}), WEB) as house:
        yield house
