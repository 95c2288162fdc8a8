import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.chats import ChatKind
from app.telegram.incoming import (
    Chatter,
    Command,
    MalformedError,
    Meaning,
    Membership,
    Moved,
    Person,
    Place,
    Press,
    Sent,
    read,
    update_id,
)
from tests.telegram.updates import CHANNEL, GROUP, PERSON, PRIVATE, member, message, press, voice

BOT = "scribe_bot"


def meaning(update: dict[str, Any]) -> Meaning | None:
    return read(update, BOT)


def sent(update: dict[str, Any]) -> Sent:
    found = meaning(update)
    assert isinstance(found, Sent), found
    return found


def test_a_voice_message_is_a_recording() -> None:
    found = sent(message(5, **voice(duration=61)))
    assert found.place == Place(7, ChatKind.PRIVATE, "Alpha", None, Person(7, "en"))
    assert (found.message, found.album, found.is_asked) == (5, None, False)
    file = found.recording
    assert (file.kind, file.file_id, file.size, file.seconds) == ("voice", "V1", 1000, 61)


@pytest.mark.parametrize("kind", ["voice", "audio", "video", "video_note", "document"])
def test_ct23_each_kind_is_taken_with_only_its_file_id(kind: str) -> None:
    found = sent(message(**{kind: {"file_id": "F1"}})).recording
    assert (found.kind, found.size, found.seconds, found.name) == (kind, None, None, None)


def test_ct23_the_name_is_the_files_own_or_the_title() -> None:
    assert sent(message(document={"file_id": "F", "file_name": "call.m4a"})).recording.name == (
        "call.m4a"
    )
    assert sent(message(audio={"file_id": "F", "title": "Talk"})).recording.name == "Talk"


def test_a_gif_is_no_recording() -> None:
    gif = {"file_id": "G", "duration": 1}
    assert isinstance(meaning(message(animation=gif, document=gif)), Chatter)


def test_ct13_an_album_is_known_by_its_group() -> None:
    assert sent(message(media_group_id="135", **voice())).album == "135"


def test_a_topic_is_kept_and_a_mere_thread_of_replies_is_not() -> None:
    here = {"chat": GROUP, "message_thread_id": 31, **voice()}
    assert sent(message(**here, is_topic_message=True)).place.thread == 31
    assert sent(message(**here)).place.thread is None


def test_a_channel_post_has_nobody_behind_it() -> None:
    post = message(chat=CHANNEL, sender_chat=CHANNEL, **voice())
    found = sent({"update_id": 1, "channel_post": post["message"]})
    assert (found.place.person, found.place.is_admin) == (None, True)


def test_ct12_an_anonymous_admin_has_no_number_of_his_own() -> None:
    anonymous = {"id": 1087968824, "is_bot": True, "first_name": "Group"}
    place = sent(message(chat=GROUP, sender_chat=GROUP, **{"from": anonymous}, **voice())).place
    assert (place.person, place.is_admin) == (None, True)
    # A channel that posts in a group is no admin of it.
    place = sent(message(chat=GROUP, sender_chat=CHANNEL, **{"from": anonymous}, **voice())).place
    assert (place.person, place.is_admin) == (None, False)


def test_ct22_an_edited_message_means_nothing() -> None:
    edited = message(**voice(), caption="new")["message"]
    assert meaning({"update_id": 2, "edited_message": edited}) is None
    assert meaning({"update_id": 2, "edited_channel_post": edited}) is None


@pytest.mark.parametrize(
    ("text", "name", "argument"),
    [
        ("/start", "start", ""),
        ("/start deep", "start", "deep"),
        ("/lang@Scribe_Bot ru", "lang", "ru"),
        ("/text\nplease", "text", "please"),
    ],
)
def test_commands(text: str, name: str, argument: str) -> None:
    found = meaning(message(9, text=text))
    assert isinstance(found, Command)
    assert (found.name, found.argument, found.message) == (name, argument, 9)


@pytest.mark.parametrize("text", ["/start@other_bot", "//", "/ start", "/Привет", "hello /start"])
def test_another_bots_commands_are_not_ours(text: str) -> None:
    assert meaning(message(text=text, chat=GROUP)) is None
    assert isinstance(meaning(message(text=text)), Chatter)


def test_ct16_a_command_knows_the_recording_it_answers() -> None:
    voice_of_another = message(3, chat=GROUP, **voice())["message"]
    found = meaning(message(4, chat=GROUP, text="/text", reply_to_message=voice_of_another))
    assert isinstance(found, Command)
    assert found.replied_to == 3
    assert found.replied and found.replied.message == 3
    found = meaning(message(4, text="/cancel", reply_to_message=message(2, text="a")["message"]))
    assert isinstance(found, Command)
    assert (found.replied_to, found.replied) == (2, None)


def test_ct16_a_caption_may_ask_for_the_text() -> None:
    assert sent(message(chat=GROUP, caption="/text", **voice())).is_asked
    assert not sent(message(chat=GROUP, caption="my text", **voice())).is_asked


def test_a_button_is_pressed_by_a_person_on_the_bots_message() -> None:
    found = meaning(press("srt:abc", 50))
    assert isinstance(found, Press)
    assert (found.data, found.message, found.callback) == ("srt:abc", 50, "c1")
    assert found.place.person == Person(7, "en")
    assert meaning({"update_id": 1, "callback_query": {"id": "c", "data": "x"}}) is None


@pytest.mark.parametrize("kind", ["channel", "supergroup"])
def test_a_button_is_pressed_by_a_person_whose_rights_are_not_those_of_the_message(
    kind: str,
) -> None:
    chat = {"id": -100, "type": kind, "title": "News"}
    shown = {"message_id": 50, "chat": chat, "sender_chat": chat}
    found = meaning({"callback_query": {"id": "c1", "data": "x", "from": PERSON, "message": shown}})
    assert isinstance(found, Press)
    assert (found.place.person, found.place.is_admin) == (Person(7, "en"), False)


def test_ct15_coming_into_a_chat_and_leaving_it() -> None:
    found = meaning(member("member"))
    assert isinstance(found, Membership)
    assert (found.is_inside, found.was_inside, found.is_admin) == (True, False, False)
    found = meaning(member("administrator", "member"))
    assert isinstance(found, Membership)
    assert (found.is_inside, found.was_inside, found.is_admin) == (True, True, True)
    found = meaning(member("kicked", "member", PRIVATE))
    assert isinstance(found, Membership) and not found.is_inside


def test_a_group_that_moves() -> None:
    old = GROUP | {"id": -5, "type": "group"}
    assert meaning(message(chat=old, migrate_to_chat_id=-1005)) == Moved(-5, -1005)
    new = GROUP | {"id": -1005}
    assert meaning(message(chat=new, migrate_from_chat_id=-5)) == Moved(-5, -1005)


def test_the_language_is_the_persons_where_we_speak_it() -> None:
    def language(**fields: Any) -> str | None:
        place = sent(message(**{"from": PERSON | fields}, **voice())).place
        return place.person.language if place.person else None

    assert language(language_code="ru-RU") == "ru"
    assert language(language_code="de") == "en"
    assert language(language_code=None) is None


def test_a_name_that_would_break_a_line_is_cleaned() -> None:
    chat = PRIVATE | {"first_name": "Al\npha\u202e", "last_name": "\ud800X"}
    assert sent(message(chat=chat, **voice())).place.title == "Alpha X"
    assert sent(message(chat=PRIVATE | {"first_name": ""}, **voice())).place.title == "7"


MALFORMED: list[Any] = [
    {},
    {"message": None},
    {"message": []},
    {"message": {"message_id": 1}},
    message(chat={"id": 7}, **voice()),
    message(chat={"id": 2**70, "type": "private"}, **voice()),
    message(chat={"id": "7", "type": "private"}, **voice()),
    message(chat={"id": True, "type": "private"}, **voice()),
    message(chat={"id": 7, "type": "secret"}, **voice()),
    message(2**60, **voice()),
    message(**{"from": "me"}, **voice()),
    message(**{"from": {"is_bot": False}}, **voice()),
    message(voice="a file"),
    message(voice={}),
    message(voice={"file_id": 5}),
    message(voice={"file_id": "../../etc\n"}),
    message(reply_to_message={}, text="/text"),
    {"callback_query": {"data": "x"}},
    {"my_chat_member": {"chat": GROUP}},
    "update",
]


@pytest.mark.parametrize("update", MALFORMED, ids=range(len(MALFORMED)))
def test_ct12_what_does_not_fit_is_told_without_a_word_of_it(update: Any) -> None:
    try:
        assert read(update, BOT) is None
    except MalformedError as error:
        assert len(str(error)) < 30


WORDS = [
    *("message", "chat", "from", "id", "type", "text", "voice", "file_id", "message_id", "data"),
    *("callback_query", "my_chat_member", "new_chat_member", "status", "caption"),
    "reply_to_message",
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(WORDS),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(JSON)
def test_ct12_anything_at_all_is_either_read_or_malformed(update: object) -> None:
    for ask in (lambda: read(update, BOT), lambda: update_id(update)):
        with suppress(MalformedError):
            ask()


def test_numbers_beyond_the_store_are_malformed() -> None:
    with pytest.raises(MalformedError):
        update_id({"update_id": 2**63})
    assert update_id(json.loads('{"update_id": 12}')) == 12
