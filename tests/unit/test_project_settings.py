"""Settings of a project, read strictly."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest

from app import config, errors
from app.api import directory
from app.domain import project_settings
from app.model import Project, ProjectSettings

NOW = datetime(2026, 3, 4, tzinfo=UTC)
SETTINGS = config.Settings()


def project(**settings: Any) -> Project:
    return Project(1, "proj_x", 1, "org_x", "name", None, ProjectSettings(**settings), NOW, NOW)


def changed(of: Project, **changes: Any) -> ProjectSettings:
    return project_settings.changed(SETTINGS, of, changes).settings


def test_what_is_not_named_stays() -> None:
    before = project(decay=True, extra={"version": "v2"}, custom_instructions="Short.")
    after = project_settings.changed(SETTINGS, before, {"multilingual": False})
    assert after.name == "name"
    assert after.settings == ProjectSettings(
        decay=True, extra={"version": "v2"}, custom_instructions="Short.", multilingual=False
    )


def test_null_takes_back_to_the_default() -> None:
    before = project(raw_roles=("assistant",), expiration_date=date(2031, 1, 1), extra={"version": "v2"})
    after = changed(before, raw_roles=None, expiration_date=None, version=None, implicit_null_scoping=None)
    assert after == ProjectSettings()


def test_settings_without_effect_are_kept_apart() -> None:
    after = changed(project(), usecase_setting={"a": 1}, summary_max_tokens=5, memory_depth="deep")
    assert after.extra == {"usecase_setting": {"a": 1}, "summary_max_tokens": 5}
    assert after.memory_depth == "deep"


def test_unknown_setting_is_refused() -> None:
    with pytest.raises(errors.InvalidRequest, match="no setting top_k"):
        changed(project(), top_k=3)


def test_text_beyond_the_limit_is_refused_with_the_limits_name() -> None:
    with pytest.raises(errors.InvalidRequest, match="MEMORYD_MAX_MESSAGE_BYTES"):
        changed(project(), custom_instructions="x" * (2**20 + 1))


@pytest.mark.parametrize(
    ("name", "typed", "meant"),
    [
        ("compatibility", "hosted", "hosted"),
        ("decay", "true", True),
        ("default_top_k", "30", 30),
        ("custom_instructions", "30", "30"),
        ("custom_instructions", "Keep plans.", "Keep plans."),
        ("raw_roles", '["user"]', ["user"]),
        ("implicit_null_scoping", "null", None),
        ("name", '"quoted"', '"quoted"'),
        ("usecase", "plain words", "plain words"),
    ],
)
def test_typed_text_means_json_unless_the_setting_is_a_text(name: str, typed: str, meant: Any) -> None:
    assert project_settings.from_text(name, typed) == meant


def test_request_and_answer_name_every_setting() -> None:
    readable = set(project_settings.READERS)
    assert set(directory.ProjectPatch.model_fields) == readable
    assert readable <= set(directory.ProjectOut.model_fields)
    assert set(project_settings.WITHOUT_EFFECT) <= readable
