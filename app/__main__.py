"""`memoryd`, and `python -m app`: the door of the command line, where errors become one line and exit code 1."""

from __future__ import annotations

import sys
import traceback

from app import config, errors


def main() -> None:
    """Run the command that the arguments name."""
    from app.cli import commands

    try:
        commands.cli(prog_name="memoryd")
    except errors.DatabaseUnavailable as error:
        _end(f"{error.message} DATABASE_URL: {error.__cause__ or 'no further word'}", error)
    except errors.AppError as error:
        _end(error.message, error)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:  # noqa: BLE001 - a door: the operator gets a line, not our stack
        _end(f"unexpected error: {type(error).__name__}: {error}", error, hint=" (MEMORYD_LOG_LEVEL=DEBUG shows where)")


def _end(message: str, error: Exception, *, hint: str = "") -> None:
    if _debugging():
        traceback.print_exception(error)
        hint = ""
    print(f"memoryd: {message}{hint}", file=sys.stderr)  # noqa: T201 - the command line's own voice
    sys.exit(1)


def _debugging() -> bool:
    try:
        return config.load().log_level == "DEBUG"
    except errors.SetupError:
        return False


if __name__ == "__main__":
    main()
