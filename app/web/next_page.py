"""Where to go after signing in: a path of this site, whatever the address asked for."""

import re

# `//host`, `/\host` and `/<tab>/host` are other sites to a browser: one slash, then no slash,
# and only printable ASCII without a backslash.
_LOCAL = re.compile(r"/(?![/\\])[\x21-\x5b\x5d-\x7e]*")


def is_local(path: str) -> bool:
    """True for a path that cannot lead away from this site."""
    return _LOCAL.fullmatch(path) is not None


def local_or(path: str | None, otherwise: str) -> str:
    """The path when it is one of this site, else the other."""
    return path if path and is_local(path) else otherwise
