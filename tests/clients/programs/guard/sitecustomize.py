"""Keep a client on this machine: Python imports this at its start, being the first on the path.

A connection to anywhere but loopback is refused, and noted in the file that STRANGERS names.
"""

from __future__ import annotations

import ipaddress
import os
import socket


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.split("%")[0]).is_loopback
    except ValueError:
        return host == "localhost"


def _guarded(real):
    def connect(self, address):
        if self.family in (socket.AF_INET, socket.AF_INET6) and not _is_here(address[0]):
            raise _refusal(str(address[0]))
        return real(self, address)

    return connect


def _guarded_lookup(real):
    def getaddrinfo(host, *args, **kwargs):
        name = host.decode() if isinstance(host, bytes) else host
        if name and not _is_here(name):
            raise _refusal(name)
        return real(host, *args, **kwargs)

    return getaddrinfo


def _refusal(host: str) -> OSError:
    with open(os.environ["STRANGERS"], "a", encoding="utf-8") as file:
        file.write(f"{host}\n")
    return OSError(f"the tests refuse a connection to {host}")


if "STRANGERS" in os.environ:
    socket.socket.connect = _guarded(socket.socket.connect)
    socket.socket.connect_ex = _guarded(socket.socket.connect_ex)
    socket.getaddrinfo = _guarded_lookup(socket.getaddrinfo)
