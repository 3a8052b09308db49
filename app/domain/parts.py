"""Parts of a message's content that are not text, in the forms of the wire; and what they hold inline. Pure."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import unquote_to_bytes

from app import errors
from app.model import Message, Part
from app.providers import documents, outbound

Kind = Literal["image", "pdf", "mdx", "txt"]

KINDS: dict[str, Kind] = {"image_url": "image", "pdf_url": "pdf", "mdx_url": "mdx", "txt_url": "txt"}
_TYPES = {kind: type_ for type_, kind in KINDS.items()}
DETAILS = ("low", "high", "auto")
SHOWN_CHARS = 80  #: of a data: URL or base64, where an event shows its request

_DATA = re.compile(r"data:([^,;]*)((?:;[^,;]*)*),(.*)", re.IGNORECASE | re.DOTALL)
_HTTP = re.compile(r"https?://", re.IGNORECASE)
_IMAGES = (  # first bytes, and what they are the beginning of
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), "image/webp"),
    (re.compile(rb"BM....\0\0\0\0", re.DOTALL), "image/bmp"),
    (re.compile(rb"II\*\0|MM\0\*"), "image/tiff"),
    (re.compile(rb"....ftypavi[fs]", re.DOTALL), "image/avif"),
    (re.compile(rb"....ftyp(?:hei[cmsx]|hev[cmsx]|mif1|msf1)", re.DOTALL), "image/heic"),
)


def from_wire(item: Mapping[str, Any]) -> Part:
    """Return a part whose `type` is one of `KINDS`, with everything checked that can be without fetching it.

    Raises: ValueError, whose text completes "content …".
    """
    type_ = item["type"]
    given = item.get(type_)
    inside = given if isinstance(given, Mapping) else {"url": given}
    url, detail = inside.get("url"), inside.get("detail")
    if not isinstance(url, str) or not url.strip():
        raise ValueError(f"has a part of type {type_} without a url.")
    if detail is not None and detail not in DETAILS:
        raise ValueError(f"has a part of type {type_} whose detail is none of {', '.join(DETAILS)}.")
    part = Part(KINDS[type_], url.strip(), detail)
    try:
        _check(part)
    except errors.AppError as error:
        raise ValueError(f"has a part of type {type_} that {error.message}") from error
    return part


def to_wire(part: Part) -> dict[str, Any]:
    """Return a part as it came."""
    if part.kind == "text":
        return {"type": "text", "text": part.value}
    type_ = _TYPES[part.kind]
    inside = {"url": part.value} if part.detail is None else {"url": part.value, "detail": part.detail}
    return {"type": type_, type_: inside}


def stored(content: str | list[dict[str, Any]]) -> tuple[str, tuple[Part, ...]]:
    """Return the text and the parts of a content that a payload keeps; no parts: it is a text.

    Raises: KeyError, TypeError, when it was written by another release.
    """
    if isinstance(content, str):
        return content, ()
    parts = tuple(
        Part("text", item["text"])
        if item["type"] == "text"
        else Part(KINDS[item["type"]], item[item["type"]]["url"], item[item["type"]].get("detail"))
        for item in content
    )
    return "\n".join(part.value for part in parts if part.kind == "text"), parts


def media(message: Message) -> list[Part]:
    """Return the parts of a message that are not text."""
    return [part for part in message.parts if part.kind != "text"]


def is_remote(part: Part) -> bool:
    """Return whether a part has to be fetched."""
    return bool(_HTTP.match(part.value))


def inline(part: Part) -> outbound.File:
    """Return what a part that is not remote holds.

    Raises: MediaUnreadable, whose text completes "The document …".
    """
    if part.value[:5].lower() == "data:":
        return _of_data_url(part)
    if part.kind not in ("mdx", "txt"):
        raise errors.MediaUnreadable("is neither an http(s) URL nor a data: URL.")
    try:
        return outbound.File(_of_base64(part.value))
    except errors.MediaUnreadable as error:
        raise errors.MediaUnreadable("is neither an http(s) URL, nor a data: URL, nor base64.") from error


def image_type(data: bytes) -> str | None:
    """Return the media type of an image by its first bytes; None: it is no image that models take."""
    return next((mime for begins, mime in _IMAGES if begins.match(data)), None)


def abridged(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return an event's payload without what it holds inline, which may be megabytes of base64."""
    found = payload.get("messages")
    if not isinstance(found, list) or not any(isinstance(item.get("content"), list) for item in found):
        return dict(payload)
    return {**payload, "messages": [{**item, "content": _abridged(item["content"])} for item in found]}


def _abridged(content: Any) -> Any:
    if not isinstance(content, list):
        return content
    shown = []
    for item in content:
        inside = item.get(item["type"])
        url = inside["url"] if isinstance(inside, Mapping) else ""
        if len(url) > SHOWN_CHARS and not _HTTP.match(url):
            item = {**item, item["type"]: {**inside, "url": f"{url[:SHOWN_CHARS]}… ({len(url)} characters)"}}
        shown.append(item)
    return shown


def _check(part: Part) -> None:
    if is_remote(part):
        try:
            outbound.check(part.value)
        except errors.OutboundRefused as error:
            raise errors.MediaUnreadable(f"cannot be fetched: {error.message}") from error
        return
    file = inline(part)
    if part.kind == "image" and image_type(file.data) is None:
        raise errors.MediaUnreadable("is no image of a common format.")
    if part.kind == "pdf" and not documents.is_pdf(file.data):
        raise errors.MediaUnreadable("is no PDF.")
    if part.kind in ("mdx", "txt"):
        documents.decode(file.data, file.charset)


def _of_data_url(part: Part) -> outbound.File:
    found = _DATA.fullmatch(part.value)
    if found is None:
        raise errors.MediaUnreadable("is a data: URL without data.")
    mime, parameters = found[1].strip().lower(), [text.strip() for text in found[2].lower().split(";")]
    if part.kind == "image" and not mime.startswith("image/"):
        raise errors.MediaUnreadable("is a data: URL that names no image type.")
    charset = next((text.removeprefix("charset=") for text in parameters if text.startswith("charset=")), None)
    data = _of_base64(found[3]) if "base64" in parameters else unquote_to_bytes(found[3])
    return outbound.File(data, mime, charset)


def _of_base64(text: str) -> bytes:
    packed = "".join(text.split()).translate(str.maketrans("-_", "+/"))
    try:
        data = base64.b64decode(packed + "=" * (-len(packed) % 4), validate=True)
    except (binascii.Error, ValueError) as error:
        raise errors.MediaUnreadable("is not valid base64.") from error
    if not data:
        raise errors.MediaUnreadable("is empty.")
    return data
