"""PDF files for tests, written by hand: small, and as odd as a test wants them."""

from __future__ import annotations

import io


def of(pages: list[str]) -> bytes:
    """Return a PDF with a page for each text; lines become lines."""
    return _file([_shown(page) for page in pages], font=b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")


def chinese(text: str) -> bytes:
    """Return a PDF whose text is in a Chinese font that readers have, without a table of its characters."""
    font = (
        b"<< /Type /Font /Subtype /Type0 /BaseFont /STSong-Light /Encoding /UniGB-UCS2-H /DescendantFonts [<< /Type /Font"
        b" /Subtype /CIDFontType0 /BaseFont /STSong-Light /DW 1000 /CIDSystemInfo << /Registry (Adobe) /Ordering (GB1)"
        b" /Supplement 2 >> >>] >>"
    )
    shown = f"BT /F1 12 Tf 20 700 Td <{text.encode('utf-16-be').hex()}> Tj ET"
    return _file([(shown.encode(), b"")], font=font)


def raw(stream: bytes, *, filters: str) -> bytes:
    """Return a PDF whose one page is drawn by `stream` as it is, said to be packed by `filters`."""
    return _file(
        [(stream, f"/Filter {filters}".encode())], font=b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
    )


def encrypted(text: str, *, password: str) -> bytes:
    """Return a PDF that `password` opens; blank: everybody may read it."""
    import pypdf

    writer = pypdf.PdfWriter(clone_from=io.BytesIO(of([text])))
    writer.encrypt(password, owner_password="owner", algorithm="RC4-128")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def _shown(page: str) -> tuple[bytes, bytes]:
    lines = [line.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)") for line in page.split("\n")]
    drawn = " ".join(f"({line}) Tj 0 -14 Td" for line in lines)
    return f"BT /F1 12 Tf 20 700 Td {drawn} ET".encode("latin-1"), b""


def _file(streams: list[tuple[bytes, bytes]], *, font: bytes) -> bytes:
    kids = " ".join(f"{4 + 2 * at} 0 R" for at in range(len(streams)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(streams)} >>".encode(),
        font,
    ]
    for at, (stream, extra) in enumerate(streams):
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents {5 + 2 * at} 0 R"
            " /Resources << /Font << /F1 3 0 R >> >> >>".encode()
        )
        objects.append(b"<< /Length %d %b >>\nstream\n%b\nendstream" % (len(stream), extra, stream))
    data = bytearray(b"%PDF-1.4\n")
    places = []
    for number, body in enumerate(objects, start=1):
        places.append(len(data))
        data += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    start = len(data)
    data += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    data += b"".join(b"%010d 00000 n \n" % place for place in places)
    data += b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start)
    return bytes(data)
