"""What the owner sees of an answer to a chat, and sending it again."""

import pytest
from flask.testing import FlaskClient

from app.assembly import House
from app.chats import ChatKind, Chats, Mode
from app.intake import Addressee
from app.job import Job, Source
from app.owners import Scope
from app.queue.replies import Reason, Replies, ReplyState
from tests.web.conftest import Clock
from tests.web.hands import finish, hand_in, sound
from tests.web.visitor import Visitor


@pytest.fixture
def replies(house: House) -> Replies:
    return Replies(house.database, "bot-one")


@pytest.fixture
def job(house: House, clock: Clock) -> Job:
    """A job of a chat that ended, and owes its text."""
    Chats(house.database).seen(42, ChatKind.PRIVATE, "Alpha", Mode.ALL, clock())
    draft = house.intake.draft()
    draft.write(sound())
    addressee = Addressee(7, 42, 3)
    job = house.intake.accept(
        draft,
        source=Source.TELEGRAM,
        display_name="talk.ogg",
        language=None,
        sender=addressee.sender,
        addressee=addressee,
        now=clock(),
    ).job
    finish(house, clock())
    return job


def undeliver(replies: Replies, clock: Clock, reason: Reason) -> None:
    owed = replies.take(clock())
    assert owed
    replies.undelivered(owed.reply, reason, clock())


def test_the_owner_sees_the_chat_and_what_became_of_the_answer(
    job: Job, replies: Replies, signed_in: Visitor, clock: Clock
) -> None:
    page = signed_in.get(f"/jobs/{job.id}").text
    assert "Alpha" in page and "waits to be sent" in page
    owed = replies.take(clock())
    assert owed and "is being sent" in signed_in.get(f"/jobs/{job.id}").text
    replies.sent(owed.reply, clock())
    page = signed_in.get(f"/jobs/{job.id}").text
    assert "was delivered" in page and "job-send-again" not in page


@pytest.mark.parametrize("reason", Reason)
def test_p24_the_owner_sees_why_it_was_not_delivered(
    job: Job, replies: Replies, signed_in: Visitor, clock: Clock, reason: Reason
) -> None:
    undeliver(replies, clock, reason)
    page = signed_in.get(f"/jobs/{job.id}").text
    assert "was not delivered" in page and "job-send-again" in page


def test_p47_the_owner_sends_a_doubtful_answer_again(
    job: Job, replies: Replies, signed_in: Visitor, clock: Clock
) -> None:
    assert replies.take(clock())
    replies.doubt(lambda name: True, clock())
    assert "may have arrived" in signed_in.get(f"/jobs/{job.id}").text
    answer = signed_in.post(f"/jobs/{job.id}/send-again")
    assert (answer.status_code, answer.location) == (303, f"/jobs/{job.id}")
    assert [reply.state for reply in replies.of_job(job.id)] == [
        ReplyState.DOUBTFUL,
        ReplyState.OWED,
    ]
    # A second press of an older page.
    answer = signed_in.post(f"/jobs/{job.id}/send-again")
    assert answer.status_code == 409
    assert "Not sent again" in answer.text


def test_a_program_that_may_manage_sends_it_again(
    house: House, job: Job, replies: Replies, client: FlaskClient, clock: Clock
) -> None:
    undeliver(replies, clock, Reason.REJECTED)
    _, secret = house.owners.tokens.create("manager", {Scope.MANAGE}, clock())
    headers = {"Authorization": f"Bearer {secret}"}
    url = f"/api/jobs/{job.id}"
    assert client.get(url).get_json()["reply"] == {"state": "undelivered", "reason": "rejected"}
    answer = client.post(f"{url}/send-again", headers=headers)
    assert answer.status_code == 200
    assert answer.get_json()["reply"] == {"state": "owed", "reason": None}
    assert client.post(f"{url}/send-again", headers=headers).status_code == 409
    assert client.post(f"{url}/send-again").status_code in (401, 403)


def test_p25_a_job_of_another_door_has_no_answer_to_send(
    house: House, client: FlaskClient, signed_in: Visitor, clock: Clock
) -> None:
    job = hand_in(house, clock())
    finish(house, clock())
    assert client.get(f"/api/jobs/{job.id}").get_json()["reply"] is None
    assert "Telegram</h2>" not in signed_in.get(f"/jobs/{job.id}").text
    assert signed_in.post(f"/jobs/{job.id}/send-again").status_code == 409


def test_the_list_names_the_chat(job: Job, signed_in: Visitor) -> None:
    assert 'title="Alpha"' in signed_in.get("/jobs").text


def test_whose_chat_it_is_nobody_but_the_owner_sees(job: Job, client: FlaskClient) -> None:
    page = client.get(f"/jobs/{job.id}").text
    assert "talk.ogg" in page and "Alpha" not in page
