"""What may become of a question to Telegram; no text here holds a token or a message."""


class TelegramError(Exception):
    """A question that Telegram did not answer as hoped."""


class Refused(TelegramError):  # noqa: N818 - Telegram's word, not a fault of ours
    """Telegram answered, and will not do it: error_code and description are its own.

    migrate_to is the new number of a group that became a supergroup, else None.
    """

    def __init__(self, error_code: int, description: str, migrate_to: int | None = None) -> None:
        super().__init__(f"Telegram refused: {error_code} {description}")
        self.error_code = error_code
        self.description = description
        self.migrate_to = migrate_to


class Busy(TelegramError):  # noqa: N818 - as above
    """Telegram asks to wait so many seconds, whatever is to be asked; nothing was done."""

    def __init__(self, retry_after_seconds: float) -> None:
        super().__init__(f"Telegram asks to wait {retry_after_seconds:.0f} s")
        self.retry_after_seconds = retry_after_seconds


class Unreachable(TelegramError):  # noqa: N818 - as above
    """No answer of Telegram came; may_have_arrived tells whether it may have done it all the same.

    reason is a few words of ours for the log.
    """

    def __init__(self, reason: str, *, may_have_arrived: bool) -> None:
        super().__init__(f"no answer of Telegram: {reason}")
        self.reason = reason
        self.may_have_arrived = may_have_arrived


class NoSuchBot(TelegramError):  # noqa: N818 - as above
    """Telegram knows no bot with this token (P27): trying again cannot help."""

    def __init__(self) -> None:
        super().__init__("Telegram knows no bot with this token")
