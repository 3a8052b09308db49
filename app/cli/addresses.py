"""Where the database and the doorbell are: what the settings name, else the servers of a running `memoryd up`."""

from __future__ import annotations

from pydantic import SecretStr

from app import errors
from app.config import Settings
from app.servers import postgres, valkey


def complete(settings: Settings) -> Settings:
    """Return the settings with the addresses of the running embedded servers, where none is set.

    Raises: SetupError when there is no database to talk to.
    """
    found: dict[str, SecretStr] = {}
    try:
        if settings.database_url is None and (dsn := postgres.running_dsn(settings.data / "postgres")):
            found["database_url"] = SecretStr(dsn)
        if settings.redis_url is None and (url := valkey.running_url(settings.data / "valkey")):
            found["redis_url"] = SecretStr(url)
    except OSError as error:
        raise errors.SetupError(
            f"cannot read {error.filename}: {error.strerror}; set DATABASE_URL, or be the user who started memoryd there"
        ) from error
    if settings.database_url is None and "database_url" not in found:
        raise errors.SetupError(
            f"DATABASE_URL is not set, and no memoryd runs on {settings.data}: "
            "set DATABASE_URL, or start everything with `memoryd up`"
        )
    return settings.model_copy(update=found)


def local_url(settings: Settings) -> str:
    """Return the base URL of the API as this machine reaches it."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(settings.host, settings.host)
    return f"http://[{host}]:{settings.port}" if ":" in host else f"http://{host}:{settings.port}"
