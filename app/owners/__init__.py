"""Accounts: the owner, sessions that can be revoked, tokens for programs."""

from app.owners.accounts import Owner, Owners
from app.owners.sessions import Session, Sessions
from app.owners.throttle import TooManyTriesError
from app.owners.tokens import ApiToken, Scope, Tokens

__all__ = [
    "ApiToken",
    "Owner",
    "Owners",
    "Scope",
    "Session",
    "Sessions",
    "Tokens",
    "TooManyTriesError",
]
