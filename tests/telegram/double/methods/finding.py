"""How a method finds the chat and the message that it is asked about."""

import re

from tests.telegram.double.chats import Access, Chat, PrivateChat
from tests.telegram.double.errors import bad_request
from tests.telegram.double.messages import Message
from tests.telegram.double.network import Network
from tests.telegram.double.query import Query

_NUMBER = re.compile(r"-?\d+")


def find_chat(network: Network, said: str, access: Access) -> Chat:
    """The chat of a number or an @name, when the bot may do that there; else ApiError."""
    if not said:
        raise bad_request("chat_id is empty")
    if said.startswith("@"):
        wanted = said[1:].lower()
        found = [
            chat
            for chat in network.chats.values()
            if chat.username.lower() == wanted and not isinstance(chat, PrivateChat)
        ]
        chat = found[0] if found else None
    else:
        number = _NUMBER.match(said)
        chat = network.chats.get(int(number[0])) if number else None
    if chat is None:
        raise bad_request("chat not found")
    chat.check(access)
    return chat


def find_message(network: Network, query: Query, access: Access, called: str) -> Message:
    """The message that a query names; the refusal calls it "message to edit" or the like."""
    chat = find_chat(network, query.text("chat_id"), access)
    message = chat.messages.get(query.message_id())
    if message is None:
        raise bad_request(f"{called} not found")
    return message


def find_topic(chat: Chat, query: Query) -> int | None:
    """The topic that a query names, None for none; ApiError when the chat has none such."""
    topic = max(query.number("message_thread_id"), 0)
    if not topic:
        return None
    can_have_topics = getattr(chat, "is_forum", False) or isinstance(chat, PrivateChat)
    if not can_have_topics:
        return None
    if topic not in chat.topics:
        raise bad_request("message thread not found")
    return topic
