"""Every setting: its unit, default and one sentence. The only place that reads environment variables."""

from __future__ import annotations

import difflib
import os
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import AliasChoices, Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from app import errors

Network: TypeAlias = IPv4Network | IPv6Network
Wait = Annotated[float, Field(ge=0, le=30 * 86_400)]  #: seconds until another attempt
_DAY_S = 86_400.0
_PREFIX = "MEMORYD_"


def default_data() -> Path:
    """Return where data goes when nobody says: a system folder for root, else the user's own data folder."""
    if os.geteuid() == 0:
        return Path("/var/lib/memoryd")
    home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(home) / "memoryd"


def quiet_openmp() -> None:
    """Let OpenMP threads sleep between two pieces of work. Works only before a library loads OpenMP; safe to repeat.

    Spinning threads made the slowest 5 % of query embeddings eight times slower on cores that other work shares.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


class Settings(BaseSettings):
    """Settings of one process. Read once in the roof (`load`), then handed down."""

    model_config = SettingsConfigDict(
        env_prefix=_PREFIX, env_ignore_empty=True, frozen=True, extra="ignore", allow_inf_nan=False
    )

    # Where
    data: Path = Field(default_factory=default_data, description="Folder of everything that the embedded servers keep.")
    host: str = Field("127.0.0.1", description="Address that the API listens on.")
    port: int = Field(8000, ge=1, le=65535, description="Port that the API listens on.")
    public_url: str | None = Field(None, description="Base URL that clients use, when a proxy stands in front.")

    # Servers
    database_url: SecretStr | None = Field(
        None,
        validation_alias=AliasChoices("MEMORYD_DATABASE_URL", "DATABASE_URL"),
        description="PostgreSQL 16+ with pgvector 0.8.2+; unset: the embedded one is started.",
    )
    redis_url: SecretStr | None = Field(
        None,
        validation_alias=AliasChoices("MEMORYD_REDIS_URL", "REDIS_URL"),
        description="Redis or Valkey, the doorbell of the worker; unset: the embedded one is started.",
    )
    server_user: str = Field(
        "nobody", description="Unprivileged user that runs the embedded servers when memoryd is root."
    )
    db_pool_size: int = Field(10, ge=2, le=200, description="Connections to the database per process.")
    db_statement_cache: int = Field(
        256, ge=0, description="Prepared statements kept per connection; 0 behind pgbouncer."
    )
    db_statement_s: float = Field(
        15.0, gt=0, description="Longest time of one statement for a request, in seconds; then it is answered with 503."
    )

    # Models
    llm_base_url: str | None = Field(
        None, description="OpenAI-compatible chat endpoint, such as http://127.0.0.1:11434/v1."
    )
    llm_model: str | None = Field(None, description="Name of the chat model; without it extraction works by rules.")
    llm_api_key: SecretStr | None = Field(None, description="Key of the chat endpoint, if it wants one.")
    llm_timeout_s: float = Field(
        120.0, gt=0, le=_DAY_S, description="Longest wait for one answer of the chat model, in seconds."
    )
    embedder_base_url: str | None = Field(
        None, description="OpenAI-compatible /embeddings endpoint; unset: the embedded model."
    )
    embedder_model: str | None = Field(None, description="Name of the embedding model at that endpoint.")
    embedder_api_key: SecretStr | None = Field(None, description="Key of the embedding endpoint, if it wants one.")
    embedder_timeout_s: float = Field(
        30.0, gt=0, le=_DAY_S, description="Longest wait for one batch of embeddings, in seconds."
    )
    embedder_batch: int = Field(64, ge=1, le=2048, description="Texts in one request to the embedding endpoint.")
    extraction_window_tokens: int = Field(
        4000, ge=200, description="Tokens of conversation that one extraction call reads; longer adds are split."
    )

    # Worker
    worker_slots: int = Field(4, ge=1, le=100, description="Events that one worker processes at the same time.")
    lease_s: float = Field(
        30.0, gt=0, le=_DAY_S, description="Seconds after which an event of a dead worker is taken over."
    )
    sweep_s: float = Field(
        2.0, gt=0, le=_DAY_S, description="Seconds between two looks for due events, which need no Redis."
    )
    drain_s: float = Field(
        20.0, ge=0, le=_DAY_S, description="Seconds that a stopping worker waits for its running events."
    )
    retry_delays_s: Annotated[tuple[Wait, ...], NoDecode] = Field(
        (2.0, 10.0, 60.0, 300.0, 1800.0),
        description="Waits before the second and later attempts of an event, comma-separated.",
    )

    # Behaviour
    compatibility: Literal["architecture", "hosted"] = Field(
        "architecture", description="Behaviour of new projects; `hosted` follows the hosted platform of July 2026."
    )

    # Outbound
    outbound_allow_nets: Annotated[tuple[Network, ...], NoDecode] = Field(
        (),
        description="Networks beside the public ones that webhooks and media URLs may reach, on any port, such as 10.0.0.0/8, comma-separated.",
    )
    webhook_slots: int = Field(
        16,
        ge=1,
        le=200,
        description="Webhook deliveries that one worker makes at the same time; two at most to one endpoint.",
    )
    webhook_timeout_s: float = Field(10.0, gt=0, le=_DAY_S, description="Longest time for one delivery, in seconds.")
    webhook_delays_s: Annotated[tuple[Wait, ...], NoDecode] = Field(
        (5.0, 300.0, 1800.0, 7200.0, 18_000.0, 36_000.0, 36_000.0),
        description="Waits before the second and later attempts of a delivery, comma-separated.",
    )
    webhook_disable_days: float = Field(
        5.0, gt=0, description="An endpoint whose every attempt has failed for so long is made inactive."
    )
    webhook_overlap_s: float = Field(
        86_400.0, ge=0, description="Seconds for which a rotated webhook secret signs beside the new one."
    )
    audit_keep_days: int = Field(365, ge=1, description="Days for which the audit log is kept.")
    webhook_keep_days: int = Field(30, ge=1, description="Days for which deliveries and their log are kept.")
    media_max_bytes: int = Field(10 * 2**20, ge=1024, description="Size of one image or document of an add.")
    media_max_parts: int = Field(20, ge=1, description="Images and documents in one add.")
    media_max_pages: int = Field(200, ge=1, description="Pages of one PDF.")
    media_timeout_s: float = Field(
        20.0,
        gt=0,
        le=_DAY_S,
        description="Longest time to fetch one image or document, and again to read it, in seconds.",
    )

    # Metrics
    metrics_open: bool = Field(
        False, description="Let whoever asks from this machine read /metrics without a key; not behind a proxy on it."
    )

    # Limits
    max_body_bytes: int = Field(10 * 2**20, ge=1024, description="Largest request body.")
    body_timeout_s: float = Field(
        60.0, gt=0, le=_DAY_S, description="Longest wait for a whole request body, in seconds."
    )
    max_messages: int = Field(10_000, ge=1, description="Messages in one add.")
    max_raw_messages: int = Field(
        2_000, ge=1, description="Messages in one add with `infer: false`, which waits until all are stored."
    )
    max_message_bytes: int = Field(2**20, ge=1, description="Text of one message, in UTF-8.")
    max_pending: int = Field(
        10_000, ge=0, description="Events of one project that may wait; more are answered with 429. 0: any number."
    )
    max_metadata_bytes: int = Field(64 * 2**10, ge=2, description="Metadata of one memory, as JSON.")
    max_metadata_depth: int = Field(32, ge=1, description="Nesting of metadata.")
    max_json_depth: int = Field(64, ge=1, description="Nesting of any request body.")
    max_filter_depth: int = Field(10, ge=1, description="Nesting of AND, OR and NOT in filters.")
    max_filter_conditions: int = Field(200, ge=1, description="Conditions in one filter.")

    # Logs
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field("INFO", description="Least level that is logged.")
    log_json: bool = Field(True, description="Log JSON lines; false gives lines for people.")

    @field_validator("retry_delays_s", "webhook_delays_s", "outbound_allow_nets", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return tuple(part.strip() for part in value.split(",")) if isinstance(value, str) else value

    @field_validator("database_url", mode="after")
    @classmethod
    def _is_postgres(cls, value: SecretStr | None) -> SecretStr | None:
        # What the driver says of a bad address names no setting; and it says it late.
        if value is None:
            return None
        parts = urlsplit(value.get_secret_value())
        ports = [host.rpartition("]")[2].partition(":")[2] for host in parts.netloc.rpartition("@")[2].split(",")]
        if parts.scheme not in ("postgres", "postgresql") or not all(_is_port(port) for port in ports if port):
            raise ValueError("must be like postgresql://user:password@host:5432/database")
        return value

    @field_validator("llm_base_url", "embedder_base_url", "public_url", mode="after")
    @classmethod
    def _is_web_address(cls, value: str | None) -> str | None:
        if value is None:
            return None
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("must begin with http:// or https:// and name a host")
        return value

    @property
    def base_url(self) -> str:
        """Base URL of the API, without a slash at the end."""
        return (self.public_url or f"http://{self.host}:{self.port}").rstrip("/")


def load(**overrides: object) -> Settings:
    """Read the settings from the environment; `overrides` win.

    Raises: SetupError, one line that names the variable and what is wrong with it.
    """
    try:
        return Settings(**overrides)  # type: ignore[arg-type]  # the keywords are the fields, checked at run time
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else "settings"
        variable = name if name.isupper() else f"{_PREFIX}{name.upper()}"
        if variable not in os.environ and variable.removeprefix(_PREFIX) in os.environ:
            variable = variable.removeprefix(_PREFIX)  # the other name of the same setting
        reason = str(first["msg"]).removeprefix("Value error, ")
        raise errors.SetupError(f"{variable}: {reason}") from error


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdecimal() and 0 < int(text) < 2**16


def unknown() -> dict[str, str | None]:
    """Return the variables of the environment that look like settings and are none, each with the setting it resembles."""
    known = [f"{_PREFIX}{name.upper()}" for name in Settings.model_fields]
    found = sorted(name for name in os.environ if name.upper().startswith(_PREFIX) and name.upper() not in known)
    return {name: next(iter(difflib.get_close_matches(name.upper(), known, n=1)), None) for name in found}


def environment(**changes: str) -> dict[str, str]:
    """Return this process's environment with `changes`, for a child process."""
    return {**os.environ, **changes}
