"""Passwords and other secrets: what is kept of them, and how they are compared."""

import hashlib
import threading

from werkzeug.security import check_password_hash, generate_password_hash

from app.errors import AppError

MIN_PASSWORD_LENGTH = 12
MAX_PASSWORD_LENGTH = 1024

# One hash takes about 32 MiB and a tenth of a second: eight log-ins at once would take the
# machine away from the work, so they stand in line.
_one_at_a_time = threading.Lock()

# A name that nobody has costs as much time as a wrong password, so that names cannot be guessed
# by the clock. No password gives this hash: its digest is not one that scrypt made.
_NOBODY = "scrypt:32768:8:1$nobody$" + "0" * 128


def digest(secret: str) -> str:
    """The SHA-256 in hex of a random secret: what is stored and looked up in its place."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def hash_password(password: str) -> str:
    """The stored form of a new password; AppError weak_password when it is too short."""
    if not MIN_PASSWORD_LENGTH <= len(password) <= MAX_PASSWORD_LENGTH:
        raise AppError("weak_password")
    with _one_at_a_time:
        return generate_password_hash(password, method="scrypt")


def is_password(stored: str | None, password: str) -> bool:
    """True when the password is the one; None stands for an account that is not there."""
    with _one_at_a_time:
        fits = check_password_hash(stored or _NOBODY, password[:MAX_PASSWORD_LENGTH])
    return fits and stored is not None
