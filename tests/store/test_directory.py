"""Organizations, projects, keys and embedding models."""

from __future__ import annotations

import hashlib
from datetime import date
from uuid import uuid4

import pytest

from app import errors
from app.model import ProjectSettings
from app.store import keys, models, orgs
from tests import factories, fakes

FULL = ProjectSettings(
    compatibility="hosted",
    implicit_null_scoping=False,
    raw_roles=("user", "assistant"),
    default_top_k=7,
    split_by_attribution=False,
    custom_instructions="Short.",
    agent_custom_instructions="Shorter.",
    custom_categories=[{"pets": "animals"}],
    multilingual=False,
    decay=True,
    memory_depth="deep",
    expiration_date=date(2031, 2, 3),
    extra={"usecase": "chat"},
)


@pytest.mark.parametrize("settings", [ProjectSettings(), FULL])
async def test_settings_of_a_project_are_read_back_as_they_were_written(conn, settings):
    project = await factories.make_project(conn, settings=settings)
    assert project.settings == settings
    assert await orgs.get_project(conn, project.id) == project
    assert (await orgs.save_settings(conn, project.id, FULL)).settings == FULL


def test_settings_of_a_newer_release_are_passed_over():
    assert orgs.settings_from_json({"decay": True, "from_the_future": 1}) == ProjectSettings(decay=True)


async def test_organizations_and_projects_are_found_by_their_public_ids(conn):
    before = len(await orgs.list_organizations(conn))
    organization = await orgs.insert_organization(conn, name="Acme")
    project = await orgs.insert_project(
        conn, organization.id, name="one", description="first", settings=ProjectSettings()
    )
    second = await orgs.insert_project(conn, organization.id, name="two", settings=ProjectSettings())
    assert organization.public_id.startswith("org_")
    assert len(organization.public_id) == 24
    assert project.public_id.startswith("proj_")
    assert len(project.public_id) == 25
    assert project.organization_public_id == organization.public_id
    assert await orgs.get_organization(conn, organization.public_id) == organization
    assert await orgs.find_project(conn, project.public_id) == project
    assert await orgs.list_projects(conn, organization.id) == [project, second]
    assert second in await orgs.list_projects(conn)
    assert len(await orgs.list_organizations(conn)) == before + 1


async def test_what_does_not_exist_is_not_found(conn):
    assert await orgs.find_project(conn, "proj_x") is None
    with pytest.raises(errors.NotFound):
        await orgs.get_organization(conn, "org_x")
    with pytest.raises(errors.NotFound):
        await orgs.get_project(conn, -1)
    with pytest.raises(errors.NotFound):
        await orgs.save_settings(conn, -1, ProjectSettings())


async def make_key(conn, project, name):
    digest = hashlib.sha256(name.encode()).digest()
    return await keys.insert(conn, project.id, id=uuid4(), name=name, prefix="m0-abc", digest=digest), digest


async def test_a_key_is_found_by_its_digest_until_it_is_revoked(conn, project):
    key, digest = await make_key(conn, project, "first")
    assert await keys.find_by_digest(conn, digest) == key
    assert await keys.find_by_digest(conn, bytes(32)) is None
    assert await keys.revoke(conn, project.id, key.id)
    assert await keys.find_by_digest(conn, digest) is None
    [revoked] = await keys.list_for(conn, project.id)
    assert await keys.revoke(conn, project.id, key.id)
    assert await keys.list_for(conn, project.id) == [revoked], "the first revocation counts"


async def test_another_project_neither_lists_nor_revokes_nor_touches_a_key(conn, project):
    key, digest = await make_key(conn, project, "first")
    stranger = await factories.make_project(conn)
    assert await keys.list_for(conn, stranger.id) == []
    assert not await keys.revoke(conn, stranger.id, key.id)
    await keys.touch(conn, stranger.id, key.id)
    assert await keys.find_by_digest(conn, digest) == key


async def test_a_use_is_noted_to_the_minute(conn, project):
    key, digest = await make_key(conn, project, "first")
    await keys.touch(conn, project.id, key.id)
    used = (await keys.find_by_digest(conn, digest)).last_used_at
    assert used is not None
    await keys.touch(conn, project.id, key.id)
    assert (await keys.find_by_digest(conn, digest)).last_used_at == used
    await conn.execute("UPDATE api_keys SET last_used_at = last_used_at - interval '61 seconds' WHERE id = $1", key.id)
    await keys.touch(conn, project.id, key.id)
    assert (await keys.find_by_digest(conn, digest)).last_used_at >= used


async def test_a_registered_model_keeps_its_dimensions_and_is_in_use_once_it_has_vectors(conn, project):
    await models.register(conn, "another", 3)
    await models.register(conn, "another", 4)
    assert await models.stored(conn) == {"another": 3, fakes.MODEL: fakes.DIMS}
    assert await models.in_use(conn) == set()
    await factories.make_memory(conn, await factories.make_scope(conn, project), "tea")
    assert await models.in_use(conn) == {fakes.MODEL}
