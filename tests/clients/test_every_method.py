"""The clients' public methods, and that the tests here use each."""

from __future__ import annotations

from pathlib import Path

from driving import Client

HERE = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))


def unused(client: Client, *called: str) -> list[str]:
    """Return the public methods of the client that no test calls by one of these names of it."""

    def used(method: str) -> bool:
        return any(f"{name}.{method}{end}" in HERE for name in called for end in "(,)") or f'"{method}"' in HERE

    return [method for method in client.public() if not used(method)]


def test_every_method_of_the_python_client_is_used(python: Client) -> None:
    assert unused(python, "python") == []


def test_every_method_of_the_older_python_clients_is_used(older: Client) -> None:
    wipes = {"reset", "project.delete"}  # the same requests as those of the current client, and the most dangerous
    assert set(unused(older, "older", "one", "zero")) <= wipes


def test_every_method_of_the_javascript_client_is_used(javascript: Client) -> None:
    assert unused(javascript, "javascript") == []
