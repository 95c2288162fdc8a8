"""The methods of the Bot API that the double knows, by their names in small letters."""

from collections.abc import Mapping

from tests.telegram.double.methods import asking, changing, news, sending
from tests.telegram.double.methods.registry import Method, Said

__all__ = ["METHODS", "Method", "Said"]

METHODS: Mapping[str, Method] = {
    name.lower(): method
    for methods in (asking.METHODS, changing.METHODS, news.METHODS, sending.METHODS)
    for name, method in methods.items()
}
