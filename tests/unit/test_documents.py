"""Documents to text: what is kept, what is refused, and what a hostile file costs."""

from __future__ import annotations

import time
import zlib
from typing import Any

import pytest

from app import errors
from app.providers import documents
from app.providers.outbound import File
from tests import pdfs


async def read(kind: str, data: bytes, mime: str = "", charset: str | None = None, **options: Any) -> str:
    chosen: dict[str, Any] = {"timeout_s": 20.0, "max_pages": 10, "max_bytes": 100_000, **options}
    return await documents.text(kind, File(data, mime, charset), **chosen)


# Text


@pytest.mark.parametrize(
    ("data", "charset", "text"),
    [
        ("Grüße, 你好".encode(), None, "Grüße, 你好"),
        ("Grüße".encode(), "iso-8859-1", "Grüße"),  # UTF-8 under a wrong name
        (b"\xef\xbb\xbfGr\xc3\xbc\xc3\x9fe", None, "Grüße"),
        ("Grüße".encode("utf-16"), None, "Grüße"),
        ("你好".encode("utf-32"), None, "你好"),
        ("Grüße".encode("latin-1"), "ISO-8859-1", "Grüße"),
        ("我住在里斯本。".encode("gb18030"), "gb18030", "我住在里斯本。"),
        ("東京に住む".encode("shift_jis"), "Shift_JIS", "東京に住む"),
        (b"a\r\nb\rc\x07d", None, "a\nb\ncd"),
    ],
)
async def test_text_is_read_in_the_encoding_that_it_is_written_in(data: bytes, charset: str | None, text: str) -> None:
    assert await read("txt", data, "text/plain", charset) == text


@pytest.mark.parametrize(
    ("data", "charset"),
    [
        ("Grüße".encode("latin-1"), None),
        (b"\xff\xd8\xff\xe0\x00\x10JFIF\x00", None),
        (b"a\0b\0", None),
        (b"Gr\xfc", "punycode"),
        (b"Gr\xfc", "zip_codec"),
        (b"Gr\xfc", "utf-7"),
    ],
)
async def test_bytes_of_an_unknown_encoding_are_refused(data: bytes, charset: str | None) -> None:
    with pytest.raises(errors.MediaUnreadable, match="is no text"):
        await read("txt", data, "text/plain", charset)


@pytest.mark.parametrize("mime", ["text/html", "image/png", "application/pdf", "application/zip", "video/mp4"])
async def test_other_things_than_text_are_refused(mime: str) -> None:
    with pytest.raises(errors.MediaUnreadable, match=mime):
        await read("txt", b"I like tea.", mime)


@pytest.mark.parametrize("kind", ["txt", "mdx"])
async def test_empty_and_overlong_documents_are_refused(kind: str) -> None:
    with pytest.raises(errors.MediaUnreadable, match="is empty"):
        await read(kind, b" \n")
    with pytest.raises(errors.MediaUnreadable, match="MEMORYD_MAX_MESSAGE_BYTES"):
        await read(kind, b"a" * 100_001)


# MDX

MDX = """\
---
title: Alice's garden
---
import { Card,
  Tabs } from '@site/components'
import './garden.css';

export const meta = {
  author: "Alice",
}

# My garden

{/* a note
for editors */}
<Card title="a > b" onClick={() => { go({a: 1}) }}>
  I grow **tomatoes** and beans.
</Card>
<!-- hidden --><>Fragment</> <Icon name="x" />

Import duties are high, and 3 < 4; see <https://example.com/a> or <a@example.com>.

```jsx
import { x } from 'y'
<Card>{/* stays */}</Card>
```
"""


async def test_mdx_keeps_what_a_reader_reads() -> None:
    assert await read("mdx", MDX.encode(), "text/plain") == (
        "title: Alice's garden\n\n# My garden\n\nI grow **tomatoes** and beans.\n\nFragment \n\n"
        "Import duties are high, and 3 < 4; see <https://example.com/a> or <a@example.com>.\n\n"
        "```jsx\nimport { x } from 'y'\n<Card>{/* stays */}</Card>\n```"
    )


@pytest.mark.parametrize(
    "piece",
    ["<a ", "<a '", '<a "', "<a {", "<a {{", "{/*", "<!--", "```\n", "import {", "import\n", "export {\n", "<", "---\n",
     "<a ''\"", "{/**/", "<a b='\"' "],
)  # fmt: skip
def test_text_made_of_beginnings_costs_little(piece: str) -> None:
    started = time.monotonic()
    documents.prose(piece * (100_000 // len(piece)))
    assert time.monotonic() - started < 1


# PDF


async def test_the_text_of_a_pdf_is_read_page_by_page() -> None:
    data = pdfs.of(["I moved to Lisbon in May.", "My dog is called Rex."])
    assert await read("pdf", data, "application/pdf") == "I moved to Lisbon in May.\n\nMy dog is called Rex."


async def test_lines_of_a_paragraph_become_one() -> None:
    lines = [
        "Alice works at a bakery near the river, and every Satur-",
        "day she sells bread on the market of the old town",
        "with her sister.",
        "- One",
        "- Two",
    ]
    assert await read("pdf", pdfs.of(["\n".join(lines)])) == (
        "Alice works at a bakery near the river, and every Saturday she sells bread on the market of the old town "
        "with her sister.\n- One\n- Two"
    )


async def test_chinese_of_a_font_that_is_not_embedded_is_read() -> None:
    assert await read("pdf", pdfs.chinese("我住在里斯本。")) == "我住在里斯本。"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"<html>Sign in</html>", "is no PDF"),
        (b"%PDF-1.7\nrubbish", "is damaged"),
        (pdfs.of(["text"]).replace(b"startxref\n", b"startxref\n9"), None),
        (pdfs.of([""]), "holds no text"),
        (pdfs.of(["a"] * 11), "has 11 pages; at most 10"),
        (pdfs.of(["word " * 30_000]), "MEMORYD_MAX_MESSAGE_BYTES"),
        (pdfs.encrypted("text", password="x"), "is encrypted"),
    ],
)
async def test_a_pdf_that_cannot_be_read_says_why(data: bytes, reason: str | None) -> None:
    if reason is None:  # a wrong place of the table at the end is no obstacle
        assert await read("pdf", data) == "text"
        return
    with pytest.raises(errors.MediaUnreadable, match=reason):
        await read("pdf", data)


async def test_a_pdf_locked_against_changes_alone_is_read() -> None:
    assert await read("pdf", pdfs.encrypted("My dog is called Rex.", password="")) == "My dog is called Rex."


async def test_a_pdf_that_inflates_without_end_is_refused_in_time() -> None:
    packer = zlib.compressobj(9)
    block = b"(a) Tj " * 150_000
    once = b"".join(packer.compress(block) for _ in range(200)) + packer.flush()
    data = pdfs.raw(zlib.compress(once), filters="[/FlateDecode /FlateDecode]")
    started = time.monotonic()
    with pytest.raises(errors.MediaUnreadable):
        await read("pdf", data, timeout_s=5.0)
    assert time.monotonic() - started < 8


async def test_a_pdf_that_takes_long_is_left() -> None:
    with pytest.raises(errors.MediaUnreadable, match=r"0\.01 s"):
        await read("pdf", pdfs.of(["text"]), timeout_s=0.01)
