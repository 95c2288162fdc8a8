"""The one catalogue of sentences: translations/<language>/LC_MESSAGES/messages.po.

A catalogue is compiled in memory when it is first asked for, so that nothing has to be built at
install and no compiled file can be older than its source.
"""

from collections.abc import Iterable
from functools import cache
from io import BytesIO

from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.support import NullTranslations, Translations

from app.errors import KINDS
from app.resources import TRANSLATIONS

DEFAULT_LANGUAGE = "en"
LANGUAGES = {"en": "English", "ru": "Русский"}
"""The languages of the interface, each by its own name; English is the message ids themselves."""


def catalogue(language: str) -> NullTranslations:
    """The sentences of a language of LANGUAGES; any other gives English."""
    return _catalogue(language if language in LANGUAGES else DEFAULT_LANGUAGE)


def error_sentence(code: str, language: str) -> str:
    """The person's sentence for an error code; an unknown code has that of `internal`."""
    kind = KINDS.get(code, KINDS["internal"])
    return str(catalogue(language).ugettext(kind.sentence))


def best_language(wanted: Iterable[str]) -> str:
    """The first language of a wish list that there is; `ru-RU` counts as `ru`."""
    for tag in wanted:
        language = tag.replace("_", "-").split("-")[0].lower()
        if language in LANGUAGES:
            return language
    return DEFAULT_LANGUAGE


@cache
def _catalogue(language: str) -> NullTranslations:
    path = TRANSLATIONS / language / "LC_MESSAGES" / "messages.po"
    if not path.exists():
        return NullTranslations()
    compiled = BytesIO()
    with path.open("rb") as file:
        write_mo(compiled, read_po(file, locale=language))
    compiled.seek(0)
    return Translations(fp=compiled)
