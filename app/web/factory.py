"""Builds the Flask app: one list of blueprints, one place for what goes round every request."""

from flask import Blueprint, Flask
from flask.json.provider import DefaultJSONProvider

from app.resources import STATIC, TEMPLATES
from app.web import (
    access,
    api,
    auth,
    chats,
    errors,
    files,
    frame,
    guard,
    health,
    i18n,
    identity,
    jobs,
    links,
    upload,
    verbs,
)
from app.web import services as bundle
from app.web.received import IntakeRequest
from app.web.services import Services

BLUEPRINTS: tuple[Blueprint, ...] = (
    auth.blueprint,
    api.blueprint,
    chats.blueprint,
    files.blueprint,
    health.blueprint,
    i18n.blueprint,
    jobs.blueprint,
    links.blueprint,
    upload.blueprint,
    verbs.blueprint,
)


class _Json(DefaultJSONProvider):
    """JSON in the order that the views write it, its letters as they are."""

    ensure_ascii = False
    sort_keys = False


def create_app(services: Services) -> Flask:
    """The web application over these services; it opens nothing and starts nothing itself."""
    app = Flask("app.web", template_folder=str(TEMPLATES), static_folder=str(STATIC))
    app.request_class = IntakeRequest
    # A doubled slash is another address, not a redirect: an API client is never sent HTML.
    app.url_map.merge_slashes = False
    app.json = _Json(app)
    bundle.install(app, services)
    identity.install(app)
    i18n.install(app)
    frame.install(app)
    errors.install(app)
    guard.install(app)
    access.install(app)
    for blueprint in BLUEPRINTS:
        app.register_blueprint(blueprint)
    return app
