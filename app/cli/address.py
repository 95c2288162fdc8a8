"""Where the service is found."""

import socket
from datetime import datetime

from app.owners import Owners
from app.settings import Settings

_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104 - not bound here
_PROBE_SECONDS = 0.5


def service_url(settings: Settings) -> str:
    """The address for people: server.public_url, else where the server listens."""
    if settings.server.public_url:
        return settings.server.public_url.rstrip("/")
    host = _reachable_host(settings)
    return f"http://{f'[{host}]' if ':' in host else host}:{settings.server.port}"


def invitation_url(settings: Settings, owners: Owners, now: datetime) -> str:
    """The link by which the owner's account is made; AppError owner_exists when there is one."""
    return f"{service_url(settings)}/setup#{owners.invite(now)}"


def is_listening(settings: Settings) -> bool:
    """True when something answers at the server's address."""
    try:
        address = (_reachable_host(settings), settings.server.port)
        socket.create_connection(address, _PROBE_SECONDS).close()
    except OSError:
        return False
    return True


def _reachable_host(settings: Settings) -> str:
    host = settings.server.host
    return _EVERYWHERE.get(host, host)
