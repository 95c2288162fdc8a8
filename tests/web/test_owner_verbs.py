"""The owner's verbs at the doors: API and pages, the bin, paused steps (CQ02, CQ11, CQ20)."""

import re
from collections.abc import Callable

import pytest
from flask.testing import FlaskClient

from app.assembly import House
from app.errors import AppError
from app.job import Job, State, Step
from app.owners import Scope
from tests.web.conftest import Clock
from tests.web.hands import claim, fail, finish, hand_in, sound
from tests.web.visitor import HTMX, Visitor

WEEK = 7 * 86400


@pytest.fixture
def manager(house: House, clock: Clock) -> dict[str, str]:
    """The headers of a program that may manage and nothing else."""
    _, secret = house.owners.tokens.create("manager", {Scope.MANAGE}, clock())
    return {"Authorization": f"Bearer {secret}"}


@pytest.fixture
def reader(house: House, clock: Clock) -> dict[str, str]:
    _, secret = house.owners.tokens.create("reader", {Scope.READ}, clock())
    return {"Authorization": f"Bearer {secret}"}


def _waiting(house: House, clock: Clock) -> Job:
    return hand_in(house, clock())


def _running(house: House, clock: Clock) -> Job:
    job = hand_in(house, clock())
    claim(house, State.CREATED, clock())
    return job


def _done(house: House, clock: Clock) -> Job:
    job = hand_in(house, clock())
    finish(house, clock())
    return job


def _failed(house: House, clock: Clock) -> Job:
    job = hand_in(house, clock())
    fail(house, clock())
    return job


def _binned(house: House, clock: Clock) -> Job:
    return house.queue.delete(_done(house, clock).id, clock())


PLACES: dict[str, Callable[[House, Clock], Job]] = {
    "waiting": _waiting,
    "running": _running,
    "done": _done,
    "failed": _failed,
    "in the bin": _binned,
}

API = {
    "revive": ("POST", "/revive"),
    "cancel": ("POST", "/cancel"),
    "delete": ("DELETE", ""),
    "undelete": ("POST", "/undelete"),
}

ANSWERS = {
    "waiting": {"revive": 409, "cancel": 200, "delete": 200, "undelete": 409},
    "running": {"revive": 409, "cancel": 200, "delete": 200, "undelete": 409},
    "done": {"revive": 409, "cancel": 409, "delete": 200, "undelete": 409},
    "failed": {"revive": 200, "cancel": 409, "delete": 200, "undelete": 409},
    "in the bin": {"revive": 404, "cancel": 404, "delete": 404, "undelete": 200},
}


@pytest.mark.parametrize("verb", API)
@pytest.mark.parametrize("place", PLACES)
def test_cq02_the_api_does_each_verb_or_says_why_not(
    client: FlaskClient, house: House, clock: Clock, manager: dict[str, str], place: str, verb: str
) -> None:
    job = PLACES[place](house, clock)
    method, path = API[verb]
    answer = client.open(f"/api/jobs/{job.id}{path}", method=method, headers=manager)
    assert answer.status_code == ANSWERS[place][verb]
    if answer.status_code == 200:
        assert answer.json["id"] == job.id
        assert (answer.json["deleted"] is not None) is (verb == "delete")
    else:
        assert answer.mimetype == "application/problem+json"
        assert answer.json["code"] == {404: "not_found", 409: "wrong_state"}[answer.status_code]


@pytest.mark.parametrize("verb", API)
@pytest.mark.parametrize("place", PLACES)
def test_cq02_a_script_gets_its_row_whatever_the_state(
    signed_in: Visitor, house: House, clock: Clock, place: str, verb: str
) -> None:
    job = PLACES[place](house, clock)
    answer = signed_in.post(f"/jobs/{job.id}/{verb}", headers=HTMX)
    is_gone = verb == "delete" or (place == "in the bin" and verb != "undelete")
    assert re.findall(r'<tr id="(\w+)-', answer.text) == ["gone" if is_gone else "job"]
    expected = ANSWERS[place][verb]
    if place == "in the bin" and is_gone:
        # Where it lies is told with the way out of it: deleting it again has done no harm.
        expected = 200 if verb == "delete" else 409
    assert answer.status_code == expected
    said = {
        ("waiting", "revive"): "Not revived: it is at work again already.",
        ("done", "revive"): "Not revived: it has not failed.",
        ("done", "cancel"): "Not cancelled: it had ended already.",
        ("failed", "undelete"): "It is not in the bin any more.",
        ("in the bin", "cancel"): "in the bin until",
    }
    assert said.get((place, verb), "") in answer.text


@pytest.mark.parametrize("verb", API)
@pytest.mark.parametrize("place", PLACES)
def test_cq02_a_plain_form_that_came_too_late_is_shown_the_job_and_the_reason(
    signed_in: Visitor, house: House, clock: Clock, place: str, verb: str
) -> None:
    job = PLACES[place](house, clock)
    answer = signed_in.post(f"/jobs/{job.id}/{verb}", {"next": "/jobs?state=dead&before=9"})
    if ANSWERS[place][verb] == 409:
        assert answer.status_code == 409
        assert '<p class="notice"' in answer.text
        assert "<h1>interview.wav</h1>" in answer.text
        return
    assert answer.status_code == 303
    is_gone = verb == "delete" or (place == "in the bin" and verb != "undelete")
    told = f"&binned={job.id}" if is_gone else ""
    assert answer.location == f"/jobs?state=dead&before=9{told}"


def test_cq02_a_job_that_never_was_is_404_at_every_door(
    signed_in: Visitor, client: FlaskClient, manager: dict[str, str]
) -> None:
    for verb, (method, path) in API.items():
        for job_id in ("x", "a" * 15):
            answer = client.open(f"/api/jobs/{job_id}{path}", method=method, headers=manager)
            assert (answer.status_code, answer.json["code"]) == (404, "not_found")
            assert signed_in.post(f"/jobs/{job_id}/{verb}").status_code == 404
            by_script = signed_in.post(f"/jobs/{job_id}/{verb}", headers=HTMX)
            assert by_script.status_code == 404
            assert by_script.text.count("<tr") == 1


@pytest.mark.parametrize("place", ["waiting", "running", "done", "failed"])
def test_cq20_a_deleted_job_is_404_wherever_its_id_leads(
    client: FlaskClient, house: House, clock: Clock, place: str
) -> None:
    job = PLACES[place](house, clock)
    files = house.queue.files_of(job.id)
    addresses = [f"/api/jobs/{job.id}", f"/jobs/{job.id}", f"/jobs/{job.id}/source"]
    addresses += [f"/jobs/{job.id}/live", f"/jobs/{job.id}/line"]
    addresses += [f"/api/files/files/{file.id}/{file.file}" for file in files]
    if place == "done":
        forms = ("txt", "srt", "vtt", "json")
        addresses += [f"/api/jobs/{job.id}/transcript.{form}" for form in forms]
        addresses += [f"/jobs/{job.id}/audio"]
    for address in addresses:
        assert client.get(address).status_code == 200, address
    house.queue.delete(job.id, clock())
    for address in addresses:
        answer = client.get(address)
        assert answer.status_code == 404, address
        assert job.display_name not in answer.text
    assert client.post(f"/api/jobs/{job.id}/cancel").status_code == 404
    assert client.post(f"/jobs/{job.id}/again").status_code == 404


def test_cq20_a_worker_that_comes_late_finds_nothing(
    client: FlaskClient, house: House, clock: Clock, manager: dict[str, str]
) -> None:
    job = hand_in(house, clock())
    held = claim(house, State.CREATED, clock())
    assert client.delete(f"/api/jobs/{job.id}", headers=manager).status_code == 200
    assert not house.queue.fail(held, AppError("internal"), clock())
    assert not house.queue.report(held, 0.5, clock())


def test_s31_the_bin_is_listed_alone(
    client: FlaskClient, house: House, clock: Clock, reader: dict[str, str]
) -> None:
    gone, kept = _binned(house, clock), _waiting(house, clock)

    def listed(query: str) -> list[str]:
        answer = client.get(f"/api/jobs{query}", headers=reader)
        assert answer.status_code == 200
        return [job["id"] for job in answer.json["jobs"]]

    assert listed("") == [kept.id]
    assert listed("?state=bin") == [gone.id]
    assert client.get("/api/jobs?state=bin,done", headers=reader).status_code == 400


def test_s31_only_the_owner_and_who_may_manage_delete(
    client: FlaskClient, visitor: Visitor, house: House, clock: Clock, reader: dict[str, str]
) -> None:
    job = _waiting(house, clock)
    assert client.delete(f"/api/jobs/{job.id}").status_code == 401
    assert client.delete(f"/api/jobs/{job.id}", headers=reader).status_code == 403
    assert visitor.post(f"/jobs/{job.id}/delete").location.startswith("/login")
    assert house.queue.find(job.id)


def test_s31_a_key_whose_job_is_in_the_bin_answers_with_that_job(
    client: FlaskClient, clock: Clock, house: House
) -> None:
    key = {"Idempotency-Key": "one"}
    first = client.post("/api/jobs?name=a.wav", data=sound(), headers=key)
    assert first.json["deleted"] is None
    house.queue.delete(first.json["id"], clock())
    again = client.post("/api/jobs?name=a.wav", data=sound(), headers=key)
    assert (again.status_code, again.json["id"]) == (200, first.json["id"])
    assert again.json["deleted"] == "2026-11-30T12:00:00.000Z"


def test_s31_undo_without_scripts_puts_everything_back(
    signed_in: Visitor, house: House, clock: Clock
) -> None:
    job = _done(house, clock)
    answer = signed_in.post(f"/jobs/{job.id}/delete", {"next": "/jobs?state=done"})
    page = signed_in.get(answer.location).text
    assert "in the bin until" in page
    assert "7 Dec 2026, 12:00" in page
    assert f'<tr id="job-{job.id}"' not in page
    undo = re.search(rf'action="(/jobs/{job.id}/undelete)">\s*<input[^>]*value="([^"]*)"', page)
    assert undo
    back = signed_in.post(undo[1], {"next": undo[2]})
    assert back.location == "/jobs?state=done"
    assert f'<tr id="job-{job.id}"' in signed_in.get(back.location).text
    # The notice stands only while it is true, however often the address is opened.
    assert "in the bin until" not in signed_in.get(answer.location).text


def test_s31_undo_by_script_gives_the_row_back(
    signed_in: Visitor, house: House, clock: Clock
) -> None:
    job = _done(house, clock)
    gone = signed_in.post(f"/jobs/{job.id}/delete", headers=HTMX)
    assert f'hx-post="/jobs/{job.id}/undelete"' in gone.text
    assert "interview.wav" in gone.text
    row = signed_in.post(f"/jobs/{job.id}/undelete", headers=HTMX)
    assert f'<tr id="job-{job.id}"' in row.text
    assert 'data-state="done"' in row.text


def test_s31_the_bin_says_how_long_each_stays(
    signed_in: Visitor, house: House, clock: Clock
) -> None:
    job = _binned(house, clock)
    page = signed_in.get("/jobs?state=bin").text
    assert re.search(r'id="tab-bin"[^>]*aria-current="page"', page)
    assert "7 Dec 2026, 12:00" in page
    assert f'action="/jobs/{job.id}/undelete"' in page
    assert "jobs-poll" not in page
    clock.go_on(WEEK)
    signed_in.sign_in()
    over = signed_in.get("/jobs?state=bin").text
    assert "no longer" in over
    assert "undelete" not in over
    late = signed_in.post(f"/jobs/{job.id}/undelete", headers=HTMX)
    assert late.status_code == 409
    assert "its time in the bin is over" in late.text


def test_s31_an_empty_bin_says_what_would_fill_it(signed_in: Visitor) -> None:
    assert "The bin is empty." in signed_in.get("/jobs?state=bin").text


def test_s31_the_owner_is_told_at_its_address_and_nobody_else_is(
    signed_in: Visitor, visitor: Visitor, house: House, clock: Clock
) -> None:
    job = _binned(house, clock)
    told = signed_in.get(f"/jobs/{job.id}")
    assert told.status_code == 404
    assert f'action="/jobs/{job.id}/undelete"' in told.text
    live = signed_in.get(f"/jobs/{job.id}/live", headers=HTMX)
    assert live.status_code == 404
    assert 'id="job-state"' in live.text
    assert "hx-get" not in live.text
    for path in ("", "/live"):
        nobody = visitor.get(f"/jobs/{job.id}{path}")
        assert nobody.status_code == 404
        assert "in the bin" not in nobody.text.lower()
    assert "in the bin" not in visitor.post(f"/jobs/{job.id}/cancel", headers=HTMX).text


def test_cq20_a_row_deleted_elsewhere_leaves_an_open_list(
    signed_in: Visitor, house: House, clock: Clock
) -> None:
    job = _running(house, clock)
    page = signed_in.get("/jobs").text
    (mark,) = re.findall(r'name="watch" value="([^"]+)"', page)
    house.queue.delete(job.id, clock())
    answer = signed_in.get(f"/jobs/changes?first=1&newest=1&watch={mark}", headers=HTMX).text
    assert re.search(rf'<tr id="job-{job.id}" hx-swap-oob="delete"', answer)


@pytest.mark.parametrize("code", ["no_audio_track", "not_media", "too_long"])
def test_cq11_revive_explains_where_it_will_hardly_help(
    signed_in: Visitor, house: House, clock: Clock, code: str
) -> None:
    job = hand_in(house, clock())
    fail(house, clock(), code)
    page = signed_in.get(f"/jobs/{job.id}").text
    assert "The verdict is on the recording itself" in page
    assert 'class="primary">' not in page
    row = signed_in.post(f"/jobs/{job.id}/revive", headers=HTMX).text
    assert "the verdict was on the recording, so expect the same again" in row


def test_cq11_revive_explains_nothing_where_it_helps(
    signed_in: Visitor, house: House, clock: Clock
) -> None:
    job = hand_in(house, clock())
    house.queue.cancel(job.id, clock())
    page = signed_in.get(f"/jobs/{job.id}").text
    assert "It goes on from the step where it ended." in page
    assert "The verdict is on" not in page
    row = signed_in.post(f"/jobs/{job.id}/revive", headers=HTMX).text
    assert "expect the same again" not in row


def test_a_step_is_paused_and_resumed_over_the_api(
    client: FlaskClient,
    house: House,
    clock: Clock,
    manager: dict[str, str],
    reader: dict[str, str],
) -> None:
    free = [{"step": step.value, "paused": None} for step in Step]
    assert client.get("/api/steps", headers=reader).json == {"steps": free}
    paused = {"step": "convert", "paused": "2026-11-30T12:00:00.000Z"}
    assert client.post("/api/steps/convert/pause", headers=manager).json == paused
    clock.go_on(60)
    assert client.post("/api/steps/convert/pause", headers=manager).json == paused
    assert client.get("/api/steps", headers=reader).json == {"steps": [paused, *free[1:]]}
    for _ in range(2):
        assert client.post("/api/steps/convert/resume", headers=manager).json == free[0]
    assert house.queue.paused_steps() == {}
    assert client.post("/api/steps/sleep/pause", headers=manager).status_code == 404
    assert client.post("/api/steps/convert/pause", headers=reader).status_code == 403
    assert client.post("/api/steps/convert/pause").status_code == 401


def test_a_paused_step_promises_neither_a_place_nor_a_time(
    client: FlaskClient, signed_in: Visitor, house: House, clock: Clock
) -> None:
    running = _running(house, clock)
    stumbled = hand_in(house, clock(), sound(0.2))
    held = claim(house, State.CREATED, clock())
    assert house.queue.retry(held, AppError("disk_full"), 120, clock())
    waiting = hand_in(house, clock(), sound(0.3))
    house.queue.pause_step(Step.CONVERT, clock())
    for job in (stumbled, waiting):
        told = client.get(f"/api/jobs/{job.id}").json
        assert told["waiting_for"]["code"] == "step_paused"
        assert (told["position"], told["next_try"]) == (None, None)
        page = signed_in.get(f"/jobs/{job.id}").text
        assert "Paused by the owner" in page
        assert "in line" not in page
        assert "next try" not in page
    assert client.get(f"/api/jobs/{running.id}").json["waiting_for"] is None
    assert "Converting" in signed_in.get(f"/jobs/{running.id}").text
    house.queue.resume_step(Step.CONVERT)
    assert client.get(f"/api/jobs/{waiting.id}").json["position"] == 1
    assert "next in line" in signed_in.get(f"/jobs/{waiting.id}").text


def test_a_pause_of_another_step_changes_nothing_for_a_job(
    client: FlaskClient, house: House, clock: Clock
) -> None:
    job = _waiting(house, clock)
    house.queue.pause_step(Step.CHECK, clock())
    assert client.get(f"/api/jobs/{job.id}").json["position"] == 1


def test_a_paused_step_is_said_even_when_no_worker_runs(
    client: FlaskClient, house: House, clock: Clock, workers: list[int]
) -> None:
    jobs = _running(house, clock), _waiting(house, clock)
    house.queue.pause_step(Step.CONVERT, clock())
    workers[0] = 0
    codes = [client.get(f"/api/jobs/{job.id}").json["waiting_for"]["code"] for job in jobs]
    assert codes == ["no_worker", "step_paused"]


def test_the_list_has_a_switch_for_each_step_and_tells_which_are_paused(
    signed_in: Visitor, house: House, clock: Clock
) -> None:
    _waiting(house, clock)
    page = signed_in.get("/jobs?state=created").text
    assert re.findall(r'action="/steps/(\w+)/(\w+)"', page) == [
        ("convert", "pause"),
        ("recognize", "pause"),
        ("check", "pause"),
    ]
    answer = signed_in.post("/steps/convert/pause", {"next": "/jobs?state=created"})
    assert (answer.status_code, answer.location) == (303, "/jobs?state=created")
    paused = signed_in.get("/jobs?state=created").text
    assert "Paused by the owner since" in paused
    assert sorted(re.findall(r'action="/steps/(\w+)/(\w+)"', paused)) == [
        ("check", "pause"),
        ("convert", "resume"),
        ("recognize", "pause"),
    ]
    assert '<span class="word">Paused</span>' in paused
    signed_in.post("/steps/convert/resume")
    assert "Paused by the owner" not in signed_in.get("/jobs").text


def test_an_open_list_learns_of_a_pause(signed_in: Visitor, house: House, clock: Clock) -> None:
    _waiting(house, clock)
    page = signed_in.get("/jobs").text
    found = re.search(r'hx-get="(/jobs/changes[^"]*)"', page)
    assert found
    address = found[1].replace("&amp;", "&")
    assert signed_in.get(address, headers=HTMX).status_code == 204
    house.queue.pause_step(Step.CHECK, clock())
    changed = signed_in.get(address, headers=HTMX).text
    assert "Paused by the owner since" in changed
    assert 'id="jobs-steps"' in changed
