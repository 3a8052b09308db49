"""Log lines: one JSON object each, without secrets, and written whatever they hold."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from app import log


@pytest.fixture(autouse=True)
def own_log() -> Iterator[None]:
    """Put everybody's logging back afterwards."""
    root, former = logging.getLogger(), structlog.get_config()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.configure(**former)


def written(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_ours_and_the_libraries_lines_have_one_form(capsys: pytest.CaptureFixture[str]) -> None:
    log.configure("INFO")
    with structlog.contextvars.bound_contextvars(request_id="r1"):
        log.get("app.x").info("request", status=200, text="日本")
        logging.getLogger("library").warning("careful")
    ours, theirs = written(capsys)
    assert ours == {
        "event": "request", "status": 200, "text": "日本", "request_id": "r1", "level": "info", "timestamp": ours["timestamp"],
    }  # fmt: skip
    assert theirs == {
        "event": "careful", "request_id": "r1", "level": "warning", "timestamp": theirs["timestamp"],
    }  # fmt: skip


def test_what_is_below_the_level_is_not_written(capsys: pytest.CaptureFixture[str]) -> None:
    log.configure("WARNING")
    log.get("app.x").info("request")
    log.get("app.x").warning("odd")
    assert [line["event"] for line in written(capsys)] == ["odd"]


@pytest.mark.parametrize("value", ["half \ud800", 2**80, {1, 2}, {3: "x"}, b"\xff"])
def test_no_value_keeps_a_line_from_being_written(value: object, capsys: pytest.CaptureFixture[str]) -> None:
    log.configure("INFO")
    log.get("app.x").info("odd", value=value)
    assert written(capsys)[0]["event"] == "odd"


def test_a_fault_is_written_in_one_line_without_its_secrets(capsys: pytest.CaptureFixture[str]) -> None:
    log.configure("INFO")
    try:
        raise RuntimeError("called with Token m0-abcdefghijklmnop")
    except RuntimeError:
        log.get("app.x").exception("failed")
    (line,) = written(capsys)
    assert "RuntimeError" in str(line["exception"])
    assert "abcdefgh" not in str(line)
