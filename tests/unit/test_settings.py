"""Settings that cannot work are refused in one line that names the variable; names that mean nothing are noticed."""

from __future__ import annotations

import pytest

from app import config, errors

WRONG = {
    "MEMORYD_PORT": ("0", "99999", "http"),
    "MEMORYD_LEASE_S": ("-1", "0", "nan", "inf", "1e9", "soon"),
    "MEMORYD_SWEEP_S": ("0", "inf"),
    "MEMORYD_DRAIN_S": ("-1", "nan"),
    "MEMORYD_RETRY_DELAYS_S": ("-1", "1,nan", "inf", ",", "1e400"),
    "MEMORYD_WEBHOOK_DELAYS_S": ("5,-5", "never"),
    "MEMORYD_LLM_TIMEOUT_S": ("0", "inf"),
    "MEMORYD_WORKER_SLOTS": ("0", "1.5", "many"),
    "MEMORYD_DB_POOL_SIZE": ("1", "100000"),
    "MEMORYD_COMPATIBILITY": ("other",),
    "MEMORYD_LOG_LEVEL": ("LOUD",),
    "MEMORYD_OUTBOUND_ALLOW_NETS": ("10.0.0.1/8", "all", "0.0.0.0/0,"),
    "MEMORYD_LLM_BASE_URL": ("ftp://models.example", "models.example/v1", "http://"),
    "MEMORYD_EMBEDDER_BASE_URL": ("localhost:8000",),
    "MEMORYD_PUBLIC_URL": ("memory.example.com",),
    "DATABASE_URL": (
        "memoryd",
        "http://u:swordfish@db/memoryd",
        "postgresql://u:swordfish@db:port/memoryd",
        "postgresql://u:swordfish@db:99999/memoryd",
    ),
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_value_that_cannot_work_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(errors.SetupError) as refused:
        config.load()
    assert refused.value.message.startswith(f"{name}: ")
    assert "\n" not in refused.value.message
    assert "swordfish" not in refused.value.message


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:p@db/memoryd",
        "postgres://u:p%40ss@[::1]:5432/memoryd?sslmode=require",
        "postgresql://u@one:5432,two:5433/memoryd",
        "postgresql:///memoryd?host=/run/postgresql",
    ],
)
def test_every_form_of_a_database_address_is_taken(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("DATABASE_URL", url)
    found = config.load().database_url
    assert found is not None
    assert found.get_secret_value() == url


def test_empty_value_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in WRONG:
        monkeypatch.setenv(name, "")
    assert config.load() == config.load(data=config.default_data())
    assert config.load().lease_s == 30.0


def test_misspelt_setting_is_noticed_with_what_was_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    assert config.unknown() == {}
    monkeypatch.setenv("MEMORYD_LEASE", "5")
    monkeypatch.setenv("MEMORYD_XYZZY_PLUGH_QUUX", "1")
    monkeypatch.setenv("MEMORYD_DATABASE_URL", "postgresql://db/memoryd")
    monkeypatch.setenv("MEMORYD_REDIS_URL", "redis://redis/0")
    assert config.unknown() == {"MEMORYD_LEASE": "MEMORYD_LEASE_S", "MEMORYD_XYZZY_PLUGH_QUUX": None}
