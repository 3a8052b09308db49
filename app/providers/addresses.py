"""Which network addresses may be called on a caller's behalf: public ones, and the networks that the operator opens."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Iterable
from typing import TypeAlias

from app.config import Network

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

RESOLVE_S = 3.0  #: longest wait for the name servers

#: Reach private hosts through a gateway, or are reserved, and yet count as global in Python's own tables.
_NOT_PUBLIC = tuple(
    ipaddress.ip_network(text)
    for text in (
        "192.0.0.0/24",                         # protocol assignments, RFC 6890; Python's table has parts of it
        "64:ff9b::/96", "64:ff9b:1::/48",       # NAT64, RFC 6052 and 8215
        "2002::/16", "192.88.99.0/24",          # 6to4, RFC 3056 and 7526
        "2001::/32",                            # Teredo, RFC 4380
        "::/96",                                # IPv4-compatible, RFC 4291
        "fec0::/10",                            # site-local, RFC 3879
        "100::/64",                             # discard, RFC 6666
        "3fff::/20",                            # documentation, RFC 9637
        "5f00::/16",                            # segment routing, RFC 9602
    )
)  # fmt: skip


def allowed(address: Address, networks: Iterable[Network]) -> bool:
    """Return whether an address may be called: it is public, or in one of the opened `networks`."""
    if opened(address, networks):
        return True
    address = _unwrapped(address)
    if not address.is_global or address.is_multicast or address.is_reserved:
        return False
    return not any(address in network for network in _NOT_PUBLIC)


def opened(address: Address, networks: Iterable[Network]) -> bool:
    """Return whether an address is in one of the opened `networks`, on whose hosts any port may be called."""
    address = _unwrapped(address)
    return any(address in network for network in networks)


def _unwrapped(address: Address) -> Address:
    return getattr(address, "ipv4_mapped", None) or address


async def resolve(host: str) -> list[Address]:
    """Return the addresses of a host name or of an address in any spelling; none when it does not resolve in time.

    Numbers and other odd spellings of an address count as what the system's resolver makes of them.
    """
    if host.rstrip(".").lower().rsplit(".", 1)[-1] == "localhost":  # RFC 6761, whatever the name servers say
        return [ipaddress.ip_address("127.0.0.1"), ipaddress.ip_address("::1")]
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(RESOLVE_S):
            found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):  # unknown, too long for a name, or too slow: TimeoutError is an OSError
        return []
    return [ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found]
