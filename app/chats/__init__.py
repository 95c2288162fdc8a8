"""Telegram's side in the store: bots, chats, the messages that jobs answer, upload links.

Nothing here speaks to Telegram: the bot's process does (app.telegram), and the panel only reads
and writes these rows.
"""

from app.chats.bots import Bot, Bots, Trouble
from app.chats.chats import Access, Chat, ChatKind, Chats, Mode
from app.chats.links import Link, LinkFor, Links
from app.chats.messages import JobMessage, JobMessages

__all__ = [
    "Access",
    "Bot",
    "Bots",
    "Chat",
    "ChatKind",
    "Chats",
    "JobMessage",
    "JobMessages",
    "Link",
    "LinkFor",
    "Links",
    "Mode",
    "Trouble",
]
