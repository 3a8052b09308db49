"""What empties a whole project, in projects that no other test uses."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from conftest import Open
from driving import Client
from expect import refusal
from running import Service, wait_for

EVERYONE: dict[str, Any] = {"OR": [{"user_id": "*"}, {"agent_id": "*"}, {"run_id": "*"}, {"app_id": "*"}]}


@pytest.fixture(scope="module", params=["sync", "async"])
def python(request: pytest.FixtureRequest, service: Service, open_client: Open) -> Client:
    """Return the current Python client of a new project."""
    client = open_client("python2", "sdk.py", request.param)
    client.new(host=service.url, api_key=_key_of_a_new_project(service, client))
    return client


def _key_of_a_new_project(service: Service, client: Client) -> str:
    client.new(host=service.url, api_key=service.key)
    project = client.project.create(name=f"doomed {uuid4().hex[:8]}")
    return service.key_of(project["project_id"])


@pytest.fixture
def inhabitants(python: Client) -> list[str]:
    """Store memories of owners whose names need escaping; return the names."""
    names = ["plain", "a/b", "50% off?", "猫 é+&#"]
    for name in names:
        python.add("I am here.", user_id=name, infer=False)
        python.add("I am here too.", agent_id=name, run_id="r", infer=False)
    return names


def is_empty(python: Client) -> bool:
    return bool(python.users()["count"] == 0)


def test_reset_empties_the_project(python: Client, inhabitants: list[str]) -> None:
    assert python.reset()["message"] == "Client reset successful. All users and memories deleted."
    assert wait_for(lambda: is_empty(python), within_s=30, what="no owner is left")
    assert python.get_all(filters=EVERYONE)["count"] == 0


def test_deleting_every_owner_leaves_none(python: Client, inhabitants: list[str]) -> None:
    assert python.delete_users()["message"] == "All users, agents, apps and runs deleted."
    assert wait_for(lambda: is_empty(python), within_s=30, what="no owner is left")
    refusal("ValueError", python.delete_users)


def test_four_stars_empty_the_project(python: Client, inhabitants: list[str]) -> None:
    python.delete_all(user_id="*", agent_id="*", app_id="*", run_id="*")
    empty = lambda: python.get_all(filters=EVERYONE)["count"] == 0  # noqa: E731
    assert wait_for(empty, within_s=30, what="no memory is left")


def test_one_star_takes_all_that_have_such_an_owner(python: Client, inhabitants: list[str]) -> None:
    python.delete_all(run_id="*")
    assert python.get_all(filters={"run_id": "*"})["count"] == 0
    assert python.get_all(filters={"user_id": "*"})["count"] == len(inhabitants)


def test_deleted_project_takes_its_keys_with_it(python: Client, service: Service) -> None:
    python.new(host=service.url, api_key=_key_of_a_new_project(service, python))
    python.add("I am here.", user_id="u", infer=False)
    assert python.project.delete()["message"]
    refusal("AuthenticationError", python.get_all, filters={"user_id": "u"})
