"""Tell the service a long conversation, session by session, and ask it what it remembers."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from app import config, errors

QUESTIONS = 10  #: asked of each conversation
_START_S = 180.0  #: a first start makes the database
_EVENT_S = 600.0  #: a model on a small machine may need minutes for a session

console = Console(highlight=False)


@dataclass(frozen=True, slots=True)
class Session:
    """What was said in one sitting: messages in wire form, oldest first."""

    said_at: datetime
    messages: list[dict[str, str]]


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    answer: str


@dataclass(frozen=True, slots=True)
class Dialogue:
    name: str
    sessions: list[Session]
    questions: list[Question]


def run(settings: config.Settings, *, file: Path | None = None, language: str = "both", number: int = 1) -> None:
    """Run the demonstration on the shipped dialogues, or on conversation `number` (from 1) of `file`.

    Raises: SetupError when the file cannot be read or the service does not come up.
    """
    with _service(settings) as client:
        for dialogue in [_from_file(file, number)] if file else _shipped(language):
            _tell(client, dialogue)
            _ask(client, dialogue)


# Reading


def _shipped(language: str) -> Iterator[Dialogue]:
    for code in ("en", "zh") if language == "both" else (language,):
        text = (resources.files("app.cli") / "dialogues" / f"{code}.json").read_text(encoding="utf-8")
        yield _dialogue(json.loads(text)[0])


def _from_file(file: Path, number: int) -> Dialogue:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        samples = data if isinstance(data, list) else [data]
        return _dialogue(samples[number - 1])
    except OSError as error:
        raise errors.SetupError(f"Cannot read {file}: {error.strerror}.") from error
    except IndexError as error:
        raise errors.SetupError(f"{file} holds {len(samples)} conversations; there is no number {number}.") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise errors.SetupError(f"{file} is not a conversation in LoCoMo's format: {error!r}.") from error


def _dialogue(sample: dict[str, Any]) -> Dialogue:
    conversation = sample["conversation"]
    numbers = sorted(int(found[1]) for key in conversation if (found := re.fullmatch(r"session_(\d+)", key)))
    sessions = [
        Session(
            _moment(conversation[f"session_{n}_date_time"]),
            [_message(turn, conversation["speaker_a"]) for turn in conversation[f"session_{n}"]],
        )
        for n in numbers
        if conversation[f"session_{n}"]
    ]
    asked = [Question(str(qa["question"]), str(qa["answer"])) for qa in sample.get("qa", []) if "answer" in qa]
    step = max(1, len(asked) // QUESTIONS)  # spread over the conversation, not its first session only
    return Dialogue(str(sample.get("sample_id", "demo")), sessions, asked[::step][:QUESTIONS])


def _moment(text: str) -> datetime:
    """Read `1:56 pm on 8 May, 2023` as UTC."""
    return datetime.strptime(text.strip(), "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)


def _message(turn: dict[str, Any], first_speaker: str) -> dict[str, str]:
    caption = turn.get("blip_caption")
    content = turn["text"] + (f" [shares a picture: {caption}]" if caption else "")
    role = "user" if turn["speaker"] == first_speaker else "assistant"
    return {"role": role, "name": turn["speaker"], "content": content}


# The service


@contextmanager
def _service(settings: config.Settings) -> Iterator[httpx.Client]:
    """Give a client of the running service; start one for the time of the demonstration if none runs."""
    path = settings.data / "connection.json"
    started: subprocess.Popen[bytes] | None = None
    if not _alive(path):
        console.print(f"No service runs on {settings.data}; starting one for the demonstration.")
        command = [sys.executable, "-m", "app", "up", "--stop-with-parent"]
        started = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _wait_for(path, started)
    connection = json.loads(path.read_text())
    headers = {"Authorization": f"Token {connection['api_key']}"}
    try:
        with httpx.Client(base_url=connection["base_url"], headers=headers, timeout=60, trust_env=False) as client:
            yield client
    finally:
        if started is not None:
            started.terminate()
            started.wait(timeout=60)


def _alive(path: Path) -> bool:
    try:
        url = json.loads(path.read_text())["base_url"]
        return httpx.get(f"{url}/healthz", timeout=5, trust_env=False).status_code == 200
    except (OSError, ValueError, KeyError, httpx.HTTPError):
        return False


def _wait_for(path: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_S
    while not _alive(path):
        if process.poll() is not None:
            raise errors.SetupError("The service did not start; `memoryd up` shows why.")
        if time.monotonic() > deadline:
            process.terminate()
            raise errors.SetupError(f"The service was not ready after {_START_S:.0f} seconds; `memoryd up` shows why.")
        time.sleep(0.3)


def _call(client: httpx.Client, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    try:
        response = client.request(method, path, json=body)
    except httpx.HTTPError as error:
        raise errors.SetupError(f"{method} {path}: the service does not answer ({error}).") from error
    if response.status_code != 200:
        raise errors.SetupError(f"{method} {path} answered {response.status_code}: {response.text[:300]}")
    answer: dict[str, Any] = response.json()
    return answer


# Telling and asking


def _tell(client: httpx.Client, dialogue: Dialogue) -> None:
    user = f"demo:{dialogue.name}"
    turns = sum(len(session.messages) for session in dialogue.sessions)
    console.print(
        f"\n[bold]{dialogue.name}[/bold]: {turns} messages in {len(dialogue.sessions)} sessions, for user_id {user!r}"
    )
    columns = (TextColumn("{task.description:24}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        adding = progress.add_task("sessions accepted", total=len(dialogue.sessions))
        remembering = progress.add_task("sessions remembered", total=len(dialogue.sessions))
        accepted = []
        for session in dialogue.sessions:
            body = {"messages": session.messages, "user_id": user, "timestamp": int(session.said_at.timestamp())}
            accepted.append(_call(client, "POST", "/v3/memories/add/", body)["event_id"])
            progress.advance(adding)
        made = 0
        for event_id in accepted:
            made += len(_finished(client, event_id)["results"])
            progress.advance(remembering)
    console.print(f"{made} new memories" + ("" if made else "; all of it was known already"))


def _finished(client: httpx.Client, event_id: str) -> dict[str, Any]:
    deadline = time.monotonic() + _EVENT_S
    while True:
        event = _call(client, "GET", f"/v1/event/{event_id}/")
        if event["status"] == "FAILED":
            raise errors.SetupError(f"Event {event_id} failed: {event.get('error')}")
        if event["status"] == "SUCCEEDED":
            return event
        if time.monotonic() > deadline:
            raise errors.SetupError(f"Event {event_id} is still {event['status']} after {_EVENT_S:.0f} seconds.")
        time.sleep(0.2)


def _ask(client: httpx.Client, dialogue: Dialogue) -> None:
    took = []
    for question in dialogue.questions:
        body = {"query": question.text, "filters": {"user_id": f"demo:{dialogue.name}"}, "top_k": 3}
        begun = time.perf_counter()
        hits = _call(client, "POST", "/v3/memories/search/", body)["results"]
        took.append((time.perf_counter() - begun) * 1000)
        console.print(_table(question, hits))
    if took:
        console.print(f"{len(took)} questions, median {sorted(took)[len(took) // 2]:.0f} ms each")


def _table(question: Question, hits: list[dict[str, Any]]) -> Table:
    title = f"[bold]{question.text}[/bold]  (expected: {question.answer})"
    table = Table(title=title, title_justify="left", show_edge=False, pad_edge=False)
    for name in ("score", "semantic", "bm25", "entity"):
        table.add_column(name, justify="right")
    table.add_column("memory", overflow="fold")
    for hit in hits:
        arms = hit["score_breakdown"]
        numbers = (hit["score"], arms["semantic"], arms["bm25"], arms["entity"])
        table.add_row(*(f"{number:.2f}" for number in numbers), hit["memory"])
    return table
