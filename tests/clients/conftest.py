"""Fixtures: the service once per run, a client of each kind once per run, owners and memories that no other test knows."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import driving
import pytest
from driving import PROGRAMS, Client
from running import Service

Open = Callable[..., Client]


@pytest.fixture(scope="session")
def service() -> Iterator[Service]:
    """Run the service that most tests share."""
    service = Service()
    yield service
    service.stop()


@pytest.fixture(scope="session")
def open_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Open]:
    """Return a function that starts a program under programs/ in the environment of this name."""
    opened: list[Client] = []

    def open_(environment: str, program: str, *arguments: str, **variables: str) -> Client:
        runs = node() if environment == "npm" else driving.python_of(environment)
        client = Client([runs, PROGRAMS / program, *arguments], tmp_path_factory.mktemp(Path(program).stem), variables)
        opened.append(client)
        return client

    yield open_
    for client in opened:
        client.leave()
    for client in opened:
        client.close()


def node() -> str:
    """Return the node that runs JavaScript; without one these tests cannot run, which the summary says."""
    found = shutil.which("node")
    if found is None:
        pytest.skip("NOT TESTED: the JavaScript clients, for there is no node on this machine")
    assert driving.MODULES.exists(), f"{driving.MODULES} is missing: `make test-clients` makes it"
    return found


@pytest.fixture(scope="session", params=["sync", "async"])
def python(request: pytest.FixtureRequest, service: Service, open_client: Open) -> Client:
    """Return the current Python client, given a host and a key and nothing else."""
    client = open_client("python2", "sdk.py", request.param)
    client.new(host=service.url, api_key=service.key)
    return client


@pytest.fixture(scope="session")
def javascript(service: Service, open_client: Open) -> Client:
    """Return the current JavaScript client, given a host and a key and nothing else."""
    client = open_client("npm", "sdk.mjs")
    client.new({"host": service.url, "apiKey": service.key})
    return client


@pytest.fixture
def name() -> str:
    """Return an owner's name that no other test uses; its beginning would need escaping in a path."""
    return f"clara o'neil/{uuid4().hex[:12]}"


@pytest.fixture
def forged(python: Client, service: Service) -> Iterator[None]:
    """Give the Python client a wrong key for one test, after it was made with the right one."""
    python.new(host=service.url, api_key=service.key)
    python.forge_key("m0-wrong")
    yield
    python.new(host=service.url, api_key=service.key)


Remember = Callable[..., str]


@pytest.fixture
def remember(python: Client) -> Remember:
    """Return a function that stores a text word for word, and returns the id of the memory."""

    def store(text: str, **options: Any) -> str:
        answer = python.add(text, infer=False, **options)
        (result,) = answer["results"]
        return str(result["id"])

    return store


@pytest.fixture
def two_facts(remember: Remember, name: str) -> dict[str, str]:
    """Store two memories of this owner; return their ids by subject."""
    return {
        "cello": remember("I play the cello in a string quartet.", user_id=name, metadata={"topic": "music", "n": 1}),
        "swim": remember("I swim two kilometres on Mondays.", user_id=name, metadata={"topic": "sport", "n": 2}),
    }


@pytest.fixture(scope="session", params=["python1 sync", "python1 async", "python0 sync", "python0 async"])
def older(request: pytest.FixtureRequest, service: Service, open_client: Open) -> Client:
    """Return each of the older clients in turn. All send `org_id` and `project_id` with most calls."""
    environment, mode = request.param.split()
    client = open_client(environment, "sdk.py", mode)
    client.new(host=service.url, api_key=service.key)
    return client
