"""The Bot API server that the bot's tests stand on answers as the original does."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from tests.telegram.asking import Ask, asking, refusal
from tests.telegram.double import TOKEN, Telegram
from tests.telegram.double.people import PeopleGroup, Person

NO_TEXT = "Bad Request: message text is empty"
NO_REPLY = "Bad Request: message to be replied not found"
UNPARSED = "Bad Request: can't parse entities: "
BAD_BUTTON = "Bad Request: can't parse inline keyboard button: "
TOO_OLD = "Bad Request: query is too old and response timeout expired or query ID is invalid"
RESERVED = "Character '.' is reserved and must be escaped with the preceding '\\'"


@pytest.fixture
def telegram() -> Iterator[Telegram]:
    with Telegram(slows_hasty=False) as double:
        yield double


@pytest.fixture
def ask(telegram: Telegram) -> Iterator[Ask]:
    with asking(telegram) as client:
        yield client


@pytest.fixture
def alpha(telegram: Telegram) -> Person:
    alpha = telegram.person("Alpha")
    alpha.starts()
    return alpha


def keyboard(**button: object) -> dict[str, Any]:
    return {"inline_keyboard": [[button]]}


# Each as somebody got it from the original, see tests/telegram/double/errors.py.
@pytest.mark.parametrize(
    ("arguments", "description"),
    [
        ({}, NO_TEXT),
        ({"text": ""}, NO_TEXT),
        ({"text": " \n"}, "Bad Request: text must be non-empty"),
        ({"text": "x" * 4097}, "Bad Request: message is too long"),
        ({"text": "😀" * 2049}, "Bad Request: message is too long"),
        ({"text": "x" * 33000}, "Bad Request: text is too long"),
        ({"text": "x", "chat_id": ""}, "Bad Request: chat_id is empty"),
        ({"text": "x", "chat_id": 0}, "Bad Request: chat not found"),
        ({"text": "x", "chat_id": -1}, "Bad Request: chat not found"),
        ({"text": "x", "chat_id": "nobody"}, "Bad Request: chat not found"),
        ({"text": "x", "chat_id": "@nobody"}, "Bad Request: chat not found"),
        ({"text": "x", "message_thread_id": 999}, "Bad Request: message thread not found"),
        ({"text": "x", "reply_parameters": {"message_id": 999}}, NO_REPLY),
        ({"text": "x", "reply_to_message_id": 999}, NO_REPLY),
        (
            {"text": "x", "reply_parameters": {"quote": "x"}},
            'Bad Request: can\'t find field "message_id"',
        ),
        (
            {"text": "x", "reply_parameters": "{"},
            "Bad Request: can't parse reply parameters JSON object",
        ),
        (
            {"text": "x", "reply_parameters": [1]},
            "Bad Request: object expected as reply parameters",
        ),
        ({"text": "x", "parse_mode": "BBCode"}, "Bad Request: unsupported parse_mode"),
        ({"text": "hello.", "parse_mode": "MarkdownV2"}, UNPARSED + RESERVED),
        (
            {"text": "*half", "parse_mode": "MarkdownV2"},
            UNPARSED + "Can't find end of Bold entity at byte offset 0",
        ),
        (
            {"text": "*half", "parse_mode": "Markdown"},
            UNPARSED + "Can't find end of the entity starting at byte offset 0",
        ),
        (
            {"text": "<b><i>x</b></i>", "parse_mode": "html"},
            UNPARSED + 'Unmatched end tag at byte offset 7, expected "</i>", found "</b>"',
        ),
        (
            {"text": "<p>x</p>", "parse_mode": "HTML"},
            UNPARSED + 'Unsupported start tag "p" at byte offset 0',
        ),
        (
            {"text": "<b>x", "parse_mode": "HTML"},
            UNPARSED + 'Can\'t find end tag corresponding to start tag "b"',
        ),
        (
            {"text": "x", "reply_markup": {"inline_keyboard": "x"}},
            'Bad Request: field "inline_keyboard" must be of type Array',
        ),
        (
            {"text": "x", "reply_markup": keyboard(callback_data="x")},
            BAD_BUTTON + 'Can\'t find field "text"',
        ),
        (
            {"text": "x", "reply_markup": keyboard(text="x", callback_data="")},
            BAD_BUTTON + "Text buttons are unallowed in the inline keyboard",
        ),
        (
            {"text": "x", "reply_markup": keyboard(text="x", callback_data="ж" * 33)},
            "Bad Request: BUTTON_DATA_INVALID",
        ),
        (
            {"text": "x", "link_preview_options": {"is_disabled": "yes"}},
            'Bad Request: field "is_disabled" must be of type Boolean',
        ),
    ],
)
def test_a_message_that_the_original_would_not_send_is_refused_in_its_words(
    telegram: Telegram, ask: Ask, alpha: Person, arguments: dict[str, Any], description: str
) -> None:
    answer = ask("sendMessage", **({"chat_id": alpha.id} | arguments))
    assert answer == {"ok": False, "error_code": 400, "description": description}
    assert not alpha.chat.from_bot
    assert telegram.journal.refusals() == [f"sendMessage: {description}"]


def test_a_message_is_kept_trimmed_and_without_its_marks(ask: Ask, alpha: Person) -> None:
    ask("sendMessage", chat_id=alpha.id, text="\n  4096 " + "x" * 4089 + "  ")
    ask("sendMessage", chat_id=alpha.id, text="<b>a</b> &lt;", parse_mode="HTML")
    ask("sendMessage", chat_id=alpha.id, text=r"*a* _b_ `c` [d](e) f\.", parse_mode="MarkdownV2")
    assert alpha.chat.texts == ["4096 " + "x" * 4089, "a <", "a b c d f."]


@pytest.mark.parametrize(
    ("path", "code", "description"),
    [
        ("/", 404, "Not Found"),
        ("/bot/getMe", 404, "Not Found"),
        ("/botnonsense/getMe", 404, "Not Found"),
        (f"/bot{TOKEN}x/getMe", 401, "Unauthorized"),
        (f"/bot{TOKEN}/getYou", 404, "Not Found: method not found"),
        (f"/file/bot{TOKEN}/voice/file_9.oga", 404, "Not Found"),
        (f"/file/bot{TOKEN}x/voice/file_0.oga", 401, "Unauthorized"),
    ],
)
def test_an_address_that_leads_nowhere_is_refused(
    telegram: Telegram, path: str, code: int, description: str
) -> None:
    answer = requests.get(telegram.api_url + path, timeout=20)
    assert (answer.status_code, answer.json()["description"]) == (code, description)


@pytest.mark.parametrize("way", ["params", "data", "json", "files"])
def test_arguments_come_in_every_way_that_the_original_reads(
    telegram: Telegram, alpha: Person, way: str
) -> None:
    arguments: dict[str, Any] = {"chat_id": str(alpha.id), "text": "Привет, мир"}
    if way == "files":
        arguments = {name: (None, value) for name, value in arguments.items()}
    url = f"{telegram.api_url}/bot{telegram.token}/SENDMESSAGE"
    answer = requests.request("POST", url, **{way: arguments}, timeout=20).json()  # type: ignore[arg-type]
    assert answer["result"]["text"] == "Привет, мир"
    assert alpha.chat.texts == ["Привет, мир"]


def test_who_blocks_the_bot_is_written_to_no_more(ask: Ask, alpha: Person) -> None:
    sent = ask("sendMessage", chat_id=alpha.id, text="x")["result"]["message_id"]
    alpha.blocks_bot()
    blocked = "403 Forbidden: bot was blocked by the user"
    assert refusal(ask("sendMessage", chat_id=alpha.id, text="y")) == blocked
    assert refusal(ask("sendChatAction", chat_id=alpha.id, action="typing")) == blocked
    edit = {"chat_id": alpha.id, "message_id": sent, "text": "y"}
    assert refusal(ask("editMessageText", **edit)) == blocked
    assert ask("deleteMessage", chat_id=alpha.id, message_id=alpha.chat.from_bot[0].id)["ok"]
    alpha.unblocks_bot()
    assert ask("sendMessage", chat_id=alpha.id, text="y")["ok"]
    alpha.deletes_account()
    gone = refusal(ask("sendMessage", chat_id=alpha.id, text="z"))
    assert gone == "403 Forbidden: user is deactivated"


def test_a_stranger_cannot_be_written_to(telegram: Telegram, ask: Ask, alpha: Person) -> None:
    beta = telegram.person("Beta")
    send = {"chat_id": beta.id, "text": "x"}
    assert refusal(ask("sendMessage", **send)) == "400 Bad Request: chat not found"
    group = telegram.group("Office", alpha, beta)
    group.adds_bot(alpha, is_admin=True)
    beta.says("hello", to=group)
    forbidden = "403 Forbidden: bot can't initiate conversation with a user"
    assert refusal(ask("sendMessage", **send)) == forbidden
    beta.starts()
    assert ask("sendMessage", **send)["ok"]


def test_a_group_lets_the_bot_write_as_long_as_it_is_in(
    telegram: Telegram, ask: Ask, alpha: Person
) -> None:
    group = telegram.group("Office", alpha)
    send = {"chat_id": group.id, "text": "x"}
    assert refusal(ask("sendMessage", **send)).endswith("not a member of the supergroup chat")
    group.adds_bot(alpha)
    assert ask("sendMessage", **send)["ok"]
    group.mutes("text messages")
    rights = "400 Bad Request: not enough rights to send text messages to the chat"
    assert refusal(ask("sendMessage", **send)) == rights
    group.promotes_bot(alpha)
    assert ask("sendMessage", **send)["ok"]
    group.kicks_bot(alpha)
    assert refusal(ask("sendMessage", **send)).endswith("bot was kicked from the supergroup chat")


def test_a_group_that_moved_tells_its_new_number(
    telegram: Telegram, ask: Ask, alpha: Person
) -> None:
    old = telegram.group("Office", alpha, is_super=False)
    old.adds_bot(alpha)
    new = old.becomes_supergroup(alpha)
    answer = ask("sendMessage", chat_id=old.id, text="x")
    assert answer["parameters"] == {"migrate_to_chat_id": new.id}
    assert refusal(answer) == ("400 Bad Request: group chat was upgraded to a supergroup chat")
    assert ask("sendMessage", chat_id=new.id, text="x")["ok"]
    told = [update["message"] for update in ask("getUpdates")["result"] if "message" in update]
    assert told[-2]["migrate_to_chat_id"] == new.id
    assert told[-1]["migrate_from_chat_id"] == old.id


@pytest.fixture
def forum(telegram: Telegram, alpha: Person) -> PeopleGroup:
    forum = telegram.group("Forum", alpha, is_forum=True)
    forum.adds_bot(alpha, is_admin=True)
    return forum


def test_topics_are_told_and_written_to_while_they_are_open(
    ask: Ask, alpha: Person, forum: PeopleGroup
) -> None:
    topic = forum.opens_topic("Voices", alpha)
    sent = alpha.sends_voice(b"OggS", to=forum, topic=topic)
    told = ask("getUpdates")["result"][-1]["message"]
    assert (told["message_thread_id"], told["is_topic_message"]) == (topic, True)
    # The original tells of the topic's beginning as of a message that each of its own answers.
    assert told["reply_to_message"]["forum_topic_created"]["name"] == "Voices"
    send = {"chat_id": forum.id, "text": "x", "message_thread_id": topic}
    ask("sendMessage", **send, reply_parameters={"message_id": sent.id})
    assert forum.answers_to(sent)[0].thread == topic
    forum.closes_topic(topic)
    assert refusal(ask("sendMessage", **send)) == "400 Bad Request: TOPIC_CLOSED"
    forum.deletes_topic(topic)
    assert refusal(ask("sendMessage", **send)) == "400 Bad Request: message thread not found"


def test_an_answer_to_a_deleted_message_needs_leave_to_stand_alone(ask: Ask, alpha: Person) -> None:
    sent = alpha.sends_voice(b"OggS")
    alpha.deletes(sent)
    send = {"chat_id": alpha.id, "text": "x"}
    reply = {"message_id": sent.id}
    assert refusal(ask("sendMessage", **send, reply_parameters=reply)) == f"400 {NO_REPLY}"
    reply["allow_sending_without_reply"] = True
    answer = ask("sendMessage", **send, reply_parameters=reply)
    assert "reply_to_message" not in answer["result"]


def test_an_edit_must_change_a_text_of_the_bots_that_stands(ask: Ask, alpha: Person) -> None:
    sent = ask("sendMessage", chat_id=alpha.id, text="one")["result"]
    edit = {"chat_id": alpha.id, "message_id": sent["message_id"]}
    same = refusal(ask("editMessageText", **edit, text=" one "))
    assert same.startswith("400 Bad Request: message is not modified: specified new message")
    buttons = keyboard(text="srt", callback_data="srt")
    assert ask("editMessageText", **edit, text="one", reply_markup=buttons)["ok"]
    assert ask("editMessageText", **edit, text="two")["ok"]
    assert not alpha.chat.from_bot[0].buttons
    assert alpha.chat.from_bot[0].was == ["one"]
    too_long = refusal(ask("editMessageText", **edit, text="x" * 4097))
    assert too_long == "400 Bad Request: MESSAGE_TOO_LONG"
    theirs = alpha.says("mine").id
    foreign = refusal(ask("editMessageText", chat_id=alpha.id, message_id=theirs, text="x"))
    assert foreign == "400 Bad Request: message can't be edited"
    alpha.deletes(alpha.chat.from_bot[0])
    gone = refusal(ask("editMessageText", **edit, text="three"))
    assert gone == "400 Bad Request: message to edit not found"


def test_a_message_can_be_taken_back_for_two_days(
    telegram: Telegram, ask: Ask, alpha: Person
) -> None:
    numbers = [
        ask("sendMessage", chat_id=alpha.id, text=text)["result"]["message_id"] for text in "ab"
    ]
    first, second = ({"chat_id": alpha.id, "message_id": number} for number in numbers)
    assert ask("deleteMessage", **first)["ok"]
    gone = refusal(ask("deleteMessage", **first))
    assert gone == "400 Bad Request: message to delete not found"
    telegram.clock.passes(hours=49)
    old = refusal(ask("deleteMessage", **second))
    assert old == "400 Bad Request: message can't be deleted for everyone"
    nothing = refusal(ask("deleteMessage", chat_id=alpha.id))
    assert nothing == "400 Bad Request: message identifier is not specified"


def test_a_pressed_button_is_answered_once_and_soon(
    telegram: Telegram, ask: Ask, alpha: Person
) -> None:
    row = [{"text": label, "callback_data": f"do:{label}"} for label in ("srt", "txt")]
    buttons = {"inline_keyboard": [row]}
    ask("sendMessage", chat_id=alpha.id, text="x", reply_markup=buttons)
    pressed = alpha.presses(alpha.chat.from_bot[0], "srt")
    told = ask("getUpdates")["result"][-1]["callback_query"]
    assert (told["data"], told["from"]["id"]) == ("do:srt", alpha.id)
    assert told["message"]["reply_markup"] == buttons
    assert ask("answerCallbackQuery", callback_query_id=told["id"], text="here")["ok"]
    assert pressed.answer == "here"
    again = ask("answerCallbackQuery", callback_query_id=told["id"])
    assert refusal(again) == f"400 {TOO_OLD}"
    late = alpha.presses(alpha.chat.from_bot[0], "txt")
    telegram.clock.passes(seconds=61)
    assert refusal(ask("answerCallbackQuery", callback_query_id=late.id)) == f"400 {TOO_OLD}"
    with pytest.raises(AssertionError, match="no button 'doc' among"):
        alpha.presses(alpha.chat.from_bot[0], "doc")


def test_what_is_asked_of_chats_and_commands_is_answered_or_refused(
    telegram: Telegram, ask: Ask, alpha: Person, forum: PeopleGroup
) -> None:
    assert ask("getChat", chat_id=forum.id)["result"]["is_forum"] is True
    keeper = ask("getChatMember", chat_id=forum.id, user_id=alpha.id)["result"]
    assert keeper["status"] == "creator"
    nobody = refusal(ask("getChatMember", chat_id=forum.id, user_id="x"))
    assert nobody == "400 Bad Request: invalid user_id specified"
    action = refusal(ask("sendChatAction", chat_id=alpha.id, action="dancing"))
    assert action == "400 Bad Request: wrong parameter action in request"
    commands = [{"command": "help", "description": "How"}]
    assert ask("setMyCommands", commands=commands, language_code="ru")["ok"]
    assert telegram.commands["default", "ru"] == commands
    wrong = [{"command": "Help me", "description": "How"}]
    assert refusal(ask("setMyCommands", commands=wrong)).endswith("BOT_COMMAND_INVALID")
    assert refusal(ask("setMyCommands", commands=[{"command": "x"}])).endswith('"description"')
    assert refusal(ask("leaveChat", chat_id=alpha.id)).startswith("400 Bad Request: can't leave")
    assert ask("leaveChat", chat_id=forum.id)["ok"]
    left = ask("getUpdates")["result"][-1]["my_chat_member"]
    assert left["new_chat_member"]["status"] == "left"
    assert left["from"]["id"] == telegram.network.bot.id


def test_the_limits_are_kept_when_they_are_switched_on(
    telegram: Telegram, ask: Ask, alpha: Person
) -> None:
    telegram.limits.is_on = True
    send = {"chat_id": alpha.id, "text": "x"}
    assert ask("sendMessage", **send)["ok"]
    answer = ask("sendMessage", **send)
    assert answer["parameters"] == {"retry_after": 1}
    assert refusal(answer) == "429 Too Many Requests: retry after 1"
    ask("sendMessage", **send)
    assert len(telegram.journal.impatient()) == 1
    group = telegram.group("Office", alpha)
    group.adds_bot(alpha)
    for _ in range(20):
        telegram.clock.passes(seconds=1)
        assert ask("sendMessage", chat_id=group.id, text="x")["ok"]
    telegram.clock.passes(seconds=1)
    assert ask("sendMessage", chat_id=group.id, text="x")["parameters"]["retry_after"] > 30
    telegram.clock.passes(seconds=60)
    people = [telegram.person(f"P{number}") for number in range(31)]
    for person in people:
        person.starts()
    answers = [ask("sendMessage", chat_id=person.id, text="x") for person in people]
    assert [answer["ok"] for answer in answers] == [True] * 30 + [False]


def test_a_bot_logs_out_and_is_closed_as_before_a_move(telegram: Telegram, ask: Ask) -> None:
    assert ask("getMe")["ok"]
    assert ask("close")["error_code"] == 429
    telegram.clock.passes(seconds=601)
    assert ask("close")["ok"]
    assert refusal(ask("close")) == "400 Bad Request: the bot has already been closed"
    assert ask("logOut")["ok"]
    assert refusal(ask("getMe")) == "400 Logged out"
    telegram.clock.passes(seconds=601)
    assert ask("getMe")["ok"]
    telegram.is_revoked = True
    assert refusal(ask("getMe")) == "401 Unauthorized"


def test_many_ask_at_once_and_each_gets_its_own(telegram: Telegram, alpha: Person) -> None:
    url = f"{telegram.api_url}/bot{telegram.token}/sendMessage"

    def send(number: int) -> None:
        requests.post(url, json={"chat_id": alpha.id, "text": str(number)}, timeout=20)

    threads = [threading.Thread(target=send, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(int, alpha.chat.texts)) == list(range(20))
    assert len(telegram.journal.done("sendMessage")) == 20
