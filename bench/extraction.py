"""How well facts and entities are found without a model, on labelled samples. Prints a table; writes nothing.

    python bench/extraction.py FOLDER [--half tune|report|all] [--show]

FOLDER holds `memory_extraction/` and `entity_extraction/`, each with dataset.jsonl, dataset.zh.jsonl and labels.jsonl
(samples: id, text; labels: id, and memories with content, or entities with name). A labelled memory is covered when 60 %
of its content words (stemmed) stand in one fact. The labels are English: for Chinese texts only the names and numbers
that both share are compared, so the Chinese rows of memories are a weak check. Recall is covered by labelled; precision is facts that cover one by all facts. Entities: exact normal form, F1.
Every second sample is for tuning, the others only for the report.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import Stemmer

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from app.domain import link, rules
from app.domain.conversation import Conversation
from app.model import Message

COVERED = 0.6  #: share of content words
_STEM = Stemmer.Stemmer("english")
_STOP = frozenset(
    "a an the and or but if of to in on at by for from with as is are was were be been being it its this that these those i me my we our you "
    "your he she they them their his her will would can could should do does did have has had not no so than then there rather over only any "
    "all into about up out also just very user assistant".split()
)


def content(text: str) -> set[str]:
    """Return the stems of the content words of `text`, with bigrams of Chinese characters."""
    words = [
        w.removesuffix("'s")
        for w in re.findall(r"[a-z0-9][a-z0-9'°%.-]*[a-z0-9%]|[a-z0-9]", text.lower().replace("’", "'"))
    ]
    found = {_STEM.stemWord(w) for w in words if w not in _STOP}
    for run in re.findall(r"[\u4e00-\u9fff]+", text):
        found |= {run[i : i + 2] for i in range(len(run) - 1)}
    return found


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def half(samples: list[dict[str, Any]], which: str) -> list[dict[str, Any]]:
    return samples if which == "all" else samples[0 if which == "tune" else 1 :: 2]


def extracted(text: str) -> list[str]:
    said = Conversation((Message("user", text),), datetime(2026, 4, 1, 12, tzinfo=UTC))
    return [fact.text for fact in rules.facts(said)]


def memories(folder: Path, dataset: str, which: str, show: bool) -> dict[str, float]:
    """Return recall, precision and counts over one data set. Labels are English: Chinese needs only shared Latin words."""
    labels = {row["id"]: row["memories"] for row in rows(folder / "labels.jsonl")}
    labelled = covered = stored = useful = 0
    for sample in half(rows(folder / dataset), which):
        found = extracted(sample["text"])
        bags = [content(f) for f in found]
        hits: set[int] = set()
        for memory in labels[sample["id"]]:
            want = content(memory["content"])
            if ".zh." in dataset:
                want &= content(sample["text"])  # what both languages can share: names, numbers
                if not want:
                    continue
            labelled += 1
            good = {i for i, bag in enumerate(bags) if len(want & bag) >= COVERED * len(want)}
            covered += bool(good)
            hits |= good
            if show and not good:
                print(f"  miss {sample['id']} {memory['content']}\n       {found}")
        stored += len(found)
        useful += len(hits)
    return {
        "labelled": labelled,
        "recall": covered / max(labelled, 1),
        "precision": useful / max(stored, 1),
        "facts": stored,
    }


def entities(folder: Path, dataset: str, which: str, show: bool) -> dict[str, float]:
    labels = {row["id"]: row["entities"] for row in rows(folder / "labels.jsonl")}
    true = wrong = missed = 0
    for sample in half(rows(folder / dataset), which):
        want = {link.normal(e["name"]) for e in labels[sample["id"]]}
        got = {e.norm for e in link.entities(sample["text"])}
        true += len(want & got)
        wrong += len(got - want)
        missed += len(want - got)
        if show and (got ^ want):
            print(f"  {sample['id']} missed {sorted(want - got)} extra {sorted(got - want)}")
    precision, recall = true / max(true + wrong, 1), true / max(true + missed, 1)
    f1 = 2 * precision * recall / max(precision + recall, 1e-9)
    return {"labelled": true + missed, "recall": recall, "precision": precision, "f1": f1}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--half", choices=["tune", "report", "all"], default="report")
    parser.add_argument("--show", action="store_true", help="print what was missed")
    args = parser.parse_args()
    print("| data | labelled | recall | precision | F1 | facts | ms a sample |\n|---|---|---|---|---|---|---|")
    for kind, measure in (("memory_extraction", memories), ("entity_extraction", entities)):
        folder = args.folder / kind
        for dataset in ("dataset.jsonl", "dataset.zh.jsonl"):
            measure(folder, dataset, args.half, False)  # loads dictionaries
            started = time.perf_counter()
            row = measure(folder, dataset, args.half, args.show)
            each_ms = (time.perf_counter() - started) * 1000 / max(len(half(rows(folder / dataset), args.half)), 1)
            f1 = f"{row['f1']:.3f}" if "f1" in row else "–"
            print(
                f"| {kind}/{dataset} | {row['labelled']} | {row['recall']:.3f} | {row['precision']:.3f} | {f1} "
                f"| {row.get('facts', '–')} | {each_ms:.1f} |"
            )


if __name__ == "__main__":
    main()
