"""What the bot says in its own name, in the reader's language: plain text, never markup."""

from babel.dates import format_timedelta
from babel.units import format_unit

from app.errors import N_
from app.i18n import DEFAULT_LANGUAGE, catalogue

START = N_(
    "Send me a voice message, an audio file or a video, and I answer with its text."
    " Several at once are welcome. /help tells the rest."
)
HELP = N_(
    "I turn recordings into text: voice and video messages, audio and video files.\n\n"
    "%(limits)s\n\n"
    "/status – what I am working on\n"
    "/cancel – stop the newest recording, or the one you reply to\n"
    "/text – the text of the recording you reply to, where I wait to be asked\n"
    "/lang – the language I answer in\n"
    "/mode – in a group: which recordings become text"
)
LIMITS = N_("A recording may last %(length)s.")
LIMITS_LINK = N_(
    "A recording may last %(length)s. Telegram hands me files up to %(size)s; for a larger one I"
    " give you a link to upload it."
)
LIMITS_SIZE = N_("A recording may last %(length)s. Telegram hands me files up to %(size)s.")
CHATTER = N_("I turn recordings into text: send me one. /help tells the rest.")
CLOSED = N_(
    "This bot works only for those whom its owner allows. Ask the owner; your number is %(id)s."
)
CLOSED_GROUP = N_(
    "I turn recordings into text, once my owner allows this chat. Its number is %(id)s."
)
WELCOME = N_("I turn the recordings of this chat into text. /mode chooses which, /help tells more.")
HIDDEN = N_(
    "In this chat Telegram shows me only commands and replies to me, not recordings: make me an"
    " administrator, or have my owner switch the privacy mode off at @BotFather and add me anew."
)
LARGE_LINK = N_(
    "This file is larger than the %(size)s that Telegram hands me. Upload it here, and the text"
    " comes into this chat: %(url)s\nThe link is good for one file and for %(time)s."
)
LARGE = N_(
    "This file is larger than the %(size)s that Telegram hands me. Send it in shorter parts, or"
    " compressed."
)
NOT_HANDED_OVER = N_("Telegram did not hand me the file. Please send it again.")
IS_KNOWN = N_("I have this recording already: its text is, or will be, the reply to it.")
REPLY_TO_ONE = N_("Reply to a recording with /text to get its text.")
NOT_HERE = N_("My owner has switched me off in this chat.")
CHOOSE_LANGUAGE = N_("In which language shall I answer?")
LANGUAGE_SET = N_("I answer in English from now on.")
NOTHING_TO_CANCEL = N_("There is nothing to cancel here.")
CANCELLED = N_("Cancelled.")
IS_OVER = N_("It is over already.")
NOTHING_RUNNING = N_("Nothing is at work for this chat.")
AT_WORK_AGAIN = N_("It is at work again.")
GONE = N_("This recording is not here any more.")
NO_TEXT = N_("There is no text yet.")
CHOOSE_MODE = N_("Which recordings of this chat become text? Now: %(mode)s.")
MODE_SET = N_("From now on: %(mode)s.")
ADMINS_ONLY = N_("Only the administrators of this chat choose that.")
MODES = {
    "all": N_("all of them"),
    "on_request": N_("those answered with /text"),
    "off": N_("none"),
}
KIND_NAMES = {
    "voice": N_("Voice message"),
    "video_note": N_("Video message"),
    "audio": N_("Audio"),
    "video": N_("Video"),
    "document": N_("File"),
}
"""What a recording without a name is called, by Telegram's kind."""

COMMANDS = {
    "help": N_("What I can do"),
    "status": N_("What I am working on"),
    "cancel": N_("Stop a recording"),
    "text": N_("The text of the recording replied to"),
    "lang": N_("The language I answer in"),
    "mode": N_("Which recordings become text"),
}
"""The commands as Telegram's menu shows them; /start is Telegram's own button."""


def say(language: str, sentence: str, **places: object) -> str:
    """A sentence in a language of i18n.LANGUAGES, its places filled."""
    text = str(catalogue(language).ugettext(sentence))
    return text % places if places else text


def file_size(language: str, size_bytes: int) -> str:
    """A size as people say it, in megabytes or gigabytes of 1024."""
    megabytes = size_bytes / 1024**2
    unit, value = ("gigabyte", megabytes / 1024) if megabytes >= 1024 else ("megabyte", megabytes)
    locale = language or DEFAULT_LANGUAGE
    return format_unit(round(value, 1), f"digital-{unit}", length="short", locale=locale)


def lasting(language: str, seconds: float) -> str:
    """A time in its largest unit: 6 hours."""
    return format_timedelta(max(round(seconds), 1), threshold=1.5, locale=language)
