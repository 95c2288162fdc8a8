"""Recordings that arrive with a request go straight into a draft on the storage's disk (S31).

Werkzeug would spool each file to a temporary place first: a third copy of 8 GiB. A draft that no
job took is gone when the request ends, however it ends.
"""

from collections.abc import Sequence
from io import BytesIO
from typing import IO, cast

from flask import Request, request
from werkzeug.formparser import FormDataParser

from app.errors import AppError
from app.storage.port import Draft
from app.web import access
from app.web.services import services

_BLOCK_BYTES = 1 << 20


class Reception:
    """One recording on its way in: the sender's name for it, and the draft with its bytes.

    A fault (too large, disk full) is kept for take(): the other files of a form go on.
    """

    def __init__(self, draft: Draft, name: str) -> None:
        self.name = name
        self.fault: AppError | None = None
        self._draft = draft

    def write(self, data: bytes) -> int:
        """Append; after a fault the rest is dropped."""
        if self.fault is None:
            try:
                self._draft.write(data)
            except AppError as error:
                self.fault = error
                self._draft.discard()
        return len(data)

    def take(self) -> Draft:
        """The draft, whole; raises what went wrong while it was received."""
        if self.fault:
            raise self.fault
        return self._draft

    def seek(self, position: int) -> int:
        """Werkzeug goes back to the start of a file it has received; here nobody reads it."""
        return position

    def close(self) -> None:
        """Remove the draft; harmless when a job took it."""
        self._draft.discard()


class IntakeRequest(Request):
    """A request whose files become drafts where a view takes recordings, and are dropped elsewhere.

    Only files that carry a name count: a form without a choice sends one empty part.
    """

    max_form_parts = 100

    def receive(self, name: str) -> Reception:
        """A reception that ends with this request unless a job takes its draft."""
        reception = Reception(services().intake.draft(), name)
        self._receptions().append(reception)
        return reception

    def close(self) -> None:
        """Remove every draft that no job took."""
        super().close()
        for reception in self._receptions():
            reception.close()

    def make_form_data_parser(self) -> FormDataParser:
        """A parser that says so when a form is torn: by default it would pass for an empty one."""
        parser = super().make_form_data_parser()
        parser.silent = False
        return parser

    def _load_form_data(self) -> None:
        try:
            super()._load_form_data()
        except ValueError:
            raise AppError("bad_request") from None

    def _get_file_stream(
        self,
        total_content_length: int | None,
        content_type: str | None,
        filename: str | None = None,
        content_length: int | None = None,
    ) -> IO[bytes]:
        if not (filename and access.is_intake()):
            return BytesIO()
        return cast(IO[bytes], self.receive(filename))

    def _receptions(self) -> list[Reception]:
        found: list[Reception] = self.__dict__.setdefault("_pisar_receptions", [])
        return found


def files(field: str) -> Sequence[Reception]:
    """The named files of a form's field, in the order they were sent."""
    streams = [cast(object, file.stream) for file in request.files.getlist(field)]
    return [stream for stream in streams if isinstance(stream, Reception)]


def body(name: str) -> Reception:
    """The request's body itself, received as one recording."""
    reception = cast(IntakeRequest, request).receive(name)
    while reception.fault is None and (block := request.stream.read(_BLOCK_BYTES)):
        reception.write(block)
    return reception
