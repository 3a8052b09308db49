"""Addresses that callers choose: which may be called, where the connection goes, and what bounds the answer."""

from __future__ import annotations

import gzip
import ipaddress
import socket
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from app import errors
from app.providers import addresses, outbound
from tests.file_stub import FileStub, Served

LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"),)
NEVER = """
    0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 100.127.255.254 127.0.0.1 127.8.9.10 169.254.169.254 172.16.0.1 172.31.255.255
    192.0.0.1 192.0.2.1 192.88.99.1 192.168.1.1 198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.250
    240.0.0.1 255.255.255.255
    :: ::1 ::7f00:1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 64:ff9b::7f00:1
    64:ff9b::10.0.0.1 64:ff9b:1::1 100::1 2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:db8::1 2002:7f00:1::
    2002:a00:1::1 3fff::1 5f00::1 fc00::1 fd00:ec2::254 fe80::1 febf::1 fec0::1 ff02::1 ff0e::1
"""
PUBLIC = "1.1.1.1 8.8.8.8 93.184.216.34 172.32.0.1 100.128.0.1 ::ffff:8.8.8.8 2606:4700::1111 2a00:1450:4001:81b::200e"


@pytest.mark.parametrize("text", NEVER.split())
def test_addresses_that_lead_inside_are_never_called(text: str) -> None:
    assert not addresses.allowed(ipaddress.ip_address(text), ())


@pytest.mark.parametrize("text", PUBLIC.split())
def test_public_addresses_are_called(text: str) -> None:
    assert addresses.allowed(ipaddress.ip_address(text), ())


def test_opened_networks_are_called_and_no_others() -> None:
    networks = (ipaddress.ip_network("10.1.0.0/16"), ipaddress.ip_network("fd00::/64"))
    called = [text for text in ("10.1.2.3", "::ffff:10.1.2.3", "10.2.0.1", "fd00::5", "fd00:1::5", "127.0.0.1")
              if addresses.allowed(ipaddress.ip_address(text), networks)]  # fmt: skip
    assert called == ["10.1.2.3", "::ffff:10.1.2.3", "fd00::5"]


# Where the connection goes

Resolver = Callable[[dict[str, list[list[str]]]], list[str]]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Resolver:
    """Return what sets the name server's answers, each call of a name the next; and returns the list of asked names."""

    def answer(known: dict[str, list[list[str]]]) -> list[str]:
        asked: list[str] = []

        def getaddrinfo(host: Any, *args: Any, **options: Any) -> list[Any]:
            name = host.decode() if isinstance(host, bytes) else host
            asked.append(name)
            if name not in known:
                raise socket.gaierror(socket.EAI_NONAME, "unknown")
            found = known[name].pop(0) if len(known[name]) > 1 else known[name][0]
            family = {4: socket.AF_INET, 6: socket.AF_INET6}
            return [
                (family[ipaddress.ip_address(text).version], socket.SOCK_STREAM, 6, "", (text, 0)) for text in found
            ]

        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
        return asked

    return answer


@pytest.fixture
def host() -> Iterator[FileStub]:
    """Run a host with a file."""
    with FileStub(file=Served("Grüße".encode())) as stub:
        yield stub


async def get(url: str, **options: Any) -> outbound.File:
    chosen: dict[str, Any] = {"networks": LOOPBACK, "timeout_s": 5.0, "max_bytes": 10_000, **options}
    return await outbound.fetch(url, **chosen)


@pytest.mark.parametrize(
    "host_text",
    [
        "127.0.0.1", "127.1", "2130706433", "0x7f.1", "0177.0.0.1", "0x7f000001", "0", "0.0.0.0", "localhost",
        "LOCALHOST.", "a.localhost", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "①②⑦.⓪.⓪.①", "127。0。0。1",
    ],
)  # fmt: skip
async def test_no_spelling_of_this_machine_is_called(host: FileStub, host_text: str) -> None:
    with pytest.raises(errors.OutboundRefused):
        await get(host.url("file", host=host_text), networks=())
    assert host.requests == []


async def test_the_connection_goes_to_the_checked_address_under_the_name(host: FileStub, names: Resolver) -> None:
    asked = names({"files.example": [["127.0.0.1"], ["10.0.0.1"]]})
    found = await get(host.url("file?a=1", host="files.example"))
    assert (found.data.decode(), found.mime, found.charset) == ("Grüße", "text/plain", "utf-8")
    assert asked == ["files.example"]
    (method, path, headers), = host.requests  # fmt: skip
    assert (method, path, headers["host"]) == ("GET", "/file?a=1", f"files.example:{host.port}")
    assert headers["accept-encoding"] == "identity"


async def test_a_name_that_turns_inside_is_refused_at_the_connection(host: FileStub, names: Resolver) -> None:
    names({"rebind.example": [["127.0.0.1"], ["127.0.0.2"]]})
    url = host.url("file", host="rebind.example")
    networks = (ipaddress.ip_network("127.0.0.1/32"),)
    await get(url, networks=networks)
    with pytest.raises(errors.OutboundRefused, match=r"rebind\.example has no public address"):
        await get(url, networks=networks)
    assert len(host.requests) == 1


async def test_of_several_addresses_only_the_allowed_ones_are_tried(host: FileStub, names: Resolver) -> None:
    names({"mixed.example": [["10.0.0.1", "::1", "127.0.0.9", "127.0.0.1"]]})
    networks = (ipaddress.ip_network("127.0.0.0/28"),)  # nobody listens on 127.0.0.9
    assert (await get(host.url("file", host="mixed.example"), networks=networks)).data


async def test_an_unknown_name_may_be_known_later(names: Resolver) -> None:
    names({})
    with pytest.raises(errors.OutboundUnavailable, match=r"files\.example cannot be reached"):
        await get("http://files.example/a")


@pytest.mark.parametrize("port", [22, 8080, 6379])
async def test_public_hosts_are_called_on_the_ports_of_the_web_alone(port: int, names: Resolver) -> None:
    names({"files.example": [["93.184.216.34"]]})
    with pytest.raises(errors.OutboundRefused, match=f"port {port}"):
        await get(f"http://files.example:{port}/a")


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("ftp://files.example/a", "http:// or https://"),
        ("file:///etc/passwd", "http:// or https://"),
        ("gopher://127.0.0.1:6379/_FLUSHALL", "http:// or https://"),
        ("/etc/passwd", "http:// or https://"),
        ("http:///a", "host"),
        ("http://user:secret-word@files.example/", "password"),
        ("http://user@files.example/", "password"),
        ("http://@files.example/", "password"),
        ("http://files.example\\@127.0.0.1/", "backslashes"),
        ("http://files.example/a b", "spaces"),
        ("http://files.example/\r\nHost: x", "control"),
        ("http://files.example:99999/", "not valid"),
        ("http://[::1/", "not valid"),
        ("http://files.example:0/", "port"),
        ("http://files.example/" + "a" * 9000, "longer"),
    ],
)
def test_urls_that_cannot_be_called_are_refused_without_their_secrets(url: str, reason: str) -> None:
    with pytest.raises(errors.OutboundRefused, match=reason) as raised:
        outbound.check(url)
    assert "secret-word" not in raised.value.message


# What comes back


async def test_redirects_are_not_followed() -> None:
    with FileStub(target=Served(b"inside")) as stub:
        stub.files["away"] = type(stub.files["target"])([Served(status=302, headers={"Location": stub.url("target")})])
        with pytest.raises(errors.OutboundRefused, match="redirects elsewhere"):
            await get(stub.url("away"))
        assert [path for _, path, _ in stub.requests] == ["/away"]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 204])
async def test_an_answer_that_will_not_change_is_a_refusal(status: int) -> None:
    with FileStub(a=Served(status=status)) as stub, pytest.raises(errors.OutboundRefused, match=str(status)):
        await get(stub.url("a"))


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503])
async def test_an_answer_that_may_change_is_worth_another_try(status: int) -> None:
    served = Served(status=status, headers={"Retry-After": "7"})
    with FileStub(a=served) as stub, pytest.raises(errors.OutboundUnavailable, match=str(status)) as raised:
        await get(stub.url("a"))
    assert (raised.value.retryable, raised.value.retry_after_s) == (True, 7)


@pytest.mark.parametrize("fault", ["drip", "hang"])
async def test_a_host_that_takes_its_time_is_left(fault: Any) -> None:
    with FileStub(a=Served(fault=fault)) as stub, pytest.raises(errors.OutboundUnavailable, match=r"within 0\.3 s"):
        await get(stub.url("a"), timeout_s=0.3)


async def test_a_body_without_an_end_is_left_at_the_limit() -> None:
    with (
        FileStub(a=Served(fault="endless")) as stub,
        pytest.raises(errors.OutboundRefused, match="MEMORYD_MEDIA_MAX_BYTES"),
    ):
        await get(stub.url("a"))


def _bare_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize(
    ("encoding", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress), ("deflate", _bare_deflate)]
)
async def test_packed_answers_are_unpacked_up_to_the_limit(encoding: str, pack: Callable[[bytes], bytes]) -> None:
    files = {
        name: Served(pack(b"a" * size), headers={"Content-Encoding": encoding})
        for name, size in (("ok", 9000), ("bomb", 50_000_000))
    }
    with FileStub(**files) as stub:
        assert (await get(stub.url("ok"), max_bytes=100_000)).data == b"a" * 9000
        with pytest.raises(errors.OutboundRefused, match="larger than 100000 bytes"):
            await get(stub.url("bomb"), max_bytes=100_000)


@pytest.mark.parametrize(
    ("encoding", "body"), [("br", b"x"), ("gzip", b"no gzip"), ("gzip", gzip.compress(b"a" * 99)[:-9])]
)
async def test_unknown_or_damaged_packing_is_refused(encoding: str, body: bytes) -> None:
    with (
        FileStub(a=Served(body, headers={"Content-Encoding": encoding})) as stub,
        pytest.raises(errors.OutboundRefused),
    ):
        await get(stub.url("a"))


async def test_a_request_keeps_the_status_and_the_beginning_of_the_answer(host: FileStub) -> None:
    answer = await outbound.request(
        "POST", host.url("file"), networks=LOOPBACK, timeout_s=5, max_bytes=2, content=b"{}", headers={"X-A": "1"}
    )
    assert (answer.status, answer.body, answer.cut) == (200, b"Gr", True)
    assert host.requests[0][2]["x-a"] == "1"


async def test_proxies_of_the_environment_are_not_used(host: FileStub, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert (await get(host.url("file"))).data
