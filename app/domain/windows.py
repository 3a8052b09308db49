"""Cuts the messages of an add into windows, each small enough for one call of a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.model import Message, Source
from app.providers import tokens

FRAME_TOKENS = 24  # of a message in a prompt beside its text: number, speaker, name, time


@dataclass(frozen=True, slots=True)
class Piece:
    """A message, or one part of a message that is too long for a window."""

    message: Message
    start: int  # characters of the message's content, from 0
    end: int  # exclusive

    @property
    def text(self) -> str:
        return self.message.content[self.start : self.end]

    @property
    def source(self) -> Source:
        return Source(self.message.index, self.start, self.end)


def cut(messages: Sequence[Message], window_tokens: int) -> list[tuple[Piece, ...]]:
    """Return the messages in order, in windows of at most `window_tokens`; no character is left out.

    A message goes into one window whole where it fits, else in pieces that end with sentences.
    """
    room = max(1, window_tokens - FRAME_TOKENS)
    windows: list[tuple[Piece, ...]] = []
    window: list[Piece] = []
    used = 0
    for message in messages:
        for piece in _pieces(message, room):
            size = tokens.count(piece.text) + FRAME_TOKENS
            if window and used + size > window_tokens:
                windows.append(tuple(window))
                window, used = [], 0
            window.append(piece)
            used += size
    return [*windows, tuple(window)] if window else windows


def _pieces(message: Message, room: int) -> list[Piece]:
    pieces: list[Piece] = []
    at = 0
    for text in tokens.split(message.content, room):
        pieces.append(Piece(message, at, at + len(text)))
        at += len(text)
    return pieces
