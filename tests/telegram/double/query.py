"""What a client asks: the method, its arguments as text, and the files that came along.

Arguments come in the address, as a form, as JSON or as multipart, and are read as leniently as
the original reads them: a number that is none is 0, a truth that is none is false.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any
from urllib.parse import parse_qsl

from werkzeug.formparser import parse_form_data

from tests.telegram.double.errors import bad_request

_LEADING_NUMBER = re.compile(r"-?\d+")
_TRUE = ("true", "yes", "1")
_LARGEST_INT32 = 2**31 - 1


@dataclass(frozen=True)
class Attachment:
    """A file in a request."""

    name: str
    media_type: str
    data: bytes


@dataclass(frozen=True)
class Query:
    """One request; method is in small letters, as the original compares it."""

    method: str
    arguments: Mapping[str, str]
    attachments: Mapping[str, Attachment] = field(default_factory=dict)

    def has(self, name: str) -> bool:
        """True when the argument came, be it empty."""
        return name in self.arguments

    def text(self, name: str) -> str:
        """The argument, empty when it did not come."""
        return self.arguments.get(name, "")

    def flag(self, name: str) -> bool:
        """True for true, yes and 1."""
        return self.text(name).strip().lower() in _TRUE

    def number(self, name: str) -> int:
        """The number that the argument begins with, else 0."""
        found = _LEADING_NUMBER.match(self.text(name))
        return int(found[0]) if found else 0

    def within(self, name: str, default: int, least: int, most: int = _LARGEST_INT32) -> int:
        """The number, brought between two bounds; default when the argument did not come."""
        return min(max(self.number(name) if self.text(name) else default, least), most)

    def message_id(self, name: str = "message_id") -> int:
        """The number of a message, 0 when there is none."""
        return max(self.number(name), 0)

    def value(self, name: str, said: str) -> Any:
        """The argument's JSON, None when it is empty; a refusal calls it by what is said."""
        if not self.text(name):
            return None
        try:
            return json.loads(self.text(name))
        except ValueError:
            raise bad_request(f"can't parse {said} JSON object") from None


def read(method: str, query_string: str, media_type: str, body: bytes) -> Query:
    """A request from its parts; ApiError for a body that is not what it says."""
    arguments = dict(parse_qsl(query_string, keep_blank_values=True))
    attachments: dict[str, Attachment] = {}
    if media_type.startswith("multipart/"):
        more, attachments = _read_multipart(media_type, body)
        arguments |= more
    elif media_type.startswith("application/x-www-form-urlencoded"):
        arguments |= dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))
    elif media_type.startswith("application/json") and body:
        arguments |= _read_json(body)
    return Query((method or arguments.get("method", "")).lower(), arguments, attachments)


def _read_multipart(media_type: str, body: bytes) -> tuple[dict[str, str], dict[str, Attachment]]:
    _, form, files = parse_form_data(
        {
            "REQUEST_METHOD": "POST",
            "CONTENT_TYPE": media_type,
            "CONTENT_LENGTH": str(len(body)),
            "wsgi.input": BytesIO(body),
        }
    )
    attachments = {}
    for name, sent in files.items():
        attachments[name] = Attachment(sent.filename or "", sent.mimetype, sent.read())
        sent.close()
    return form.to_dict(), attachments


def _read_json(body: bytes) -> dict[str, str]:
    try:
        found = json.loads(body)
    except ValueError:
        raise bad_request("can't parse the request's JSON object") from None
    if not isinstance(found, dict):
        raise bad_request("object expected as the request")
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in found.items()
        if value is not None
    }


def member(found: Mapping[str, Any], name: str, kind: type, *, required: bool = False) -> Any:
    """A member of a JSON object in an argument, of a kind: bool, int, str or list; else a refusal.

    A number may come as text and a text as a number, as the original lets them.
    """
    value = found.get(name)
    if value is None:
        if required:
            raise bad_request(f'Can\'t find field "{name}"')
        return kind()
    if kind is int and isinstance(value, str):
        if not _LEADING_NUMBER.fullmatch(value):
            raise bad_request(f'Field "{name}" must be a valid Number')
        return int(value)
    if kind is str and type(value) in (int, float):
        return str(value)
    if type(value) is not kind:
        raise bad_request(f'Field "{name}" must be of type {_JSON_NAMES[kind]}')
    return value


_JSON_NAMES = {bool: "Boolean", int: "Number", str: "String", list: "Array", dict: "Object"}
