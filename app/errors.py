"""The errors a person or a program may meet: a closed list of codes, each with its sentence.

A sentence says what happened and what to do, and never holds a secret. The sentences are
message ids of the translation catalogue; docs/api.md lists them, checked by a test.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class ErrorKind:
    """One code: its HTTP status, whether trying again is pointless, and the person's sentence."""

    status: int
    permanent: bool
    sentence: str


def N_(sentence: str) -> str:  # noqa: N802 - the catalogue extractor's customary name
    """Mark a sentence for the translation catalogue; the text itself is returned."""
    return sentence


KINDS: dict[str, ErrorKind] = {
    # The recording itself: verdicts, never retried.
    "empty_file": ErrorKind(
        422, True, N_("The file is empty. Record or export it again and send that copy.")
    ),
    "not_media": ErrorKind(
        422, True, N_("This is not a sound or video file that Pisar can read. Send a recording.")
    ),
    "no_audio_track": ErrorKind(
        422, True, N_("This video has no sound. Send a recording that has a sound track.")
    ),
    "truncated": ErrorKind(
        422, True, N_("The file is cut off: its end is missing. Send the whole file again.")
    ),
    "no_audio_decoded": ErrorKind(
        422, True, N_("The file is damaged: no sound could be read from it. Export it again.")
    ),
    "too_long": ErrorKind(
        422, True, N_("The recording is longer than this service takes. Send it in shorter parts.")
    ),
    "playlist": ErrorKind(
        422, True, N_("This is a list of other files, not a recording. Send the recording itself.")
    ),
    "unsafe_media": ErrorKind(
        422, True, N_("The file asked the converter for too much. Convert it to MP3 and try again.")
    ),
    "cancelled": ErrorKind(409, True, N_("Cancelled. It can be revived and will go on.")),
    "recognizer_refused": ErrorKind(
        422, True, N_("The speech engine refused this recording. Try another language or engine.")
    ),
    # Faults of the machine or of what it depends on: retried with a pause.
    "convert_timeout": ErrorKind(
        500, False, N_("The conversion took too long and was stopped. Trying again may help.")
    ),
    "convert_crashed": ErrorKind(
        500, False, N_("The converter stopped unexpectedly. Trying again may help.")
    ),
    "engine_crashed": ErrorKind(
        500, False, N_("The speech engine stopped unexpectedly. Trying again may help.")
    ),
    "engine_unavailable": ErrorKind(
        500, False, N_("The speech engine cannot be started. Run `pisar check` to see why.")
    ),
    "engine_silent": ErrorKind(
        500, False, N_("The speech engine gave no answer. Trying again may help.")
    ),
    "worker_lost": ErrorKind(
        500, False, N_("The worker was stopped in the middle of the work. Trying again may help.")
    ),
    "lease_ended": ErrorKind(
        500, False, N_("The work went on longer than it may. Trying again may help.")
    ),
    "storage_failed": ErrorKind(
        500, False, N_("The file could not be read or written. Look at the disk: `pisar check`.")
    ),
    "disk_full": ErrorKind(
        507, False, N_("There is no room left on the disk. Free some space and try again.")
    ),
    "internal": ErrorKind(
        500, False, N_("Something went wrong inside Pisar. The log of the service says what.")
    ),
    # Requests.
    "not_found": ErrorKind(404, True, N_("There is nothing here. Check the address.")),
    "bad_request": ErrorKind(400, True, N_("The request could not be understood.")),
    "no_file": ErrorKind(400, True, N_("No file was sent. Choose a recording first.")),
    "too_large": ErrorKind(
        413, True, N_("The file is larger than this service takes. Send a smaller one.")
    ),
    "unknown_language": ErrorKind(
        422, True, N_("The speech engine does not know this language. Choose one from the list.")
    ),
    "idempotency_conflict": ErrorKind(
        409, True, N_("This Idempotency-Key was used for another recording. Use a new key.")
    ),
    "not_done": ErrorKind(409, True, N_("There is no text yet. Wait until the job is done.")),
    "wrong_state": ErrorKind(
        409, True, N_("This cannot be done now: the job's state has changed. Look at it again.")
    ),
    "source_missing": ErrorKind(
        409,
        True,
        N_("The recording's file is gone: there is nothing to work on. Send it again."),
    ),
    "sign_in": ErrorKind(401, True, N_("Sign in first.")),
    "token_required": ErrorKind(
        401, True, N_("Handing in needs an API token with the scope `intake`, or signing in.")
    ),
    "bad_token": ErrorKind(
        401, True, N_("This API token is not known, or it was revoked. Ask for a new one.")
    ),
    "forbidden": ErrorKind(403, True, N_("You may not do this.")),
    "cross_site": ErrorKind(
        403, True, N_("The request came from another site and was refused. Open the page again.")
    ),
    "wrong_password": ErrorKind(401, True, N_("The name or the password is wrong.")),
    "too_many_tries": ErrorKind(
        429, True, N_("Too many tries. Wait a little before the next one.")
    ),
    "weak_password": ErrorKind(422, True, N_("Choose a password of at least 12 characters.")),
    "bad_name": ErrorKind(422, True, N_("Choose a name of 1 to 64 letters, digits or . _ - @")),
    "invitation_over": ErrorKind(
        410, True, N_("This invitation is over. Run `pisar owner invite` for a new one.")
    ),
    "owner_exists": ErrorKind(
        409,
        True,
        N_("This service has its owner. Sign in, or run `pisar owner reset-password`."),
    ),
    "link_over": ErrorKind(
        410,
        True,
        N_("This upload link is over, or its file has come. Ask for a new one where you got it."),
    ),
    "name_taken": ErrorKind(409, True, N_("This name is in use. Choose another one.")),
    "no_scope": ErrorKind(422, True, N_("Choose at least one thing that the token may do.")),
    "bad_range": ErrorKind(416, True, N_("The file does not have the part that was asked for.")),
    "method_not_allowed": ErrorKind(405, True, N_("This address does not take that method.")),
    "bad_settings": ErrorKind(500, True, N_("The settings are wrong.")),
    "database_newer": ErrorKind(
        500,
        True,
        N_("The database was written by a newer version of Pisar. Install that version or newer."),
    ),
    "database_damaged": ErrorKind(
        500, False, N_("The database cannot be read. Restore it from a backup.")
    ),
    "store_busy": ErrorKind(
        503,
        False,
        N_("The database is kept busy. Try again in a moment; `pisar check` says by what."),
    ),
}


class AppError(Exception):
    """A failure with a code from KINDS; str() is the English sentence, and `detail` the facts.

    detail is for the owner's eyes (panel, log): numbers and names of ours, never a secret, a
    path, a stored name or the words of a recording. An unknown code is a KeyError.
    """

    def __init__(self, code: str, detail: str = "") -> None:
        self.kind = KINDS[code]
        self.code = code
        self.detail = detail
        super().__init__(self.kind.sentence)

    @property
    def message(self) -> str:
        """The sentence for a person, in English: the message id of its translations."""
        return self.kind.sentence

    @property
    def permanent(self) -> bool:
        """True when trying again cannot help: the job ends in `failed`."""
        return self.kind.permanent
