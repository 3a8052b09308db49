"""The only way to an address that a caller chose: checked where the connection is made, bounded in time and size.

A name is resolved once, and the connection goes to an address of that answer which may be called: names that point
elsewhere a moment later gain nothing. Nothing is followed, kept open, or sent through a proxy.
"""

from __future__ import annotations

import asyncio
import functools
import ipaddress
import re
import ssl
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx

from app import __version__, errors
from app.config import Network
from app.providers import addresses

URL_CHARS = 8192
PORTS = (80, 443)  #: of public hosts; hosts of an opened network may be called on any
CONNECT_S = 5.0  #: longest wait for one address of a host
_AGENT = f"memoryd/{__version__}"
_BUSY = {408, 425, 429}
_MAX_WAIT_S = 3600  # the longest Retry-After that a fetch believes
_UNFIT = re.compile(r"[\x00-\x20\x7f\\]")  # what parsers of URLs read in different ways
_INFLATED = {"gzip", "x-gzip", "deflate"}


@dataclass(frozen=True, slots=True)
class Answer:
    """What a host answered."""

    status: int
    body: bytes
    cut: bool = False  # the body went on beyond the limit
    headers: Mapping[str, str] = field(default_factory=dict)  # names in lower case


@dataclass(frozen=True, slots=True)
class File:
    """What was found at an address."""

    data: bytes
    mime: str = ""  # as the host says, in lower case; empty: it says nothing
    charset: str | None = None


def check(url: str) -> str:
    """Return the host of a URL that can be called: http or https, a host, no user or password. Resolves nothing.

    Raises: OutboundRefused, whose text does not repeat the URL: it may hold secrets.
    """
    return _read(url)[1]


async def fetch(url: str, *, networks: Sequence[Network], timeout_s: float, max_bytes: int) -> File:
    """Return what is at a URL, at most `max_bytes` of it, sent or inflated.

    Raises: OutboundRefused when it will not be otherwise next time; OutboundUnavailable.
    """
    host = check(url)
    answer = await request("GET", url, networks=networks, timeout_s=timeout_s, max_bytes=max_bytes)
    if answer.status in _BUSY or answer.status >= httpx.codes.INTERNAL_SERVER_ERROR:
        wait_s = retry_after_s(answer.headers.get("retry-after", ""), longest_s=_MAX_WAIT_S)
        raise errors.OutboundUnavailable(f"{host} answered HTTP {answer.status}.", retry_after_s=wait_s)
    if answer.status in range(300, 400):
        raise errors.OutboundRefused(f"{host} redirects elsewhere (HTTP {answer.status}); send the final address.")
    if answer.status != httpx.codes.OK:
        raise errors.OutboundRefused(f"{host} answered HTTP {answer.status}.")
    if answer.cut:
        raise _too_large(host, max_bytes)
    mime, _, parameters = answer.headers.get("content-type", "").partition(";")
    charset = re.search(r"charset\s*=\s*\"?([\w.:-]+)", parameters, re.IGNORECASE)
    data = _inflated(answer, host, max_bytes)
    return File(data, mime.strip().lower(), charset[1] if charset else None)


async def request(
    method: str,
    url: str,
    *,
    networks: Sequence[Network],
    timeout_s: float,
    max_bytes: int,
    headers: Mapping[str, str] | None = None,
    content: bytes | None = None,
) -> Answer:
    """Send one request and return the answer, whatever its status; its body as it was sent, the first `max_bytes`.

    `networks`: those the operator opened beside the public ones. `timeout_s` bounds all of it, also what only drips.
    Raises: OutboundRefused, with nothing sent; OutboundUnavailable.
    """
    parsed, host = _read(url)
    sent = {"User-Agent": _AGENT, "Accept-Encoding": "identity", "Connection": "close", **(headers or {})}
    try:
        async with (
            asyncio.timeout(timeout_s),
            httpx.AsyncClient(
                transport=_Guarded(networks),
                timeout=httpx.Timeout(timeout_s, connect=min(CONNECT_S, timeout_s)),
                follow_redirects=False,
                trust_env=False,
            ) as client,
            client.stream(method, parsed, headers=sent, content=content) as response,
        ):
            body, cut = await _body(response, max_bytes)
    except (TimeoutError, httpx.TimeoutException) as error:
        raise errors.OutboundUnavailable(f"{host} did not answer within {timeout_s:g} s.") from error
    except httpx.RequestError as error:
        raise errors.OutboundUnavailable(f"{host} cannot be reached ({type(error).__name__}).") from error
    return Answer(response.status_code, body, cut, {name.lower(): value for name, value in response.headers.items()})


async def _body(response: httpx.Response, max_bytes: int) -> tuple[bytes, bool]:
    data = bytearray()
    async for part in response.aiter_raw():
        data += part
        if len(data) > max_bytes:
            return bytes(data[:max_bytes]), True
    return bytes(data), False


def _read(url: str) -> tuple[httpx.URL, str]:
    if len(url) > URL_CHARS:
        raise errors.OutboundRefused(f"The URL is longer than {URL_CHARS} characters.")
    if _UNFIT.search(url):
        raise errors.OutboundRefused(
            "The URL has spaces, backslashes or control characters; write them in percent form."
        )
    try:
        parsed = httpx.URL(url)
        host = parsed.raw_host.decode("ascii")
    except (httpx.InvalidURL, UnicodeError) as error:
        raise errors.OutboundRefused("The URL is not valid.") from error
    if parsed.scheme not in ("http", "https"):
        raise errors.OutboundRefused("The URL must begin with http:// or https://.")
    if "@" in re.split(r"[/?#]", url.partition("://")[2], maxsplit=1)[0]:
        raise errors.OutboundRefused("The URL must not hold a user name or a password.")
    if not host:
        raise errors.OutboundRefused("The URL must name a host.")
    if parsed.port is not None and not 0 < parsed.port < 2**16:
        raise errors.OutboundRefused("The URL's port is not valid.")
    return parsed, host


class _Guarded(httpx.AsyncBaseTransport):
    """Sends each request to an address that was checked, under the name that was asked for."""

    def __init__(self, networks: Sequence[Network]) -> None:
        self._networks = networks
        # Connections would be shared by address; kept ones might be used under another name.
        limits = httpx.Limits(max_keepalive_connections=0)
        self._inner = httpx.AsyncHTTPTransport(verify=_tls(), trust_env=False, limits=limits)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Try the addresses of the host that may be called, in the resolver's order."""
        url, host = request.url, request.url.raw_host.decode("ascii")
        port = url.port or (443 if url.scheme == "https" else 80)
        extensions = {**request.extensions, "sni_hostname": host.rstrip(".")}
        failure: httpx.TransportError = httpx.ConnectError("the name does not resolve")
        for address in await self._targets(host, port):
            checked = httpx.Request(
                request.method,
                url.copy_with(host=str(address)),
                headers=request.headers,  # Host is the name's, set before
                stream=request.stream,
                extensions=extensions,
            )
            try:
                return await self._inner.handle_async_request(checked)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                failure = error
        raise failure

    async def _targets(self, host: str, port: int) -> list[addresses.Address]:
        """Return the host's addresses that may be called; none: the name does not resolve.

        Raises: OutboundRefused when it has addresses, and none of them may be.
        """
        found = list(dict.fromkeys(await _addresses(host)))
        allowed = [address for address in found if addresses.allowed(address, self._networks)]
        if found and not allowed:
            raise errors.OutboundRefused(
                f"{host} has no public address; MEMORYD_OUTBOUND_ALLOW_NETS opens networks to calls."
            )
        if port in PORTS:
            return allowed
        opened = [address for address in allowed if addresses.opened(address, self._networks)]
        if allowed and not opened:
            raise errors.OutboundRefused(
                f"{host}: port {port} is not called, only {PORTS[0]} and {PORTS[1]};"
                " MEMORYD_OUTBOUND_ALLOW_NETS opens networks on any port."
            )
        return opened

    async def aclose(self) -> None:
        """Close what is open."""
        await self._inner.aclose()


async def _addresses(host: str) -> list[addresses.Address]:
    try:
        return [ipaddress.ip_address(host.partition("%")[0])]
    except ValueError:  # a name, or an address in an odd spelling: the resolver knows what the system makes of it
        return await addresses.resolve(host)


@functools.cache
def _tls() -> ssl.SSLContext:
    return httpx.create_ssl_context()


def _inflated(answer: Answer, host: str, max_bytes: int) -> bytes:
    """Return the body without its encoding, never more than `max_bytes` of it in memory."""
    encoding = answer.headers.get("content-encoding", "identity").strip().lower()
    if encoding in ("identity", ""):
        return answer.body
    if encoding not in _INFLATED:
        raise errors.OutboundRefused(f"{host} answered in the encoding {encoding[:40]}, which was not asked for.")
    # Some hosts mean the bare form of deflate.
    bare = encoding == "deflate" and answer.body[:1] and answer.body[0] & 0x0F != zlib.DEFLATED
    inflater = zlib.decompressobj(-zlib.MAX_WBITS if bare else zlib.MAX_WBITS | 32)
    try:
        data = inflater.decompress(answer.body, max_bytes + 1)
    except zlib.error as error:
        raise errors.OutboundRefused(f"The answer of {host} is damaged.") from error
    if len(data) > max_bytes:
        raise _too_large(host, max_bytes)
    if not inflater.eof:
        raise errors.OutboundRefused(f"The answer of {host} is damaged.")
    return data


def _too_large(host: str, max_bytes: int) -> errors.OutboundRefused:
    return errors.OutboundRefused(
        f"What {host} sends is larger than {max_bytes} bytes; MEMORYD_MEDIA_MAX_BYTES sets this limit."
    )


def retry_after_s(value: str, *, longest_s: int) -> int | None:
    """Read Retry-After, seconds or a date (RFC 9110, 10.2.3), as at most `longest_s`. None: absent or nonsense."""
    value = value.strip()
    if value.isdecimal() and value.isascii():
        return min(int(value[:9]), longest_s)
    try:
        at = parsedate_to_datetime(value)
    except ValueError:
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return min(max(0, round((at - datetime.now(UTC)).total_seconds())), longest_s)
