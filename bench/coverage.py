"""How much of the answers the facts hold that are extracted without a model: share of answer words within a budget of tokens.

    python -m bench.coverage FILE [--view said|text] [--limit N] [--chunk N] [--raw] [--vectors FILE]

FILE is a conversation file of LoCoMo. Every conversation is added in chunks of turns that do not cross a session, as an
`infer: true` add does it, and every question with an answer is one search. Coverage is the share of the distinct stems of
the answer that stand in the best hits, as many as the budget holds whole. Tokens are estimated: 1.1 for each word or mark.
`--raw` stores the turns as they are, for comparison.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import re
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import Stemmer
import uuid_utils.compat as uuids

from app.domain import dedupe, drafts, extract, remember, search
from app.domain.conversation import Conversation
from app.model import And, Caller, Condition, Message, Operator, Owners
from app.runtime import Runtime
from app.store import messages, scopes
from bench import conversations, measures, retrieval

BUDGETS = (100, 250, 500, 1000, 2000)
DEEP = 80  #: hits that are asked for; more never fit the largest budget
EARLIER = 10

_STEM = Stemmer.Stemmer("english").stemWord
_WORD = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")
_STOP = frozenset(
    "a an the and or but if then than so of in on at by for from with without about into onto over under to as is are was were be "
    "been being am do does did done doing have has had having will would shall should can could may might must i me my mine we us "
    "our ours you your yours he him his she her hers it its they them their theirs this that these those there here what which who "
    "whom whose when where why how not no nor too very just also s t d ll m re ve don didn doesn isn aren wasn weren won wouldn "
    "couldn shouldn hasn haven hadn let get got".split()
)


def stems(text: str, *, all_words: bool = False) -> set[str]:
    """Return the distinct stems of the words that tell something."""
    words = (word.split("'")[0] for word in _WORD.findall(text.lower()))
    return {_STEM(word) for word in words if word and (all_words or word not in _STOP)}


def tokens(text: str) -> int:
    """Return an estimate of the tokens of `text`."""
    return round(1.1 * len(re.findall(r"\w+|[^\w\s]", text)))


def covered(answer: str, texts: Sequence[str]) -> dict[str, float]:
    """Return the share of the answer's stems in as many of `texts` as each budget holds."""
    wanted = stems(answer) or stems(answer, all_words=True)
    row, found, spent = {f"@{budget}": 0.0 for budget in BUDGETS}, set[str](), 0
    for text in texts:
        spent += tokens(text)
        found |= wanted & stems(text, all_words=True)
        for budget in BUDGETS:
            if spent <= budget:
                row[f"@{budget}"] = len(found) / max(len(wanted), 1)
    return row


def chunks(talk: conversations.Conversation, view: str, size: int) -> Iterator[list[Message]]:
    """Yield the messages of each add."""
    for said_at, session in itertools.groupby(talk.turns, key=lambda turn: turn.said_at):
        turns = list(session)
        for start in range(0, len(turns), size):
            yield [
                Message(
                    role=turn.role,
                    content=f"{turn.speaker}: {turn.text}" if view == "said" else turn.text,
                    name=turn.speaker,
                    index=index,
                    id=uuids.uuid7(),
                    said_at=said_at,
                )
                for index, turn in enumerate(turns[start : start + size])
            ]


async def tell(rt: Runtime, caller: Caller, talk: conversations.Conversation, view: str, size: int, raw: bool) -> int:
    """Add a conversation; return the number of memories."""
    project_id, owners = caller.project.id, Owners(user_id=f"{talk.name}-{view}")
    heard: list[Message] = []
    count = 0
    for said in chunks(talk, view, size):
        at = said[0].said_at
        assert at is not None
        async with rt.db.transaction(project_id) as conn:
            scope = await scopes.ensure(conn, project_id, owners)
            before = heard[-1] if heard else None
            if raw:
                made = drafts.of_messages(said, before=before, scope=scope, observed_at=at)
            else:
                talked = Conversation(tuple(said), at, earlier=tuple(heard[-EARLIER:]))
                found = await extract.facts(None, talked, window_tokens=6000)
                made = drafts.of_facts(found.facts, said, before=before, targets=(scope,), observed_at=at)
            shared = remember.Shared(uuids.uuid7(), at, None, immutable=False, expiration_date=None)
            await messages.insert_many(conn, project_id, scope.id, shared.event_id, said)
            made = dedupe.new(made)
            count += len(await remember.store(rt, conn, project_id, await remember.prepare(rt, made, shared)))
        heard = [*heard, *said][-EARLIER:]
    return count


async def measure(dsn: str, talks: list[conversations.Conversation], given: argparse.Namespace) -> None:
    """Print the table."""
    async with retrieval.runtime(dsn, given.vectors) as (rt, caller):
        report, count, started, adding = measures.Report(), 0, time.perf_counter(), 0.0
        top10 = []
        for talk in talks:
            adds_at = time.perf_counter()
            count += await tell(rt, caller, talk, given.view, given.chunk, given.raw)
            adding += time.perf_counter() - adds_at
            node = And((Condition("user_id", Operator.EQ, f"{talk.name}-{given.view}"),))
            for question in talk.questions:
                if not question.answer:
                    continue
                hits = await search.run(rt, caller, search.Query(question.text, node, top_k=DEEP, threshold=0.0))
                texts = [hit.memory.text for hit in hits]
                top10.append(sum(map(tokens, texts[:10])))
                report.add(question.kind, covered(question.answer, texts))
        turns = sum(len(talk.turns) for talk in talks)
        print(
            f"\n{turns} turns, {count} memories, added in {adding:.0f} s, {time.perf_counter() - started:.0f} s in all;"
        )
        print(f"{sum(top10) / len(top10):.0f} tokens in the first ten\n")
        print(report.table([f"@{budget}" for budget in BUDGETS]), flush=True)


def main() -> int:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--view", choices=["said", "text"], default="said")
    parser.add_argument("--limit", type=int, default=None, help="only the first N conversations")
    parser.add_argument("--chunk", type=int, default=8, help="turns of one add")
    parser.add_argument("--raw", action="store_true", help="store the turns as they are")
    parser.add_argument(
        "--vectors", type=Path, default=retrieval.VECTORS, help="where embeddings are kept between runs"
    )
    given = parser.parse_args()
    talks = conversations.read(given.file)[: given.limit]
    with retrieval.server() as dsn:
        asyncio.run(measure(dsn, talks, given))
    return 0


if __name__ == "__main__":
    sys.exit(main())
