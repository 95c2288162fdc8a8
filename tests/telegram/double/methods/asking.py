"""The methods that tell the bot of itself, of chats and of files."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tests.telegram.double.chats import Access, Chat, Group, PrivateChat, member
from tests.telegram.double.errors import bad_request, too_many
from tests.telegram.double.messages import User
from tests.telegram.double.methods.finding import find_chat
from tests.telegram.double.methods.registry import Method
from tests.telegram.double.query import Query
from tests.telegram.double.query import member as json_member

if TYPE_CHECKING:
    from tests.telegram.double.telegram import Telegram

SETTLING_SECONDS = 600
"""A bot can be closed ten minutes after its first request, and asked again so long after logOut."""

_COMMAND = re.compile(r"[a-z0-9_]{1,32}")
_LONGEST_DESCRIPTION = 256
_MOST_COMMANDS = 100
_LANGUAGE = re.compile(r"([a-z]{2})?")
_SCOPES = frozenset({"default", "all_private_chats", "all_group_chats", "all_chat_administrators"})
_CHAT_SCOPES = frozenset({"chat", "chat_administrators", "chat_member"})


def get_me(telegram: "Telegram", query: Query) -> Any:
    """The bot itself."""
    return telegram.network.bot.described() | {
        "can_join_groups": True,
        "can_read_all_group_messages": telegram.network.sees_all,
        "supports_inline_queries": False,
        "can_connect_to_business": False,
        "has_main_web_app": False,
    }


def log_out(telegram: "Telegram", query: Query) -> Any:
    """Leave this server, for another one."""
    telegram.network.updates.clear()
    telegram.logged_out_until = telegram.clock.now() + SETTLING_SECONDS
    return True


def close(telegram: "Telegram", query: Query) -> Any:
    """Close the bot on this server before it is moved."""
    left = telegram.first_asked_at + SETTLING_SECONDS - telegram.clock.now()
    if left > 0:
        raise too_many(int(left))
    telegram.is_bot_closed = True
    return True


def get_file(telegram: "Telegram", query: Query) -> Any:
    """A link to a file."""
    return telegram.network.files.open_link(query.text("file_id"))


def get_chat(telegram: "Telegram", query: Query) -> Any:
    """A chat in full."""
    chat = find_chat(telegram.network, query.text("chat_id"), Access.READ)
    gifts = ("unlimited_gifts", "limited_gifts", "unique_gifts", "premium_subscription")
    return chat.described() | {
        "accent_color_id": 3,
        "max_reaction_count": 11,
        "accepted_gift_types": dict.fromkeys(gifts, False),
    }


def get_chat_member(telegram: "Telegram", query: Query) -> Any:
    """What somebody is in a chat."""
    number = _user_id(query)
    is_me = number == telegram.network.bot.id
    access = Access.READ if is_me else Access.EDIT
    chat = find_chat(telegram.network, query.text("chat_id"), access)
    if is_me:
        return member(telegram.network.bot, chat.bot_status)
    found = _people(chat).get(number)
    if found is None:
        person = telegram.network.chats.get(number)
        if not isinstance(person, PrivateChat):
            raise bad_request("PARTICIPANT_ID_INVALID")
        return member(person.owner, "left")
    return member(*found)


def get_chat_administrators(telegram: "Telegram", query: Query) -> Any:
    """Those who keep a chat, other bots aside."""
    chat = find_chat(telegram.network, query.text("chat_id"), Access.EDIT)
    if isinstance(chat, PrivateChat):
        raise bad_request("there are no administrators in the private chat")
    keepers = [pair for pair in _people(chat).values() if pair[1] in ("creator", "administrator")]
    if chat.bot_status == "administrator":
        keepers.append((telegram.network.bot, "administrator"))
    return [member(*pair) for pair in keepers]


def get_chat_member_count(telegram: "Telegram", query: Query) -> Any:
    """How many are in a chat, the bot included."""
    chat = find_chat(telegram.network, query.text("chat_id"), Access.EDIT)
    return 2 if isinstance(chat, PrivateChat) else len(_people(chat)) + 1


def leave_chat(telegram: "Telegram", query: Query) -> Any:
    """Go; the bot is told that it went."""
    chat = find_chat(telegram.network, query.text("chat_id"), Access.READ)
    if isinstance(chat, PrivateChat):
        raise bad_request("Can't leave private and secret chats")
    chat.status_becomes("left", telegram.network.bot)
    return True


def set_my_commands(telegram: "Telegram", query: Query) -> Any:
    """What the apps offer to type, for a scope and a language."""
    commands = _commands(query)
    where = _scope(query)
    for command in commands:
        if not _COMMAND.fullmatch(command["command"].removeprefix("/")):
            raise bad_request("BOT_COMMAND_INVALID")
        if not 1 <= len(command["description"]) <= _LONGEST_DESCRIPTION:
            raise bad_request("BOT_COMMAND_DESCRIPTION_INVALID")
    if len(commands) > _MOST_COMMANDS:
        raise bad_request("BOT_COMMANDS_TOO_MUCH")
    telegram.commands[where] = commands
    return True


def get_my_commands(telegram: "Telegram", query: Query) -> Any:
    """The commands of exactly that scope and language."""
    return telegram.commands.get(_scope(query), [])


def delete_my_commands(telegram: "Telegram", query: Query) -> Any:
    """Offer none for a scope and a language."""
    telegram.commands.pop(_scope(query), None)
    return True


def _user_id(query: Query) -> int:
    number = query.number("user_id")
    if number <= 0:
        raise bad_request("Invalid user_id specified")
    return number


def _people(chat: Chat) -> Mapping[int, tuple[User, str]]:
    if isinstance(chat, PrivateChat):
        return {chat.id: (chat.owner, "member")}
    return chat.members if isinstance(chat, Group) else {}


def _commands(query: Query) -> list[dict[str, str]]:
    found = query.value("commands", "commands") or []
    if not isinstance(found, list):
        raise bad_request("Expected an Array of BotCommand")
    said = []
    for command in found:
        if not isinstance(command, dict):
            raise bad_request("Can't parse BotCommand: expected an Object")
        names = ("command", "description")
        said.append({name: json_member(command, name, str, required=True) for name in names})
    return said


def _scope(query: Query) -> tuple[str, str]:
    """The key of a set of commands: its scope and its language."""
    language = query.text("language_code")
    if not _LANGUAGE.fullmatch(language):
        raise bad_request("Invalid language code specified")
    found = query.value("scope", "BotCommandScope")
    if found is None:
        return "default", language
    where = "Can't parse BotCommandScope: "
    if not isinstance(found, dict):
        raise bad_request(f"{where}BotCommandScope must be an Object")
    kind = json_member(found, "type", str, required=True)
    if kind in _SCOPES:
        return kind, language
    if kind not in _CHAT_SCOPES:
        raise bad_request(f"{where}Unsupported type specified")
    return f"{kind} {json_member(found, 'chat_id', str, required=True)}", language


METHODS: dict[str, Method] = {
    "getMe": get_me,
    "logOut": log_out,
    "close": close,
    "getFile": get_file,
    "getChat": get_chat,
    "getChatMember": get_chat_member,
    "getChatAdministrators": get_chat_administrators,
    "getChatMemberCount": get_chat_member_count,
    "leaveChat": leave_chat,
    "setMyCommands": set_my_commands,
    "getMyCommands": get_my_commands,
    "deleteMyCommands": delete_my_commands,
}
