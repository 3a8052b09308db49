"""Images and documents of an add → text of its messages. Everything is fetched, read and described in the worker."""

from __future__ import annotations

import asyncio
import posixpath
from urllib.parse import unquote, urlsplit

from app import errors
from app.domain import describe, limits, parts
from app.domain.request import Request
from app.model import Message, Part
from app.providers import documents, outbound
from app.runtime import Runtime

NAME_CHARS = 100  #: of a document's name that are kept


def check(rt: Runtime, request: Request) -> None:
    """Refuse an add whose images and documents are too many or too large, or that nobody here could look at.

    Raises: InvalidRequest.
    """
    found = [(message, part) for message in request.messages for part in parts.media(message)]
    most, max_bytes = rt.settings.media_max_parts, rt.settings.media_max_bytes
    if len(found) > most:
        raise errors.InvalidRequest(
            f"messages hold {len(found)} images and documents; at most {most} are taken (MEMORYD_MEDIA_MAX_PARTS)."
        )
    for message, part in found:
        if part.kind == "image" and rt.llm is None:
            raise errors.InvalidRequest(
                f"messages[{message.index}].content: images are read by a language model that sees, and none is"
                " configured; set MEMORYD_LLM_BASE_URL and MEMORYD_LLM_MODEL, or send text."
            )
        if not parts.is_remote(part) and len(part.value) * 3 // 4 > max_bytes:
            raise errors.InvalidRequest(
                f"messages[{message.index}].content: a part is larger than {max_bytes} bytes (MEMORYD_MEDIA_MAX_BYTES)."
            )


async def texts(rt: Runtime, request: Request) -> dict[int, str]:
    """Return the text of every message that holds more than text, by the message's index. Holds no connection.

    Raises: OutboundRefused, MediaUnreadable, InvalidRequest; OutboundUnavailable, ModelUnavailable, ModelRefused. One
    failure fails all: a conversation with holes would be remembered wrongly.
    """
    found: dict[int, str] = {}
    for message in request.messages:
        if message.role != "system" and parts.media(message):
            name = f"messages[{message.index}].content"
            pieces = [await _text(rt, message, part, name) for part in message.parts]
            found[message.index] = "\n\n".join(piece for piece in pieces if piece.strip())
            limits.check_text(rt.settings, name, found[message.index])
    return found


async def _text(rt: Runtime, message: Message, part: Part, name: str) -> str:
    if part.kind == "text":
        return part.value
    what = "image" if part.kind == "image" else "document"
    try:
        file = await _file(rt, part)
        if part.kind == "image":
            return await _image(rt, message, part, file)
        text = await documents.text(
            part.kind,
            file,
            timeout_s=rt.settings.media_timeout_s,
            max_pages=rt.settings.media_max_pages,
            max_bytes=rt.settings.max_message_bytes,
        )
    except errors.MediaUnreadable as error:
        where = f" of {outbound.check(part.value)}" if parts.is_remote(part) else ""
        raise errors.MediaUnreadable(f"{name}: The {what}{where} {error.message}") from error
    except errors.OutboundRefused as error:
        raise errors.OutboundRefused(f"{name}: The {what} cannot be fetched. {error.message}") from error
    except errors.OutboundUnavailable as error:
        raise errors.OutboundUnavailable(
            f"{name}: The {what} cannot be fetched. {error.message}", retry_after_s=error.retry_after_s
        ) from error
    return f"[The message holds a document{_named(part)}. Its text:]\n{text.strip()}"


async def _file(rt: Runtime, part: Part) -> outbound.File:
    if not parts.is_remote(part):
        return await asyncio.to_thread(parts.inline, part)
    settings = rt.settings
    return await outbound.fetch(
        part.value,
        networks=settings.outbound_allow_nets,
        timeout_s=settings.media_timeout_s,
        max_bytes=settings.media_max_bytes,
    )


async def _image(rt: Runtime, message: Message, part: Part, file: outbound.File) -> str:
    mime = parts.image_type(file.data)
    if mime is None:
        raise errors.MediaUnreadable("is no image of a common format.")
    if rt.llm is None:  # there was one when the add was accepted
        raise errors.ModelUnavailable(
            "Images are read by a language model, and none is configured; set MEMORYD_LLM_BASE_URL and MEMORYD_LLM_MODEL."
        )
    shown = await describe.image(rt.llm, file.data, mime, said=message.content, detail=part.detail)
    return f"[The message holds an image. What it shows: {shown}]"


def _named(part: Part) -> str:
    """Return the document's file name, as an apposition; empty without one."""
    if not parts.is_remote(part):
        return ""
    name = " ".join(unquote(posixpath.basename(urlsplit(part.value).path), errors="replace").split())
    return f", {name[:NAME_CHARS]}" if name.isprintable() and name else ""
