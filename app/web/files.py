"""Stored files out: to a player, or saved under the sender's name; harmless whatever they hold."""

import hmac
from typing import IO, cast

from flask import Blueprint, Response, request
from werkzeug.http import quote_etag
from werkzeug.wrappers import Response as BaseResponse
from werkzeug.wsgi import FileWrapper, LimitedStream, wrap_file

from app.errors import AppError
from app.job import StoredFile
from app.storage.kinds import KINDS
from app.web import byte_range, errors
from app.web.access import allow, knows_id
from app.web.byte_range import ByteRange, UnsatisfiableError
from app.web.download_name import attachment, inline
from app.web.services import services

blueprint = Blueprint("files", __name__)

COLLECTION = "files"
_UNKNOWN_TYPE = "application/octet-stream"
# Only what a player takes and nothing interprets: a type from outside this list is never
# repeated to a browser, whatever the row says.
_PLAYABLE = frozenset(
    kind.media_type for kind in KINDS if kind.media_type.startswith(("audio/", "video/"))
)
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cache-Control": "private, no-cache",
    "Accept-Ranges": "bytes",
}


@blueprint.get("/api/files/<collection>/<record>/<name>")
@allow(knows_id)
def stored(collection: str, record: str, name: str) -> BaseResponse:
    """A stored file, for whoever knows its record and its stored name (S10)."""
    if collection != COLLECTION:
        raise AppError("not_found")
    file = services().queue.shown_file(record)
    if not hmac.compare_digest(file.file.encode(), name.encode()):
        raise AppError("not_found")
    extension = file.file.rpartition(".")[2]
    return _serve(file, f"recording.{extension}", is_download=False)


@blueprint.get("/jobs/<job_id>/audio")
@allow(knows_id)
def audio(job_id: str) -> BaseResponse:
    """The copy of a job's recording that a browser can play and seek in."""
    job = services().queue.get(job_id)
    if job.playable_file is None:
        raise AppError("not_found")
    file = services().queue.file(job.playable_file)
    return _serve(file, job.display_name, is_download=False)


@blueprint.get("/jobs/<job_id>/source")
@allow(knows_id)
def source(job_id: str) -> BaseResponse:
    """What the sender handed in, byte for byte, under its own name."""
    job = services().queue.get(job_id)
    return _serve(services().queue.file(job.source_file), job.display_name, is_download=True)


def _serve(file: StoredFile, name: str, *, is_download: bool) -> BaseResponse:
    etag = (file.sha256 or file.id)[:32]
    response = Response(headers=_HEADERS)
    response.headers["ETag"] = quote_etag(etag)
    if etag in request.if_none_match:
        response.status_code = 304
        return response
    try:
        part = byte_range.wanted(request.headers, file.size, etag)
    except UnsatisfiableError as error:
        refused = errors.answer(error)
        refused.headers["Content-Range"] = f"bytes */{file.size}"
        return refused
    is_playable = file.media_type in _PLAYABLE and not is_download
    response.headers["Content-Type"] = file.media_type if is_playable else _UNKNOWN_TYPE
    response.headers["Content-Disposition"] = inline(name) if is_playable else attachment(name)
    response.headers["Content-Length"] = str(part.length)
    if part.is_part:
        response.status_code = 206
        response.headers["Content-Range"] = f"bytes {part.start}-{part.stop - 1}/{file.size}"
    if request.method != "HEAD":
        _fill(response, file, part)
    return response


def _fill(response: Response, file: StoredFile, part: ByteRange) -> None:
    """Hand the open file itself to the server, which sends from it without holding a thread.

    Flask's own answer to a Range header is a generator: each slow listener would keep one of the
    few threads for as long as it downloads. The server stops at Content-Length; one that cannot
    send a file is given no more than that.
    """
    opened = services().storage.open(file)
    opened.seek(part.start)
    if "wsgi.file_wrapper" in request.environ:
        body = wrap_file(request.environ, opened)
    else:
        body = FileWrapper(cast(IO[bytes], _Part(opened, part.length)))
    response.response = body
    response.direct_passthrough = True


class _Part(LimitedStream):
    """No more than so many bytes of a file, which ends with it."""

    def close(self) -> None:
        self._stream.close()
        super().close()
