"""Upload links: handing in one recording without an account (I07)."""

from flask import Blueprint, make_response, redirect, request, url_for
from werkzeug.wrappers import Response as BaseResponse

from app.chats import JobMessage, JobMessages, Link, LinkFor, Links
from app.errors import AppError
from app.intake import Addressee
from app.job import Source
from app.queue.port import Enqueued
from app.web import errors, received
from app.web.access import allow, holds_link
from app.web.i18n import language
from app.web.received import Reception
from app.web.services import now, services
from app.web.upload import form_page, told

blueprint = Blueprint("links", __name__)


@blueprint.get("/u/<secret>")
@allow(holds_link)
def page(secret: str) -> BaseResponse:
    """The form for the one recording; once it has come, its job."""
    link = _link(secret)
    if link.job:
        return redirect(url_for("jobs.page", job_id=link.job), 303)
    return form_page([], by_link=request.path)


@blueprint.post("/u/<secret>")
@allow(holds_link)
def hand_in(secret: str) -> BaseResponse:
    """Take the recording; its text goes to the chat that the link was made for, if any."""
    link = _link(secret)
    files = received.files("file")
    if link.is_used:
        raise AppError("link_over")
    if not files:
        error = AppError("no_file")
        if errors.wants_json():
            raise error
        shown = form_page([], errors.sentence(error), by_link=request.path)
        return make_response(shown, error.kind.status)
    done = _accept(link, files[0])
    if errors.wants_json():
        return told(done)
    return redirect(url_for("jobs.page", job_id=done.job.id), 303)


@blueprint.post("/links")
def make() -> BaseResponse:
    """Make a link for somebody else; it is on this one answer and never again."""
    wanted = LinkFor(None, None, None, None, None, language())
    lifetime = services().settings.telegram.link_lifetime
    secret = Links(services().database).make(wanted, lifetime, now())
    base = services().settings.server.public_url.rstrip("/") or request.host_url.rstrip("/")
    return form_page([], new_link=base + url_for("links.page", secret=secret))


def _link(secret: str) -> Link:
    link = Links(services().database).find(secret, now())
    if link is None:
        raise AppError("link_over")
    return link


def _accept(link: Link, file: Reception) -> Enqueued:
    addressee = _addressee(link)
    done = services().intake.accept(
        file.take(),
        source=Source.TELEGRAM if addressee else Source.WEB,
        display_name=file.name,
        language=request.form.get("language") or None,
        sender=addressee.sender if addressee else f"link:{link.token_hash[:16]}",
        idempotency_key=None if addressee else "link",
        addressee=addressee,
        now=now(),
    )
    Links(services().database).use(link, done.job.id)
    if addressee:
        message = JobMessage(
            job=done.job.id,
            bot=addressee.bot,
            chat=addressee.chat,
            message=addressee.message,
            thread=link.thread,
            album=None,
            person=link.person,
            language=link.language,
        )
        JobMessages(services().database).add(message, now())
    return done


def _addressee(link: Link) -> Addressee | None:
    if link.bot is None or link.chat is None or link.message is None:
        return None
    return Addressee(link.bot, link.chat, link.message)
