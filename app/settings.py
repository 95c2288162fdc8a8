"""The only reader of the environment and of pisar.toml (I04).

Every key may also come as PISAR_<SECTION>__<KEY>; a secret may come from the file that
PISAR_<SECTION>__<KEY>_FILE names. load() reports every fault at once.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import (
    BaseModel,
    ByteSize,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

GIB = 1024**3
MAX_RECORDING_BYTES = 8 * GIB
"""The largest recording (S13): six hours with room for video. Every door honours this one."""

EVERYBODY = "everybody"
"""The word of telegram.allow that opens the bot to all."""

_BOT_TOKEN = re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]{1,100}")
_PREFIX = "PISAR_"
_CONFIG_KEY = "PISAR_CONFIG"
_DEFAULT_CONFIG = "pisar.toml"


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class Storage(_Section):
    """Where everything lives (S01)."""

    data_dir: Path = Path("data")


class Server(_Section):
    """The web process, and the two limits of every stop."""

    host: str = "127.0.0.1"
    port: int = Field(8080, ge=1, le=65535)
    public_url: str = Field("", pattern=r"^(https?://[^\s/]+(/[^\s]*)?)?$")
    threads: int = Field(8, ge=2, le=64)
    idle_timeout: int = Field(120, ge=1)
    shutdown_timeout: float = Field(5, gt=0)
    force_shutdown_timeout: float = Field(20, gt=0)
    metrics_port: int = Field(9101, ge=0, le=65535)
    trusted_proxy: str = ""


class Panel(_Section):
    """The owner's panel and sessions."""

    invite_lifetime: int = Field(1800, ge=60)
    session_idle: int = Field(12 * 3600, ge=60)
    session_lifetime: int = Field(30 * 86400, ge=60)


class Intake(_Section):
    """What is accepted and from whom (I07)."""

    auth: Literal["auto", "token", "open"] = "auto"
    max_size: ByteSize = Field(ByteSize(MAX_RECORDING_BYTES), ge=1, le=MAX_RECORDING_BYTES)
    max_duration: int = Field(6 * 3600, ge=1)


class Worker(_Section):
    """Slots, leases (seconds) and pauses of the worker; the defaults are the spec's numbers."""

    convert_slots: int = Field(1, ge=0, le=64)
    recognize_slots: int = Field(1, ge=0, le=64)
    check_slots: int = Field(1, ge=0, le=64)
    fair_turns: bool = True
    max_attempts: int = Field(5, ge=1)
    retry_cap: float = Field(300, gt=0)
    convert_lease: float = Field(8 * 3600, gt=0)
    recognize_lease: float = Field(8 * 3600, gt=0)
    check_lease: float = Field(3600, gt=0)
    poll_interval: float = Field(1, gt=0, le=60)
    convert_timeout: float = Field(2 * 3600, gt=0)
    stall_timeout: float = Field(120, gt=0)
    metrics_port: int = Field(9102, ge=0, le=65535)


class Recognizer(_Section):
    """Which engine, and how it is asked."""

    engine: Literal["embedded"] = "embedded"
    model_dir: Path | None = None
    threads: int = Field(0, ge=0, le=256)
    piece_seconds: float = Field(300, ge=30, le=1800)
    piece_timeout: float = Field(1800, gt=0)
    idle_unload: float = Field(600, ge=0)
    first_check_delay: float = Field(10, ge=0)
    check_delay: float = Field(5, gt=0)


class Telegram(_Section):
    """The bot: without a token there is none, and nothing else changes."""

    token: SecretStr | None = None
    api_url: str = Field("https://api.telegram.org", pattern=r"^https?://[^\s/?#@]+(/[^\s?#]*)?$")
    local: bool = False
    mode: Literal["polling", "webhook"] = "polling"
    webhook_url: str = Field("", pattern=r"^(https?://[^\s/?#@]+(/[^\s?#]*)?)?$")
    webhook_port: int = Field(8081, ge=1, le=65535)
    allow: tuple[int, ...] | Literal["everybody"] = ()
    group_mode: Literal["all", "on_request", "off"] = "all"
    message_limit: int = Field(4000, ge=100, le=4096)
    max_parts: int = Field(10, ge=1, le=100)
    update_timeout: int = Field(10, ge=1, le=50)
    request_timeout: float = Field(30, gt=0)
    delivery_wait: float = Field(60, gt=0)
    link_lifetime: int = Field(86400, ge=60)
    metrics_port: int = Field(9103, ge=0, le=65535)

    @field_validator("token")
    @classmethod
    def _is_token(cls, value: SecretStr | None) -> SecretStr | None:
        # An empty variable is a way to say "none"; what is no token would end up in an address.
        if value is None or not value.get_secret_value():
            return None
        if not _BOT_TOKEN.fullmatch(value.get_secret_value()):
            raise PydanticCustomError("bot_token", "a bot's token as @BotFather gives it")
        return value

    @field_validator("allow", mode="before")
    @classmethod
    def _is_list(cls, value: object) -> object:
        """An environment variable has its numbers between commas."""
        if isinstance(value, str):
            if value.strip() == EVERYBODY:
                return EVERYBODY
            value = [part for part in value.split(",") if part.strip()]
        try:
            return tuple(int(part) for part in value)  # type: ignore[attr-defined]
        except (TypeError, ValueError):
            # Raised below, so that the value is in no chain.
            pass
        raise PydanticCustomError("allow", 'numbers of users and chats, or "everybody"')

    @model_validator(mode="after")
    def _knows_where(self) -> "Telegram":
        if self.mode == "webhook" and not self.webhook_url:
            raise PydanticCustomError("webhook", "webhook_url too, for mode = webhook")
        return self


class Retention(_Section):
    """How long what is no longer wanted is kept (S31)."""

    bin_days: int = Field(7, ge=0, le=36500)

    @property
    def bin_seconds(self) -> float:
        """How long a deleted job can be brought back."""
        return self.bin_days * 86400.0


class Log(_Section):
    """What is logged and how; `auto` means JSON unless it goes to a terminal."""

    level: Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] = "INFO"
    format: Literal["auto", "json", "text"] = "auto"


class Settings(_Section):
    """All settings, read once and passed on; frozen."""

    storage: Storage = Storage()
    server: Server = Server()
    panel: Panel = Panel()
    intake: Intake = Intake()
    worker: Worker = Worker()
    recognizer: Recognizer = Recognizer()
    telegram: Telegram = Telegram()
    retention: Retention = Retention()
    log: Log = Log()

    @property
    def intake_is_open(self) -> bool:
        """True when anybody who reaches the server may hand in a recording (I07)."""
        if self.intake.auth == "auto":
            return self.server.host in ("127.0.0.1", "localhost", "::1")
        return self.intake.auth == "open"

    @property
    def longest_pause_seconds(self) -> float:
        """The longest pause that any job is given: after a failure, or before a check."""
        checks = self.recognizer.first_check_delay, self.recognizer.check_delay
        return max(self.worker.retry_cap, *checks)


class SettingsError(Exception):
    """Every fault of the settings in one message, none of which shows a value."""


def load(environ: Mapping[str, str] | None = None) -> Settings:
    """The settings from pisar.toml and the environment; faults raise one SettingsError."""
    env = os.environ if environ is None else environ
    raw = _read_file(env)
    faults = _overlay(raw, env)
    try:
        settings = Settings.model_validate(raw)
    except ValidationError as error:
        faults += [_describe(fault) for fault in error.errors(include_input=True)]
        settings = None
    if faults or settings is None:
        raise SettingsError("\n".join(["The settings are wrong:", *(f"  {f}" for f in faults)]))
    return settings


def child_environment(settings: Settings) -> dict[str, str]:
    """The environment of the service's own processes, the data directory made absolute."""
    return {
        **os.environ,
        "PISAR_STORAGE__DATA_DIR": str(settings.storage.data_dir.resolve()),
    }


def _read_file(env: Mapping[str, str]) -> dict[str, Any]:
    path = Path(env.get(_CONFIG_KEY) or _DEFAULT_CONFIG)
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except FileNotFoundError:
        if env.get(_CONFIG_KEY):
            raise SettingsError(f"The settings file {_CONFIG_KEY} names is not there.") from None
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"The settings file is not valid TOML: {error}") from None
    except OSError as error:
        raise SettingsError(f"The settings file cannot be read: {error.strerror}") from None


def _overlay(raw: dict[str, Any], env: Mapping[str, str]) -> list[str]:
    """Lay PISAR_<SECTION>__<KEY> over the file's values; gives the faults found on the way."""
    faults = []
    for name in sorted(env):
        if not name.startswith(_PREFIX) or name == _CONFIG_KEY or "__" not in name:
            continue
        section, key = name.removeprefix(_PREFIX).lower().split("__", 1)
        value = env[name]
        if key.removesuffix("_file") in _secret_keys(section) and key.endswith("_file"):
            key = key.removesuffix("_file")
            try:
                value = Path(value).read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError):
                faults.append(f"{section}.{key}: the file that {name} names cannot be read")
                continue
        part = raw.setdefault(section, {})
        if isinstance(part, dict):
            part[key] = value
    return faults


def _secret_keys(section: str) -> set[str]:
    field = Settings.model_fields.get(section)
    model = field.annotation if field else None
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        return set()
    return {
        name
        for name, item in model.model_fields.items()
        if item.annotation is SecretStr or SecretStr in get_args(item.annotation)
    }


def _describe(fault: Any) -> str:
    key = ".".join(str(part) for part in fault["loc"])
    if fault["type"] == "extra_forbidden":
        return f"{key}: there is no such setting"
    kind = {str: "text", int: "a number", float: "a number", bool: "true or false"}.get(
        type(fault["input"]), type(fault["input"]).__name__
    )
    expected = fault["msg"].removeprefix("Input should be ").replace("Input", "the value")
    return f"{key}: expected {expected}, got {kind}"
