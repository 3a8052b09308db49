"""Which addresses may be called on a caller's behalf."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest

from app.providers import addresses


@pytest.mark.parametrize("text", ["93.184.216.34", "8.8.8.8", "2606:2800:220:1::1", "::ffff:93.184.216.34"])
def test_public_addresses_may_be_called(text: str) -> None:
    assert addresses.allowed(ip_address(text), ())


@pytest.mark.parametrize(
    "text",
    """127.0.0.1 127.255.0.9 0.0.0.0 10.0.0.1 172.16.0.1 192.168.1.1 169.254.169.254 100.64.0.1 192.0.0.8 192.0.2.1
    198.18.0.1 224.0.0.1 240.0.0.1 255.255.255.255 192.88.99.1 :: ::1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:10.0.0.1
    fe80::1 fc00::1 ff02::1 64:ff9b::7f00:1 64:ff9b:1::1 2002:7f00:1:: 2001::1 100::1 2001:db8::1 3fff::1 5f00::1""".split(),
)
def test_private_reserved_and_tunnelled_addresses_may_not(text: str) -> None:
    assert not addresses.allowed(ip_address(text), ())


def test_opened_networks_may_be_called_in_both_forms() -> None:
    opened = (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))
    for text in ("10.1.2.3", "::ffff:10.1.2.3", "fd12::1"):
        assert addresses.allowed(ip_address(text), opened)
    assert not addresses.allowed(ip_address("192.168.1.1"), opened)


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST.", "a.localhost", "127.1", "2130706433", "0x7f.1", "①②⑦.⓪.⓪.①"]
)
async def test_every_spelling_of_this_machine_is_this_machine(host: str) -> None:
    assert all(address.is_loopback for address in await addresses.resolve(host))
    assert await addresses.resolve(host)


@pytest.mark.parametrize("host", ["nowhere.invalid", "a" * 64 + ".invalid", "a..b", ""])
async def test_names_without_addresses_have_none(host: str) -> None:
    assert await addresses.resolve(host) in ([], await addresses.resolve("localhost"))
