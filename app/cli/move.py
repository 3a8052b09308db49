"""`memoryd import` and `memoryd export`: memories from a file or a service into a service, and back out."""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import httpx
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from app import config, errors
from app.cli import sources
from app.domain import move

BATCH = 100  #: memories of one request: about a second of embedding
BATCH_BYTES = 4 * 2**20
TRIES = 5  #: of one batch, while the service is away
SHOWN_FAULTS = 50  #: of those that could not be taken; the rest is counted
#: Outcomes that are no fault: what is there already is what was wanted.
_FINE = ("imported", "exists", "duplicate")

console = Console(highlight=False, stderr=True, soft_wrap=True)


@dataclass(frozen=True, slots=True)
class Place:
    """A running service."""

    base_url: str
    key: str


def place(settings: config.Settings, url: str | None, key: str | None) -> Place:
    """Return the service that is meant: the one named, else the one that runs on the data folder.

    `key` may be `@file`. Raises: SetupError.
    """
    if url is not None or key is not None:
        if url is None or key is None:
            raise errors.SetupError("give both --url and --key, or neither for the service that runs here")
        return Place(url, secret(key))
    path = settings.data / "connection.json"
    try:
        found = json.loads(path.read_text())
        return Place(found["base_url"], found["api_key"])
    except FileNotFoundError:
        raise errors.SetupError(
            f"no memoryd runs on {settings.data}: start one with `memoryd up`, or name one with --url and --key"
        ) from None
    except (OSError, ValueError, KeyError) as error:
        raise errors.SetupError(f"cannot read {path}: {error!r}") from error


def secret(text: str) -> str:
    """Return a key, from a file when it begins with @: what is on a command line can be seen by others."""
    if not text.startswith("@"):
        return text
    try:
        return Path(text[1:]).read_text().strip()
    except OSError as error:
        raise errors.SetupError(f"cannot read {text[1:]}: {error.strerror}") from error


def filters_of(text: str | None) -> dict[str, Any] | None:
    """Read filters from a command line. Raises: SetupError."""
    if text is None:
        return None
    try:
        found = json.loads(text)
    except ValueError as error:
        raise errors.SetupError(f"--filters is not JSON: {error}") from error
    if not isinstance(found, dict) or not found:
        raise errors.SetupError('--filters must be an object such as {"user_id": "alice"}')
    return found


# Export


def write(of: Place, target: Path | None, filters: dict[str, Any] | None) -> None:
    """Write all memories that match to a file, a line each, in order of their ids; None: to standard output.

    The file is there when it is complete, or not at all. Raises: SetupError.
    """
    if target is None:
        _write(of, sys.stdout.buffer, filters)
        return
    part = target.with_name(f".{target.name}.part")
    try:
        with part.open("wb") as file:
            _write(of, file, filters)
        os.replace(part, target)
    except OSError as error:
        raise errors.SetupError(f"cannot write {target}: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)


def _write(of: Place, file: BinaryIO, filters: dict[str, Any] | None) -> None:
    count = digest = 0
    with _progress() as progress:
        task = progress.add_task("memories written", total=None)

        def expect(total: int) -> None:
            progress.update(task, total=total)

        for line in sources.streamed(of.base_url, of.key, filters, on_count=expect):
            file.write(line.data + b"\n")
            count, digest = count + 1, move.digest([line.data], start=digest)
            progress.update(task, advance=1)
        progress.update(task, total=count)  # some may have come or gone meanwhile
    file.flush()
    console.print(f"{count} memories, set {digest:064x}")


# Import


@dataclass(slots=True)
class Report:
    """What became of the memories."""

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    digest: int = 0  # of the lines that the service has for those that were imported or exist
    given: int = 0  # of the lines as they came
    whole: bool = True  # every line came to be there, and is counted in both

    def fault(self, outcome: str, text: str) -> None:
        """Note one that was not taken."""
        self.counts[outcome] += 1
        self.whole = False
        if len(self.faults) < SHOWN_FAULTS:
            self.faults.append(text)

    @property
    def bad(self) -> int:
        """How many could not be taken."""
        return sum(count for outcome, count in self.counts.items() if outcome not in _FINE)


def read(into: Place, source: sources.Source) -> int:
    """Take memories into a service, and say what became of them; return the exit code: 1 if some could not be taken.

    Safe to break off and to run again: what is there is passed over. Raises: SetupError when the service stops answering.
    """
    report = Report()
    with sources.client(into.base_url, into.key) as http, _progress() as progress:
        task = progress.add_task("memories taken in", total=source.total)
        console.print(
            "Each memory is embedded on its way in, which is what takes the time: about 80 a second on two cores."
        )
        for batch in _batches(source.lines, report):
            good = [line for line in batch if line.fault is None]
            if good:
                _send(http, good, report)
            progress.update(task, advance=len(batch))
        progress.update(task, total=sum(report.counts.values()))
    _tell(report)
    return 1 if report.bad else 0


def _batches(lines: Iterator[sources.Line], report: Report) -> Iterator[list[sources.Line]]:
    batch: list[sources.Line] = []
    size = 0
    for line in lines:
        if line.fault is not None:
            report.fault("refused", f"{line.place} {line.fault}")
        elif size + len(line.data) > BATCH_BYTES and batch:
            yield batch
            batch, size = [], 0
        batch.append(line)
        size += len(line.data)
        if len(batch) == BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _send(http: httpx.Client, lines: Sequence[sources.Line], report: Report) -> None:
    """Send lines as they are; one that the service cannot read as a whole body is found by halving."""
    answer = _post(http, b'{"memories":[' + b",".join(line.data for line in lines) + b"]}")
    if answer.status_code in (httpx.codes.BAD_REQUEST, httpx.codes.REQUEST_ENTITY_TOO_LARGE):
        if len(lines) == 1:
            report.fault("refused", f"{lines[0].place}: {sources.refusal(answer)}")
            return
        half = len(lines) // 2
        _send(http, lines[:half], report)
        _send(http, lines[half:], report)
        return
    if answer.status_code != httpx.codes.OK:
        raise errors.SetupError(f"{http.base_url} refuses the import: {sources.refusal(answer)}")
    for line, result in zip(lines, answer.json()["results"], strict=True):
        _note(line, result, report)


def _note(line: sources.Line, result: dict[str, Any], report: Report) -> None:
    outcome = str(result["outcome"])
    if outcome not in _FINE:
        report.fault(outcome, f"{line.place}: {result['reason']}")
        return
    report.counts[outcome] += 1
    if result["digest"] is None:
        report.whole = False
        return
    report.digest = (report.digest + int(result["digest"], 16)) % (1 << 256)
    report.given = move.digest([line.data], start=report.given)


def _post(http: httpx.Client, body: bytes) -> httpx.Response:
    """Send one batch, again while the service is away: a repeat changes nothing."""
    for attempt in range(TRIES):
        try:
            answer = http.post("/v1/import/", content=body)
            if answer.status_code not in (429, 502, 503, 504) or attempt == TRIES - 1:
                return answer
        except httpx.TransportError as error:
            if attempt == TRIES - 1:
                raise errors.SetupError(
                    f"{http.base_url} stopped answering ({error}); run the command again, it goes on where it stopped."
                ) from error
        time.sleep(2.0**attempt)
    raise AssertionError("unreachable")


def _tell(report: Report) -> None:
    parts = [f"{count} {outcome}" for outcome, count in sorted(report.counts.items())]
    console.print(f"{sum(report.counts.values())} memories: {', '.join(parts) or 'none'}")
    same = ", the same as in the source" if report.whole and report.digest == report.given else ""
    console.print(f"set {report.digest:064x}{same}")
    for fault in report.faults:
        console.print(f"not taken: {fault}", markup=False)
    if report.bad > len(report.faults):
        console.print(f"not taken: {report.bad - len(report.faults)} more")


def _progress() -> Progress:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TaskProgressColumn(show_speed=True),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=console)
