"""A model for whatever is asked: it finds the marks in a conversation, in other words each time, and embeds words."""

from __future__ import annotations

import random
import re
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from tests import fakes
from tests.model_stub import ModelStub, Reply, says

MARK = re.compile(r"mark-[a-z0-9]+-\d+")
DIMS = fakes.DIMS
#: In every message; what the model says of a mark are three of them, others each time it is asked, as real models do.
WORDS = "apples pears plums figs dates limes grapes melons cherries quinces olives almonds".split()

Trick = Callable[[dict[str, Any]], Reply | None]  # None: answer as usual


class Brain:
    """Answers chats and embeddings over HTTP. `chat` and `embed` may be replaced to err."""

    def __init__(self) -> None:
        self.stub = ModelStub(default=self._answer)
        self.chat: Trick = lambda _asked: None
        self.embed: Trick = lambda _asked: None
        self.asked: Counter[str] = Counter()  # how often facts were wanted of a mark, and answered
        self._lock = threading.Lock()

    def behave(self) -> None:
        """Answer as usual from now on."""
        self.chat = self.embed = lambda _asked: None

    def _answer(self, asked: dict[str, Any]) -> Reply:
        self.stub.requests.clear()  # a soak would keep every one
        self.stub.headers.clear()
        self.stub.paths.clear()
        if "input" in asked:
            return self.embed(asked) or Reply(body=embeddings(asked["input"]))
        return self.chat(asked) or self._chat(asked)

    def _chat(self, asked: dict[str, Any]) -> Reply:
        name = asked.get("response_format", {}).get("json_schema", {}).get("name")
        if name != "extracted_facts":
            return says({"memories": [{"id": number, "categories": []} for number in range(1, 101)]})
        marks = marks_of(asked)
        with self._lock:
            self.asked.update(marks)
        return says({"facts": [{"text": f"{mark} said {words()}", "speaker": "user"} for mark in marks]})


def message(mark: str) -> str:
    """Return what a client says of a mark."""
    return f"Remember {mark}: {' '.join(WORDS)}."


def words() -> str:
    """Return what the model makes of it."""
    return " ".join(random.sample(WORDS, 3))


def marks_of(asked: dict[str, Any]) -> list[str]:
    """Return the marks in what is new to the model, each once."""
    user = next(turn["content"] for turn in asked["messages"] if turn["role"] == "user")
    return list(dict.fromkeys(MARK.findall(user.rsplit("<new_messages>", 1)[-1])))


def embeddings(texts: list[str], *, dims: int = DIMS) -> dict[str, Any]:
    """Return the answer of an embedder."""
    data = [
        {"object": "embedding", "index": index, "embedding": fakes.vector(text).tolist()[:dims]}
        for index, text in enumerate(texts)
    ]
    return {"object": "list", "model": "brain-32", "data": data, "usage": {"prompt_tokens": 1, "total_tokens": 1}}
