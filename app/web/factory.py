"""Builds the Flask app: one list of blueprints, one place for what goes round every request."""

from flask import Blueprint, Flask

from app.resources import STATIC, TEMPLATES
from app.web import services as bundle
from app.web.services import Services

BLUEPRINTS: tuple[Blueprint, ...] = ()


def create_app(services: Services) -> Flask:
    """The web application over these services; it opens nothing and starts nothing itself."""
    app = Flask("app.web", template_folder=str(TEMPLATES), static_folder=str(STATIC))
    bundle.install(app, services)
    for blueprint in BLUEPRINTS:
        app.register_blueprint(blueprint)
    return app
