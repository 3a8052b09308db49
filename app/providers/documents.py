"""Documents to text: PDF, plain text, and MDX without what only a browser needs."""

from __future__ import annotations

import asyncio
import codecs
import json
import math
import re
import sys
from pathlib import Path

from app import errors
from app.providers import outbound

#: Encodings that a file may name; others of Python's are slow on purpose-made input, or no encodings of text.
_CHARSETS = re.compile(
    r"(us-?)?ascii|utf-?8|utf-?(16|32)(-?[lb]e)?|(iso-?)?8859-?\d{1,2}|latin-?\d|(cp|windows-?)\d{3,4}|koi8-?[ru]"
    r"|gb2312|gbk|gb18030|big5(-?hkscs)?|euc-?(jp|kr|cn)|shift_?-?jis|sjis|iso-?2022-?jp|mac-?roman"
)
_MARKS = (  # the longer first: a UTF-32 mark begins like one of UTF-16
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f]")
_TEXTUAL = re.compile(
    r"|text/.*|application/(octet-stream|json|xml|yaml|x-yaml|toml|javascript|mdx|markdown|.*\+(json|xml|yaml))"
    r"|binary/octet-stream"
)
_CHILD = Path(__file__).with_name("pdf_child.py")


async def text(kind: str, file: outbound.File, *, timeout_s: float, max_pages: int, max_bytes: int) -> str:
    """Return the text of a document; `kind`: pdf, mdx or txt. `max_bytes` bounds the text, in UTF-8.

    Raises: MediaUnreadable, whose text completes "The document …".
    """
    if kind == "pdf":
        return await _of_pdf(file.data, timeout_s=timeout_s, max_pages=max_pages, max_bytes=max_bytes)
    found = await asyncio.to_thread(_of_text, file, markup=kind == "mdx", max_bytes=max_bytes)
    if not found.strip():
        raise errors.MediaUnreadable("is empty.")
    return found


def is_pdf(data: bytes) -> bool:
    """Return whether data looks like a PDF; readers take what stands before the mark."""
    return b"%PDF-" in data[:1024]


# Text


def decode(data: bytes, charset: str | None = None) -> str:
    """Return bytes as text: by their byte order mark, as UTF-8 if they are that, else as `charset`.

    Raises: MediaUnreadable.
    """
    mark, marked = next(((mark, name) for mark, name in _MARKS if data.startswith(mark)), (b"", None))
    named = charset.lower() if charset and _CHARSETS.fullmatch(charset.lower()) else None
    # UTF-8 by chance is next to impossible, and a wrong charset in a header is not.
    for name in [marked] if marked else ["utf-8", named]:
        if name is None:
            continue
        try:
            found = data[len(mark) :].decode(name)
        except (UnicodeDecodeError, LookupError):
            continue
        if "\0" not in found:
            return _CONTROL.sub("", found.replace("\r\n", "\n").replace("\r", "\n"))
    raise errors.MediaUnreadable("is no text, or does not say in which encoding it is written; UTF-8 is best.")


def _of_text(file: outbound.File, *, markup: bool, max_bytes: int) -> str:
    if file.mime in ("text/html", "application/xhtml+xml") or not _TEXTUAL.fullmatch(file.mime):
        raise errors.MediaUnreadable(f"came as {file.mime[:80]}, not as text.")
    if len(file.data) > max_bytes:
        raise errors.MediaUnreadable(f"has more than {max_bytes} bytes of text (MEMORYD_MAX_MESSAGE_BYTES).")
    found = decode(file.data, file.charset)
    return prose(found) if markup else found


# MDX

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[^\n]*\n.*?(?:^ {0,3}\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.MULTILINE | re.DOTALL)
_IMPORT = re.compile(
    r"^import\s+(?:[\w$*{][^'\";<>]{0,300}?\sfrom\s+)?(['\"])[^'\"\n]{1,500}\1[ \t]*;?[ \t]*$", re.MULTILINE
)
_EXPORT = re.compile(r"^export\s+(?:default|const|let|var|function|class|async|\{|\*)[^\n]*(?:\n[^\n]+)*", re.MULTILINE)
_COMMENTS = (("{/*", "*/}"), ("<!--", "-->"))
_BRACES = r"\{[^{}]*+\}"
for _ in range(2):
    _BRACES = rf"\{{(?:[^{{}}]|{_BRACES})*+\}}"
#: A tag of JSX or HTML: attributes in quotes, or in braces that nest twice. Autolinks and comparisons are none.
_TAG = re.compile(rf"</?(?:[A-Za-z][\w.-]*(?=[\s/>])(?:[^<>\"'{{}}]|\"[^\"]*\"|'[^']*'|{_BRACES})*+)?>")
_TAG_CHARS = 2000  #: the longest tag; bounds the work on text that is made of beginnings of tags
_BLANKS = re.compile(r"\n[ \t]*(?:\n[ \t]*){2,}")


def prose(source: str) -> str:
    """Return MDX without imports, exports, comments and tags; what tags enclose, front matter and code stay."""
    source = _FRONT_MATTER.sub(lambda found: found[1], source, count=1)
    parts: list[str] = []
    at = 0
    for fence in _FENCE.finditer(source):
        parts += [_untagged(source[at : fence.start()]), fence.group()]
        at = fence.end()
    parts.append(_untagged(source[at:]))
    return _BLANKS.sub("\n\n", "".join(parts)).strip()


def _untagged(source: str) -> str:
    source = _EXPORT.sub("", _IMPORT.sub("", source))
    for opening, closing in _COMMENTS:
        source = _uncommented(source, opening, closing)
    kept: list[str] = []
    at = 0
    while (start := source.find("<", at)) >= 0:
        tag = _TAG.match(source, start, start + _TAG_CHARS)
        kept.append(source[at:start] if tag else source[at : start + 1])
        at = tag.end() if tag else start + 1
    return "".join(kept) + source[at:]


def _uncommented(source: str, opening: str, closing: str) -> str:
    kept: list[str] = []
    at = 0
    while (start := source.find(opening, at)) >= 0 and (end := source.find(closing, start)) >= 0:
        kept.append(source[at:start])
        at = end + len(closing)
    return "".join(kept) + source[at:]


# PDF


async def _of_pdf(data: bytes, *, timeout_s: float, max_pages: int, max_bytes: int) -> str:
    if not is_pdf(data):
        raise errors.MediaUnreadable("is no PDF.")
    answer = await _child(data, [str(math.ceil(timeout_s)), str(max_pages), str(max_bytes)], timeout_s)
    if "refused" in answer:
        raise errors.MediaUnreadable(f"{answer['refused']}.")
    found = await asyncio.to_thread(_laid_out, answer["text"])
    if not found.strip():
        raise errors.MediaUnreadable("holds no text; it may be made of pictures.")
    return found


async def _child(data: bytes, arguments: list[str], timeout_s: float) -> dict[str, str]:
    # Without our environment: it holds keys that no parser of foreign files needs.
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-I", str(_CHILD), *arguments,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL, env={},
    )  # fmt: skip
    try:
        async with asyncio.timeout(timeout_s):
            output, _ = await child.communicate(data)
    except TimeoutError as error:
        raise errors.MediaUnreadable(f"takes longer to read than {timeout_s:g} s (MEMORYD_MEDIA_TIMEOUT_S).") from error
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    if child.returncode != 0:
        raise errors.MediaUnreadable("is damaged, or too intricate to be read.")
    answer: dict[str, str] = json.loads(output)
    return answer


def _laid_out(text: str) -> str:
    """Return the text of all pages, pages and paragraphs apart. Some fonts map to halves of characters."""
    pages = [_joined(page) for page in _CONTROL.sub("", text).split("\f")]
    found = "\n\n".join(page for page in pages if page)
    return found.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


_ENDS = tuple('.!?:;。！？：；…"”’」』)）')
_STARTS = re.compile(r"\s*(?:[-*•·–—]\s|\d{1,3}[.)、]\s?|[A-Z][A-Z ]+$)")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]")
_FULL = 0.6  #: share of the page's longest line from which a line counts as filled, and goes on in the next


def _joined(page: str) -> str:
    """Return the text of a page with the lines of a paragraph joined: a sentence must not end where a line does."""
    lines = [line.strip() for line in page.split("\n")]
    width = max(map(len, lines), default=0)
    joined: list[str] = []
    goes_on = False
    for line in lines:
        if goes_on and line and not _STARTS.match(line):
            joined[-1] = _glued(joined[-1], line)
        else:
            joined.append(line)
        goes_on = len(line) >= _FULL * width and not line.endswith(_ENDS)
    return "\n".join(joined).strip()


def _glued(first: str, second: str) -> str:
    if first.endswith("-") and first[-2:-1].isalpha() and second[:1].islower():
        return first[:-1] + second
    apart = not (_CJK.match(first[-1:]) and _CJK.match(second[:1]))
    return f"{first} {second}" if apart else first + second
