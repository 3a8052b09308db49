"""JSON lines on standard error; ids bound once follow every line of a request, an event or a job."""

from __future__ import annotations

import json
import logging
import re
import sys
from typing import Any

import orjson
import structlog

#: Keys, webhook secrets, authorisation headers and passwords in addresses never reach a log.
_SECRETS = re.compile(
    r"(m0-|sk-|whsec_)[A-Za-z0-9_\-+/=]{6,}"
    r"|\b(Token|Bearer)\s+[A-Za-z0-9_\-.+/=]{6,}"
    r"|(?<=://)[^/\s:@]*:[^/\s@]+(?=@)",
    re.IGNORECASE,
)


def redact(text: str) -> str:
    """Return `text` with every key, token and password replaced by `[redacted]`."""
    return _SECRETS.sub("[redacted]", text)


def _redact_values(_logger: Any, _name: str, entry: structlog.typing.EventDict) -> structlog.typing.EventDict:
    # No secret that is known by its form is shorter.
    return {key: redact(value) if isinstance(value, str) and len(value) > 8 else value for key, value in entry.items()}


def _json(entry: Any, **_options: Any) -> str:
    try:
        return orjson.dumps(entry, default=repr, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_UTC_Z).decode()
    except TypeError:  # half a character, or a number beyond 64 bits
        return json.dumps(entry, default=repr)


class _Stderr:
    """What structlog hands a finished line to."""

    def __init__(self, *_names: Any) -> None:
        pass

    def msg(self, line: str) -> None:
        """Write the line to standard error, in one piece."""
        sys.stderr.write(line + "\n")

    debug = info = warning = warn = error = exception = critical = fatal = log = msg


def configure(level: str = "INFO", *, json_lines: bool = True) -> None:
    """Send all logging, ours and the libraries', to standard error in one form. Safe to repeat."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.format_exc_info,
        _redact_values,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    render: structlog.typing.Processor = (
        structlog.processors.JSONRenderer(_json) if json_lines else structlog.dev.ConsoleRenderer(colors=False)
    )
    structlog.configure(
        # Written directly: the way through the standard library's logging takes three times as long, for every request.
        processors=[*shared, render],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level)),
        logger_factory=_Stderr,
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, render],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for noisy in ("httpx", "httpcore", "arq.worker", "arq.jobs", "uvicorn.access"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


def get(name: str) -> structlog.stdlib.BoundLogger:
    """Return the logger called `name`. Log ids, sizes and times; never message texts, queries or memories."""
    logger: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger(name)
    return logger
