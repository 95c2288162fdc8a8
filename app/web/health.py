"""Signs of life: the process lives; the service can do its work."""

import shutil
import tempfile
from collections.abc import Callable

from flask import Blueprint, Response, jsonify

from app.web.access import allow, anyone
from app.web.services import services

blueprint = Blueprint("health", __name__)

RESERVE_BYTES = 256 * 1024**2
"""Less free disk than this, and a recording of some minutes may not be taken in whole."""

LOCK_SECONDS = 2.0
"""A process that keeps the writer lock longer has been stopped, or hangs."""


@blueprint.get("/healthz")
@allow(anyone)
def lives() -> Response:
    """The process answers; nothing else is touched."""
    return jsonify({"status": "ok"})


@blueprint.get("/readyz")
@allow(anyone)
def can_serve() -> Response:
    """200, or 503 with the reasons why a recording would not come through now."""
    reasons = [reason for reason, is_well in _CHECKS.items() if not _is_well(is_well)]
    response = jsonify({"status": "unready" if reasons else "ready", "reasons": reasons})
    response.status_code = 503 if reasons else 200
    return response


def _is_well(check: Callable[[], bool]) -> bool:
    try:
        return check()
    except Exception:
        # Any fault is the answer to the question; a probe that itself fails would tell less.
        return False


def _database() -> bool:
    with services().database.read() as connection:
        return connection.execute("SELECT 1 FROM schema_steps LIMIT 1").fetchone() is not None


def _takes_writes() -> bool:
    return services().database.is_writable(LOCK_SECONDS)


def _writable() -> bool:
    with tempfile.TemporaryFile(dir=services().settings.storage.data_dir) as file:
        return file.write(b"1") == 1


def _room() -> bool:
    return shutil.disk_usage(services().settings.storage.data_dir).free >= RESERVE_BYTES


def _worker() -> bool:
    return services().workers_alive() > 0


_CHECKS: dict[str, Callable[[], bool]] = {
    "database": _database,
    "database_busy": _takes_writes,
    "data_dir_not_writable": _writable,
    "disk_almost_full": _room,
    "no_worker": _worker,
}
