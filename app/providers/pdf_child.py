"""Text of a PDF, in a process of its own: PDF on standard input, JSON on standard output. Imports nothing of ours.

A hostile file can keep a parser busy for ever or fill the memory; a process can be given limits, and be ended.
"""

from __future__ import annotations

import io
import json
import logging
import resource
import sys

MEMORY_BYTES = 2**30
FILES = 64


def text(data: bytes, max_pages: int, max_bytes: int) -> dict[str, str]:
    """Return `{"text": …}`, pages apart by form feeds, or `{"refused": reason}`."""
    import pypdf  # after the limits are set

    reader = pypdf.PdfReader(io.BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):
        return {"refused": "is encrypted; send it without a password"}
    count = len(reader.pages)
    if count > max_pages:
        return {"refused": f"has {count} pages; at most {max_pages} are read (MEMORYD_MEDIA_MAX_PAGES)"}
    pages: list[str] = []
    size = 0
    for page in reader.pages:
        pages.append(page.extract_text())
        size += len(pages[-1].encode("utf-8", "replace"))
        if size > max_bytes:
            return {"refused": f"has more than {max_bytes} bytes of text (MEMORYD_MAX_MESSAGE_BYTES)"}
    return {"text": "\f".join(pages)}


def main() -> None:
    """Read, limit, answer. Arguments: seconds of computing, pages, bytes of text. Any error ends with a status of 1."""
    seconds, max_pages, max_bytes = map(int, sys.argv[1:4])
    for kind, most in (
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_NOFILE, FILES),
    ):
        resource.setrlimit(kind, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # writes no file
    logging.disable()  # the library speaks of every flaw of a file
    answer = text(sys.stdin.buffer.read(), max_pages, max_bytes)
    sys.stdout.buffer.write(json.dumps(answer).encode())


if __name__ == "__main__":
    main()
