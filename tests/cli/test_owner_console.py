"""jobs, show, revive, owner and token over a real data directory."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from app import liveness
from app.assembly import House, opened
from app.clock import utcnow
from app.errors import AppError
from app.job import Job, Source, State
from app.queue.port import Claim
from app.settings import load
from tests.cli.console import Console


@pytest.fixture
def house(console: Console) -> Iterator[House]:
    with opened(load(console.environ), liveness.COMMAND) as opened_house:
        yield opened_house


def hand_in(house: House, name: str) -> Job:
    draft = house.intake.draft()
    draft.write(name.encode())
    return house.intake.accept(
        draft, source=Source.WEB, display_name=name, language=None, sender=None, now=utcnow()
    ).job


def failed(house: House, name: str) -> Job:
    job = hand_in(house, name)
    claim = house.queue.claim(
        State.CREATED, worker="w", lease_seconds=60, max_attempts=5, now=utcnow()
    )
    assert isinstance(claim, Claim)
    assert claim.job.id == job.id
    assert house.queue.fail(claim, AppError("not_media"), utcnow())
    return house.queue.get(job.id)


def test_jobs_are_listed_newest_first_and_by_state(console: Console, house: House) -> None:
    bad = failed(house, "bad.mp3")
    good = hand_in(house, "good.mp3")
    assert [line.split()[0] for line in console.run("jobs").out.splitlines()] == [good.id, bad.id]
    (line,) = console.run("jobs", "--state", "failed").out.splitlines()
    assert line.split()[:2] == [bad.id, "failed"]
    assert "bad.mp3" in line
    assert "not_media" in line


def test_i06_jobs_for_programs_are_json_with_times_of_rfc_3339(
    console: Console, house: House
) -> None:
    job = failed(house, "плохо.mp3")
    (told,) = json.loads(console.run("jobs", "--json").out)
    assert told["id"] == job.id
    assert told["state"] == "failed"
    assert told["source"] == "web"
    assert told["name"] == "плохо.mp3"
    assert told["error"]["code"] == "not_media"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", told["created"])


def test_a_long_list_says_that_it_is_cut(console: Console, house: House) -> None:
    for number in range(3):
        hand_in(house, f"{number}.mp3")
    answer = console.run("jobs", "--limit", "2")
    assert len(answer.out.splitlines()) == 2
    assert "--limit" in answer.err


def test_show_tells_why_a_job_failed_and_what_happened(console: Console, house: House) -> None:
    job = failed(house, "bad.mp3")
    shown = console.run("show", job.id).out
    assert "This is not a sound or video file" in shown
    assert "failed" in shown
    assert "attempt 1" in shown
    told = json.loads(console.run("show", job.id, "--json").out)
    assert told["history"][0]["outcome"] == "accepted"
    assert told["text"] is None


def test_show_says_that_no_worker_is_running(console: Console, house: House) -> None:
    job = hand_in(house, "good.mp3")
    shown = console.run("show", job.id).out
    assert "place 1 in line" in shown
    assert "no worker is running" in shown


def test_show_has_no_text_of_a_job_that_is_not_done(console: Console, house: House) -> None:
    answer = console.run("show", hand_in(house, "good.mp3").id, "--format", "srt")
    assert (answer.code, answer.out) == (1, "")
    assert answer.err.startswith("pisar: There is no text yet.")


def test_a_job_that_is_not_there_is_one_line(console: Console, house: House) -> None:
    answer = console.run("show", "nonsense")
    assert (answer.code, answer.err.count("\n")) == (1, 1)


def test_a_name_cannot_drive_the_terminal(console: Console, house: House) -> None:
    hand_in(house, "a\x1b[2Jb\u202e.mp3")
    assert "\x1b" not in console.run("jobs").out
    assert "\u202e" not in console.run("jobs").out


def test_p15_revive_sets_one_job_going_again(console: Console, house: House) -> None:
    job = failed(house, "bad.mp3")
    answer = console.run("revive", job.id, "nonsense")
    assert answer.out == f"{job.id}: created\n"
    assert "nonsense: there is no such job" in answer.err
    assert answer.code == 1
    assert house.queue.get(job.id).state is State.CREATED


def test_p15_revive_sets_a_whole_state_going_again(console: Console, house: House) -> None:
    jobs = [failed(house, f"{number}.mp3") for number in range(3)]
    answer = console.run("revive", "--state", "failed")
    assert answer.code == 0
    assert len(answer.out.splitlines()) == 3
    assert {house.queue.get(job.id).state for job in jobs} == {State.CREATED}
    assert console.run("revive", "--state", "failed").out == ""


def test_a_job_that_has_not_ended_cannot_be_revived(console: Console, house: House) -> None:
    job = hand_in(house, "good.mp3")
    answer = console.run("revive", job.id)
    assert answer.code == 1
    assert answer.err.startswith(f"{job.id}: nothing done: the job is created")


def test_the_invitation_makes_the_owner_once(console: Console, house: House) -> None:
    link = console.run("owner", "invite").out.strip()
    port = console.environ["PISAR_SERVER__PORT"]
    address, _, secret = link.partition("#")
    assert address == f"http://127.0.0.1:{port}/setup"
    house.owners.accept_invitation(secret, "scribe", "a long enough password", utcnow())
    answer = console.run("owner", "invite")
    assert answer.code == 1
    assert answer.err.startswith("pisar: ")


def test_the_invitation_names_the_public_address(console: Console) -> None:
    environ = {"PISAR_SERVER__PUBLIC_URL": "https://pisar.example/sub/"}
    link = console.run("owner", "invite", environ=environ).out
    assert link.startswith("https://pisar.example/sub/setup#")


def test_a_new_password_signs_every_browser_out(console: Console, house: House) -> None:
    secret = house.owners.invite(utcnow())
    owner = house.owners.accept_invitation(secret, "scribe", "a long enough password", utcnow())
    session = house.owners.sessions.start(owner.id, "browser", utcnow())
    answer = console.run("owner", "reset-password", given="another long password\n")
    assert answer.code == 0
    assert "another long password" not in answer.out + answer.err
    assert house.owners.sessions.find(session, utcnow()) is None
    assert house.owners.verify("scribe", "another long password", "1.2.3.4", utcnow()) == owner


def test_a_weak_password_changes_nothing(console: Console, house: House) -> None:
    secret = house.owners.invite(utcnow())
    owner = house.owners.accept_invitation(secret, "scribe", "a long enough password", utcnow())
    answer = console.run("owner", "reset-password", given="short\n")
    assert answer.code == 1
    assert house.owners.verify("scribe", "a long enough password", "1.2.3.4", utcnow()) == owner


def test_without_an_owner_there_is_no_password_to_set(console: Console, house: House) -> None:
    answer = console.run("owner", "reset-password", given="another long password\n")
    assert answer.code == 1
    assert "pisar owner invite" in answer.err


def test_sign_out_all_ends_every_session(console: Console, house: House) -> None:
    secret = house.owners.invite(utcnow())
    owner = house.owners.accept_invitation(secret, "scribe", "a long enough password", utcnow())
    session = house.owners.sessions.start(owner.id, "browser", utcnow())
    assert console.run("owner", "sign-out-all").out == "Sessions ended: 1\n"
    assert house.owners.sessions.find(session, utcnow()) is None


def test_a_token_works_until_it_is_revoked(console: Console, house: House) -> None:
    secret = console.run("token", "create", "script", "--scope", "intake,read").out.strip()
    token = house.owners.tokens.find(secret, utcnow())
    assert token
    assert {*token.scopes} == {"intake", "read"}
    assert secret not in console.run("token", "list").out
    assert console.run("token", "revoke", "script").code == 0
    assert house.owners.tokens.find(secret, utcnow()) is None
    (told,) = json.loads(console.run("token", "list", "--json").out)
    assert told["revoked"]
    assert console.run("token", "revoke", "script").code == 1


def test_the_data_directory_is_nobody_elses(console: Console) -> None:
    assert console.run("jobs").code == 0
    assert Path(console.data_dir).stat().st_mode & 0o077 == 0


def test_s01_moving_the_directory_moves_the_service(console: Console) -> None:
    with opened(load(console.environ), liveness.COMMAND) as house:
        job = hand_in(house, "good.mp3")
    moved = console.data_dir.rename(console.folder / "elsewhere")
    environ = {"PISAR_STORAGE__DATA_DIR": str(moved)}
    assert f"Job:       {job.id}" in console.run("show", job.id, environ=environ).out
    with opened(load(console.environ | environ), liveness.COMMAND) as house:
        file = house.queue.file(job.file)
        assert house.storage.local_path(file).read_bytes() == b"good.mp3"
    assert not console.data_dir.exists()
