"""What the views work with: one bundle, made when the process starts and handed to the app."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from flask import Flask, current_app

from app.clock import utcnow
from app.db import Database
from app.intake import Intake
from app.owners import Owners
from app.queue.port import Queue
from app.settings import Settings
from app.storage.port import Storage

_KEY = "pisar"


@dataclass(frozen=True)
class Services:
    """The doors to everything behind the web.

    workers_alive() counts the worker processes that run now. clock() gives the present moment;
    tests pass their own.
    """

    settings: Settings
    database: Database
    queue: Queue
    storage: Storage
    intake: Intake
    owners: Owners
    workers_alive: Callable[[], int]
    clock: Callable[[], datetime] = utcnow


def install(app: Flask, services: Services) -> None:
    """Give the app its services; views ask for them with services()."""
    app.extensions[_KEY] = services


def services() -> Services:
    """The services of the app that answers this request."""
    return cast(Services, current_app.extensions[_KEY])


def now() -> datetime:
    """The present moment, UTC: the `now` of every verb that a view calls."""
    return services().clock()
