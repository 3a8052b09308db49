"""Parts of a message's content: what is taken, what is refused, and what an event shows of them."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from app.domain import parts
from app.model import Part
from tests import pdfs

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20
HELLO = base64.b64encode("Grüße".encode()).decode()


def data_url(data: bytes, mime: str) -> str:
    return f"data:{mime};base64,{base64.b64encode(data).decode()}"


def part(type_: str, url: object, **more: Any) -> dict[str, Any]:
    return {"type": type_, type_: {"url": url, **more}}


@pytest.mark.parametrize(
    "given",
    [
        part("image_url", "https://files.example/a.png"),
        part("image_url", "HTTP://files.example/a", detail="high"),
        part("image_url", data_url(PNG, "image/png")),
        part("image_url", data_url(b"\xff\xd8\xff\xe0", "image/jpg")),
        part("pdf_url", "https://files.example/a.pdf?signature=x"),
        part("pdf_url", data_url(pdfs.of(["a"]), "application/pdf")),
        part("txt_url", HELLO),
        part("mdx_url", HELLO),
        part("txt_url", "data:text/plain;charset=utf-8,Gr%C3%BC%C3%9Fe"),
        part("txt_url", "data:,A%20brief%20note"),
        part("txt_url", HELLO.rstrip("=")),
    ],
)
def test_every_form_is_taken_and_kept_as_it_came(given: dict[str, Any]) -> None:
    taken = parts.from_wire(given)
    assert parts.to_wire(taken) == given
    assert parts.stored([given]) == ("", (taken,))


def test_a_place_may_stand_without_an_object() -> None:
    assert parts.from_wire({"type": "pdf_url", "pdf_url": "https://a.example/b"}) == Part("pdf", "https://a.example/b")


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"type": "image_url"}, "without a url"),
        ({"type": "image_url", "image_url": {}}, "without a url"),
        (part("image_url", 7), "without a url"),
        (part("pdf_url", "  "), "without a url"),
        (part("image_url", "https://a.example/b", detail="huge"), "low, high, auto"),
        (part("image_url", "ftp://a.example/b"), "neither an http"),
        (part("image_url", "/etc/passwd"), "neither an http"),
        (part("pdf_url", HELLO), "neither an http"),
        (part("txt_url", "file:///etc/passwd"), "base64"),
        (part("txt_url", "not base64!"), "base64"),
        (part("txt_url", base64.b64encode(b"\xff\xfe\0\xd8").decode()), "is no text"),
        (part("txt_url", "data:text/plain;base64,a*b"), "not valid base64"),
        (part("txt_url", "data:text/plain"), "without data"),
        (part("image_url", data_url(PNG, "text/plain")), "names no image type"),
        (part("image_url", data_url(b"<svg xmlns='x'/>", "image/svg+xml")), "no image of a common format"),
        (part("image_url", data_url(b"hello there", "image/png")), "no image of a common format"),
        (part("image_url", "data:image/png;base64,"), "is empty"),
        (part("pdf_url", data_url(PNG, "application/pdf")), "is no PDF"),
        (part("image_url", "http://user:password@a.example/"), "password"),
        (part("pdf_url", "http://a.example:99999/"), "port"),
    ],
)
def test_a_part_that_cannot_be_right_is_refused_with_its_reason(given: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as raised:
        parts.from_wire(given)
    assert given["type"] in str(raised.value)


def test_text_and_parts_keep_their_order() -> None:
    content = [{"type": "text", "text": "a"}, part("txt_url", HELLO), {"type": "text", "text": "b"}]
    text, found = parts.stored(content)
    assert (text, [piece.kind for piece in found]) == ("a\nb", ["text", "txt", "text"])
    assert [parts.to_wire(piece) for piece in found] == content


def test_an_event_shows_addresses_whole_and_contents_in_brief() -> None:
    long_url = "https://files.example/" + "a" * 500
    inline = data_url(PNG * 100, "image/png")
    content = [{"type": "text", "text": "x" * 500}, part("image_url", inline, detail="low"), part("pdf_url", long_url)]
    payload = {
        "user_id": "u",
        "messages": [{"role": "user", "content": content}, {"role": "user", "content": "y" * 500}],
    }
    shown = parts.abridged(payload)
    text, image, pdf = shown["messages"][0]["content"]
    assert (text, pdf, shown["messages"][1]) == (content[0], content[2], payload["messages"][1])
    assert image["image_url"] == {"url": f"{inline[:80]}… ({len(inline)} characters)", "detail": "low"}
    assert payload["messages"][0]["content"][1]["image_url"]["url"] == inline


@pytest.mark.parametrize(
    ("data", "mime"),
    [
        (PNG, "image/png"), (b"\xff\xd8\xff\xdb", "image/jpeg"), (b"GIF89a", "image/gif"), (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
        (b"BM\x0a\0\0\0\0\0\0\0", "image/bmp"), (b"II*\0", "image/tiff"), (b"\0\0\0\x1cftypavif", "image/avif"),
        (b"\0\0\0\x18ftypheic", "image/heic"), (b"<html>", None), (b"", None), (b"%PDF-1.7", None),
    ],
)  # fmt: skip
def test_an_image_is_known_by_its_first_bytes(data: bytes, mime: str | None) -> None:
    assert parts.image_type(data) == mime
