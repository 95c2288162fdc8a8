"""Updates as Telegram sends them, with only what a test changes spelled out."""

from typing import Any

PERSON = {"id": 7, "is_bot": False, "first_name": "Alpha", "language_code": "en"}
PRIVATE = {"id": 7, "type": "private", "first_name": "Alpha"}
GROUP = {"id": -500, "type": "supergroup", "title": "Office"}
CHANNEL = {"id": -900, "type": "channel", "title": "News"}


def voice(**more: Any) -> dict[str, Any]:
    file = {"file_id": "V1", "file_unique_id": "u1", "duration": 3, "mime_type": "audio/ogg"}
    return {"voice": file | {"file_size": 1000} | more}


def message(number: int = 1, update_id: int = 1, **fields: Any) -> dict[str, Any]:
    body = {"message_id": number, "date": 1, "chat": PRIVATE, "from": PERSON} | fields
    return {"update_id": update_id, "message": {k: v for k, v in body.items() if v is not None}}


def press(data: str, number: int = 50, **fields: Any) -> dict[str, Any]:
    shown = {"message_id": number, "date": 1, "chat": PRIVATE}
    body = {"id": "c1", "from": PERSON, "data": data, "message": shown} | fields
    return {"update_id": 1, "callback_query": body}


def member(status: str, before: str = "left", chat: dict[str, Any] = GROUP) -> dict[str, Any]:
    bot = {"id": 77, "is_bot": True, "first_name": "Scribe"}
    return {
        "update_id": 1,
        "my_chat_member": {
            "chat": chat,
            "from": PERSON,
            "date": 1,
            "old_chat_member": {"status": before, "user": bot},
            "new_chat_member": {"status": status, "user": bot},
        },
    }
