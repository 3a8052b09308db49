"""The image and the compose file, held true without an engine: their form, and the image's very commands outside it."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from app.servers import process

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
OURS = ("migrate", "api", "worker")

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    described: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return described


# compose


def test_every_service_is_watched_and_restarted(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        if name == "migrate":
            assert service["restart"] == "no"
        else:
            assert service["restart"] == "unless-stopped", name
            assert "healthcheck" in service or name == "api", name  # the API's check is the image's own


def test_our_services_run_unprivileged_on_a_read_only_root(compose: dict[str, Any]) -> None:
    for name in OURS:
        service = compose["services"][name]
        assert service["user"] == "10001:10001", name
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert "no-new-privileges:true" in service["security_opt"], name


def test_no_secret_has_a_default(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        for variable, value in service.get("environment", {}).items():
            if re.search("PASSWORD|SECRET|KEY|DATABASE_URL", variable):
                assert re.search(r"\$\{\w+:\?[^}]+\}|^\$\{\w+:-\}$", value), f"{name}: {variable}"


def test_only_the_api_is_published_and_on_loopback(compose: dict[str, Any]) -> None:
    published = {name: service["ports"] for name, service in compose["services"].items() if "ports" in service}
    assert list(published) == ["api"]
    assert published["api"][0].startswith("${MEMORYD_BIND:-127.0.0.1}:")


def test_processes_wait_for_what_they_need(compose: dict[str, Any]) -> None:
    for name in ("api", "worker"):
        needs = compose["services"][name]["depends_on"]
        assert needs["migrate"]["condition"] == "service_completed_successfully"
        assert needs["db"]["condition"] == needs["queue"]["condition"] == "service_healthy"


def test_every_volume_is_declared(compose: dict[str, Any]) -> None:
    used = {mount.split(":")[0] for service in compose["services"].values() for mount in service.get("volumes", [])}
    assert used == set(compose["volumes"])


def test_compose_passes_only_settings_that_exist(compose: dict[str, Any]) -> None:
    from app import config

    known = {f"MEMORYD_{name.upper()}" for name in config.Settings.model_fields} | {"DATABASE_URL", "REDIS_URL"}
    for name in OURS:
        assert set(compose["services"][name]["environment"]) <= known


# image


def _instructions() -> list[tuple[str, str]]:
    joined = re.sub(r"\\\n", " ", "\n".join(line for line in DOCKERFILE.splitlines() if not line.startswith("#")))
    return [(word, rest) for line in joined.splitlines() if line.strip() for word, _, rest in [line.partition(" ")]]


def test_image_is_built_from_the_lock_and_runs_unprivileged() -> None:
    instructions = _instructions()
    assert {word for word, _ in instructions} <= {
        "ARG", "FROM", "ENV", "RUN", "WORKDIR", "COPY", "LABEL", "USER", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD",
    }  # fmt: skip
    assert any("--require-hashes" in rest for word, rest in instructions if word == "RUN")
    last_user = [rest for word, rest in instructions if word == "USER"][-1]
    assert last_user == "10001:10001"
    assert sum(word == "FROM" for word, _ in instructions) == 2


def test_what_the_image_copies_is_there_and_not_ignored() -> None:
    ignored = (ROOT / ".dockerignore").read_text().split()
    for word, rest in _instructions():
        if word == "COPY" and not rest.startswith("--from"):
            for source in rest.split()[:-1]:
                assert (ROOT / source).exists(), source
                assert source not in ignored


def test_commands_of_image_and_compose_exist(compose: dict[str, Any]) -> None:
    called = [json.loads(rest)[0] for word, rest in _instructions() if word == "CMD"]
    called += [compose["services"][name]["command"][0] for name in OURS]
    checks = [json.loads(rest.rpartition("CMD ")[2])[1:] for word, rest in _instructions() if word == "HEALTHCHECK"]
    checks.append(compose["services"]["worker"]["healthcheck"]["test"][2:])
    for words in [*([name] for name in called), *checks]:
        asked = subprocess.run(
            [sys.executable, "-m", "app", *words, "--help"], cwd=ROOT, capture_output=True, timeout=60
        )
        assert asked.returncode == 0, words


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project as the image has it: its sources copied by the Dockerfile's lines, installed by its very command."""
    source, site = tmp_path_factory.mktemp("src"), tmp_path_factory.mktemp("site")
    for word, rest in _instructions():
        if word == "COPY" and not rest.startswith("--from"):
            *names, target = rest.split()
            for name in names:
                if (ROOT / name).is_dir():
                    shutil.copytree(ROOT / name, source / target, ignore=shutil.ignore_patterns("__pycache__"))
                else:
                    shutil.copy(ROOT / name, source)
    run = next(rest for word, rest in _instructions() if word == "RUN" and "--no-build-isolation" in rest)
    words = shlex.split(run.partition("&&")[0])[1:]
    done = subprocess.run(
        [sys.executable, "-m", "pip", *words, "--quiet", "--target", str(site)],
        cwd=source, capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return site


@pytest.fixture
def container(installed: Path, empty_dsn: str, valkey_url: str, tmp_path: Path) -> dict[str, str]:
    """The environment that the image's processes have."""
    return {
        "PATH": os.defpath,
        "PYTHONPATH": os.pathsep.join([str(installed), sysconfig.get_paths()["purelib"]]),
        "DATABASE_URL": empty_dsn,
        "REDIS_URL": valkey_url,
        "MEMORYD_DATA": str(tmp_path),
        "MEMORYD_PORT": str(process.free_port()),
    }


def _start(env: dict[str, str], *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-P", "-m", "app", *words], cwd="/", env=env, stderr=subprocess.DEVNULL)


def _run(env: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "app", *words]
    return subprocess.run(command, cwd="/", env=env, capture_output=True, text=True, timeout=120)


def test_the_images_commands_migrate_serve_and_work(container: dict[str, str]) -> None:
    migrated = _run(container, "migrate")
    assert migrated.returncode == 0, migrated.stderr
    made = _run(container, "keys", "create")
    found = re.search(r"m0-\S+", made.stdout)
    assert found, made.stderr
    processes = [_start(container, "serve"), _start(container, "worker")]
    try:
        for check in (["healthcheck"], ["healthcheck", "--worker"]):
            assert process.wait_until(
                lambda check=check: _run(container, *check).returncode == 0, timeout_s=120, tick=process.no_tick
            ), check
        base, headers = f"http://127.0.0.1:{container['MEMORYD_PORT']}", {"Authorization": f"Token {found[0]}"}
        with httpx.Client(base_url=base, headers=headers, timeout=60, trust_env=False) as client:
            body = {"user_id": "u1", "messages": [{"role": "user", "content": "I moved to Lisbon in May 2021."}]}
            event = client.post("/v3/memories/add/", json=body).json()["event_id"]
            assert process.wait_until(
                lambda: client.get(f"/v1/event/{event}/").json()["status"] == "SUCCEEDED",
                timeout_s=60,
                tick=process.no_tick,
            )
            question = {"query": "Where does she live?", "filters": {"user_id": "u1"}, "threshold": 0}
            hits = client.post("/v3/memories/search/", json=question).json()["results"]
        assert "Lisbon" in hits[0]["memory"]
    finally:
        for one in processes:
            one.send_signal(signal.SIGTERM)
        codes = [one.wait(timeout=60) for one in processes]
    assert codes == [0, 0]


@pytest.mark.parametrize("command", ["serve", "worker", "migrate"])
def test_a_process_without_a_database_names_the_variable(container: dict[str, str], command: str) -> None:
    env = {name: value for name, value in container.items() if name != "DATABASE_URL"}
    refused = _run(env, command)
    assert refused.returncode == 1
    assert len(refused.stderr.splitlines()) == 1
    assert "DATABASE_URL" in refused.stderr
