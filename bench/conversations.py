"""Conversations with questions whose evidence is known, read from LoCoMo's file or from BEAM's archive."""

from __future__ import annotations

import io
import json
import re
import tarfile
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

#: LoCoMo's numbers of its kinds of questions (Maharana et al., ACL 2024). Adversarial ones have no answer.
KINDS = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
UNANSWERABLE = ("adversarial", "abstention")
#: BEAM's kinds whose evidence is a handful of messages; a summary wants them all.
BEAM_KINDS = (
    "information_extraction", "knowledge_update", "temporal_reasoning", "multi_session_reasoning",
    "contradiction_resolution", "event_ordering", "preference_following", "instruction_following", "abstention",
)  # fmt: skip
#: Longest text taken of a BEAM message, as the published measurements do.
BEAM_CHARS = 4000


@dataclass(frozen=True)
class Turn:
    id: str
    speaker: str
    role: str
    said_at: datetime
    text: str


@dataclass(frozen=True)
class Question:
    text: str
    kind: str
    evidence: frozenset[str]  # ids of turns
    answer: str = ""  # empty: there is none, or the set has none that can be compared


@dataclass(frozen=True)
class Conversation:
    name: str
    turns: list[Turn]
    questions: list[Question] = field(default_factory=list)

    def asked(self) -> list[Question]:
        """Return the questions whose evidence is known."""
        return [q for q in self.questions if q.evidence and q.kind not in UNANSWERABLE]


def read(path: Path) -> list[Conversation]:
    """Read a LoCoMo file (.json) or a BEAM archive (.tar.gz with chats/<n>/chat.json inside)."""
    return _beam(path) if path.name.endswith(".tar.gz") else _locomo(path)


def _locomo(path: Path) -> list[Conversation]:
    made = []
    for record in json.loads(path.read_text(encoding="utf-8")):
        talk = record["conversation"]
        numbers = sorted(int(key.split("_")[1]) for key in talk if re.fullmatch(r"session_\d+", key))
        turns = []
        for number in numbers:
            at = datetime.strptime(talk[f"session_{number}_date_time"].strip(), "%I:%M %p on %d %B, %Y").replace(
                tzinfo=UTC
            )
            for turn in talk[f"session_{number}"]:
                photo = f" [shared a photo: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
                role = "user" if turn["speaker"] == talk["speaker_a"] else "assistant"
                turns.append(Turn(turn["dia_id"], turn["speaker"], role, at, turn["text"] + photo))
        known = {turn.id for turn in turns}
        questions = [
            Question(
                item["question"],
                KINDS[item["category"]],
                _evidence(item.get("evidence"), known),
                str(item["answer"]) if item["category"] != 5 else "",
            )
            for item in record["qa"]
        ]
        made.append(Conversation(record["sample_id"], turns, questions))
    return made


def _evidence(raw: list[str] | None, known: set[str]) -> frozenset[str]:
    """Return the ids of turns; a few are malformed in the file (`D:11:26`, two in one string) and are repaired."""
    found = re.findall(r"D:?(\d+):(\d+)", " ".join(map(str, raw or [])))
    return frozenset(f"D{int(session)}:{int(turn)}" for session, turn in found) & known


def _beam(path: Path) -> list[Conversation]:
    files: dict[str, dict[str, object]] = {}
    with tarfile.open(path) as archive:
        for member in archive:
            name = PurePosixPath(member.name)
            if name.name in ("chat.json", "probing_questions.json"):
                content = archive.extractfile(member)
                assert content is not None
                files.setdefault(name.parts[-2 if name.name == "chat.json" else -3], {})[name.name] = json.load(
                    io.TextIOWrapper(content, encoding="utf-8")
                )
    return [_chat(number, files[number]) for number in sorted(files, key=int)]


def _chat(number: str, parts: dict[str, object]) -> Conversation:
    turns, at = [], datetime(2024, 1, 1, tzinfo=UTC)
    for batch in parts["chat.json"]:  # type: ignore[attr-defined]
        for group in batch["turns"]:
            for message in group:
                if message.get("time_anchor"):
                    at = _anchor(message["time_anchor"]) or at
                text = re.sub(r"\s*->->.*$", "", message["content"])[:BEAM_CHARS]
                if text.strip():
                    turns.append(Turn(str(message["id"]), message["role"].capitalize(), message["role"], at, text))
    known = {turn.id for turn in turns}
    questions = []
    for kind in BEAM_KINDS:
        for probe in parts["probing_questions.json"].get(kind, []):  # type: ignore[attr-defined]
            ids = set(re.findall(r"\d+", json.dumps(probe.get("source_chat_ids") or [])))
            questions.append(Question(probe["question"], kind, frozenset(ids & known)))
    return Conversation(f"beam-{number}", turns, questions)


def _anchor(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, "%B-%d-%Y").replace(tzinfo=UTC)
    except ValueError:
        return None
