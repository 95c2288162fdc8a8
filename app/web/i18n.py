"""Which language, zone and theme a page has, and how times are written in it."""

from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache
from typing import Literal
from zoneinfo import ZoneInfo, available_timezones

from babel import Locale
from babel.dates import format_datetime, format_time, format_timedelta
from babel.numbers import format_decimal, format_percent
from babel.units import format_unit
from flask import Blueprint, Flask, redirect, request
from flask_babel import Babel, Domain, get_locale, gettext
from markupsafe import Markup
from werkzeug.wrappers import Response as BaseResponse

from app.clock import to_rfc3339
from app.errors import N_
from app.i18n import DEFAULT_LANGUAGE, LANGUAGES, best_language, catalogue
from app.web.access import allow, anyone
from app.web.next_page import local_or
from app.web.services import now

LANGUAGE_COOKIE = "language"
ZONE_COOKIE = "zone"
THEME_COOKIE = "theme"
THEMES = ("light", "dark")
_YEAR_SECONDS = 365 * 86400
_ORDINALS = {
    "one": N_("%(n)sst"),
    "two": N_("%(n)snd"),
    "few": N_("%(n)srd"),
    "other": N_("%(n)sth"),
}

blueprint = Blueprint("preferences", __name__)


def install(app: Flask) -> None:
    """Give an app its languages, zones and the filters that write times and numbers."""
    babel = Babel(app, locale_selector=_chosen_language)
    # Flask-Babel reads compiled files only; ours are compiled in memory by app.i18n.
    domain = Domain()
    domain.get_translations = lambda: catalogue(language())
    babel.domain_instance = domain
    app.jinja_env.filters.update(moment=moment, ago=ago, clock_time=clock_time)
    app.jinja_env.filters.update(sound_length=sound_length, file_size=file_size, number=number)
    app.jinja_env.filters.update(percent=percent, language_name=language_name)
    app.jinja_env.filters.update(lasting=lasting)
    app.context_processor(
        lambda: {
            "language": language(),
            "languages": LANGUAGES,
            "theme": theme(),
            "zone_name": zone_name(),
        }
    )


@blueprint.post("/preferences")
@allow(anyone)
def save() -> BaseResponse:
    """Keep a choice of language or theme in a cookie and go back to the page."""
    answer = redirect(local_or(request.form.get("next"), "/"), 303)
    chosen = request.form.get("language")
    if chosen in LANGUAGES:
        _remember(answer, LANGUAGE_COOKIE, chosen)
    chosen = request.form.get("theme")
    if chosen in THEMES:
        _remember(answer, THEME_COOKIE, chosen)
    elif chosen is not None:
        answer.delete_cookie(THEME_COOKIE)
    return answer


def language() -> str:
    """The language of this answer, a key of LANGUAGES."""
    locale = get_locale()
    return str(locale.language) if locale else DEFAULT_LANGUAGE


def theme() -> str | None:
    """The theme that the reader fixed; None follows the device."""
    chosen = request.cookies.get(THEME_COOKIE)
    return chosen if chosen in THEMES else None


def zone_name() -> str:
    """The reader's zone as the browser named it; UTC until it has."""
    name = request.cookies.get(ZONE_COOKIE, "").replace("%2F", "/")
    return name if name in _zones() else "UTC"


def moment(at: datetime) -> Markup:
    """A moment in the reader's zone: date and time, the stored moment for machines."""
    words = format_datetime(at, "d MMM yyyy, HH:mm", tzinfo=_zone(), locale=_locale())
    return _time_tag(at, words, "moment")


def clock_time(at: datetime) -> Markup:
    """A moment by the reader's clock: 21:14, and with the date when it is of another day."""
    here = at.astimezone(_zone())
    if here.date() != now().astimezone(_zone()).date():
        return moment(at)
    return _time_tag(at, format_time(here, "HH:mm", tzinfo=_zone(), locale=_locale()), "clock")


def ago(at: datetime) -> Markup:
    """How long ago a moment was, in words; the moment itself shows when pointed at."""
    passed = min(at - now(), timedelta(seconds=-1))
    words = format_timedelta(
        passed, add_direction=True, threshold=1, format="short", locale=_locale()
    )
    return _time_tag(at, words, "ago")


def sound_length(seconds: float | None) -> str:
    """A length of sound: 0:07, 12:30, 1:02:03; a dash stands for one not yet known."""
    if seconds is None:
        return "–"
    hours, rest = divmod(int(seconds), 3600)
    minutes, left = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{left:02}" if hours else f"{minutes}:{left:02}"


def lasting(seconds: float, form: Literal["short", "long"] = "short") -> str:
    """How long something takes, in its largest unit: 4 sec, 3 min; long: 6 hours."""
    return str(
        format_timedelta(max(round(seconds), 1), threshold=1.5, format=form, locale=_locale())
    )


def ordinal(place: int) -> str:
    """A place in line: 1st, 2nd, 3rd, 4th as the language has it."""
    return str(gettext(_ORDINALS[str(_locale().ordinal_form(place))], n=place))


def file_size(size_bytes: int) -> str:
    """A size as people say it, in powers of 1024: 8 GB, 12.4 MB."""
    value = float(size_bytes)
    for unit in ("byte", "kilobyte", "megabyte"):
        if value < 1024:
            return _unit(value, unit)
        value /= 1024
    return _unit(value, "gigabyte")


def number(value: float) -> str:
    """A number with the separators of the reader's language."""
    return format_decimal(value, locale=_locale())


def percent(share: float) -> str:
    """A share of 0-1 in whole per cent, never rounded up to 100."""
    return format_percent(min(int(share * 100), 99) / 100, locale=_locale())


def language_name(code: str) -> str:
    """A spoken language by its name in the reader's language."""
    name = str(_locale().languages.get(code, code))
    return name[:1].upper() + name[1:]


def _unit(value: float, unit: str) -> str:
    rounded = round(value, 1 if value < 100 else 0)
    return format_unit(rounded, f"digital-{unit}", length="short", locale=_locale())


def _time_tag(at: datetime, words: str, form: str) -> Markup:
    exact = format_datetime(at, "d MMM yyyy, HH:mm:ss", tzinfo=_zone(), locale=_locale())
    return Markup('<time datetime="{}" data-form="{}" title="{} ({})">{}</time>').format(
        to_rfc3339(at), form, exact, zone_name(), words
    )


def _chosen_language() -> str:
    chosen = request.cookies.get(LANGUAGE_COOKIE)
    if chosen in LANGUAGES:
        return chosen
    return best_language(tag for tag, _ in request.accept_languages)


def _locale() -> Locale:
    return get_locale() or Locale("en")


def _zone() -> tzinfo:
    name = zone_name()
    return UTC if name == "UTC" else ZoneInfo(name)


@cache
def _zones() -> frozenset[str]:
    # A cookie is anybody's text: only names that the zone database lists reach ZoneInfo.
    return frozenset(available_timezones())


def _remember(answer: BaseResponse, name: str, value: str) -> None:
    answer.set_cookie(name, value, max_age=_YEAR_SECONDS, samesite="Lax", httponly=True)
