"""Recordings that arrive with a request go straight into a draft on the storage's disk (S31).

Werkzeug would spool each file to a temporary place first: a third copy of 8 GiB. A draft that no
job took is gone when the request ends, however it ends.
"""

from io import BytesIO
from typing import IO, cast

from flask import Request, request
from werkzeug.datastructures import FileStorage

from app.errors import AppError
from app.storage.port import Draft
from app.web import access
from app.web.services import services

_BLOCK_BYTES = 1 << 20


class Reception:
    """A draft as Werkzeug writes to it; a fault is kept, so that a form's other files go on."""

    def __init__(self, draft: Draft) -> None:
        self.fault: AppError | None = None
        self.draft = draft

    def write(self, data: bytes) -> int:
        """Append; after a fault (too large, disk full) the rest is dropped."""
        if self.fault is None:
            try:
                self.draft.write(data)
            except AppError as error:
                self.fault = error
                self.draft.discard()
        return len(data)

    def seek(self, position: int) -> int:
        """Werkzeug goes back to the start of a file it has received; here nobody reads it."""
        return position

    def close(self) -> None:
        """Remove the draft; harmless when a job took it."""
        self.draft.discard()


class IntakeRequest(Request):
    """A request whose files become drafts where a view takes recordings, and are dropped elsewhere.

    Only files that carry a name count: a form without a choice sends one empty part.
    """

    max_form_parts = 100

    def receive(self) -> Reception:
        """A reception that ends with this request unless a job takes its draft."""
        reception = Reception(services().intake.draft())
        self._receptions().append(reception)
        return reception

    def close(self) -> None:
        """Remove every draft that no job took."""
        super().close()
        for reception in self._receptions():
            reception.close()

    def _get_file_stream(
        self,
        total_content_length: int | None,
        content_type: str | None,
        filename: str | None = None,
        content_length: int | None = None,
    ) -> IO[bytes]:
        if not (filename and access.is_intake()):
            return BytesIO()
        return cast(IO[bytes], self.receive())

    def _receptions(self) -> list[Reception]:
        found: list[Reception] = self.__dict__.setdefault("_pisar_receptions", [])
        return found


def draft_of(file: FileStorage) -> Draft:
    """The draft that a form's file was received into; raises what went wrong on the way."""
    reception = cast(object, file.stream)
    if not isinstance(reception, Reception):
        raise AppError("no_file")
    return _whole(reception)


def draft_of_body() -> Draft:
    """The request's body itself, received as one recording."""
    reception = cast(IntakeRequest, request).receive()
    while reception.fault is None and (block := request.stream.read(_BLOCK_BYTES)):
        reception.write(block)
    return _whole(reception)


def _whole(reception: Reception) -> Draft:
    if reception.fault:
        raise reception.fault
    return reception.draft
