"""Child processes: under which user they run, how they end with us, and where their output goes."""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from app import errors

LOG_LIMIT_BYTES = 10 * 2**20  #: of one log file; one older file of the same size is kept
_LAUNCH = str(Path(__file__).with_name("launch.py"))
_POLL_S = 0.03
_HASTE_S = 10.0  # between the hasty signal and the kill


@dataclass(frozen=True, slots=True)
class Account:
    """The unprivileged user that root runs a server under."""

    name: str
    uid: int
    gid: int


def account(user: str) -> Account | None:
    """Return whom servers run under: `user` when we are root, else None, which means ourselves.

    Raises: SetupError when that user does not exist, is root, or when we have no name ourselves.
    """
    if os.geteuid() != 0:
        _require_name(os.geteuid())
        return None
    try:
        entry = pwd.getpwnam(user)
    except KeyError:
        raise errors.SetupError(
            f"MEMORYD_SERVER_USER: there is no user {user!r} here; root needs one without privileges to run PostgreSQL"
        ) from None
    if entry.pw_uid == 0:
        raise errors.SetupError(
            "MEMORYD_SERVER_USER: must be a user without privileges; PostgreSQL refuses to run as root"
        )
    return Account(user, entry.pw_uid, entry.pw_gid)


def _require_name(uid: int) -> None:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        raise errors.SetupError(
            f"user id {uid} has no entry in /etc/passwd, and PostgreSQL does not start without one: "
            "add an entry, run as another user, or set DATABASE_URL and REDIS_URL to servers elsewhere"
        ) from None


def wait_until(check: Callable[[], bool], *, timeout_s: float, tick: Callable[[], None]) -> bool:
    """Ask `check` until it agrees or time is up; `tick` runs before each look and may raise to give up."""
    deadline = time.monotonic() + timeout_s
    while True:
        tick()
        if check():
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)


def no_tick() -> None:
    """Wait without being disturbed."""


def free_port(preferred: int | None = None) -> int:
    """Return a free port of the loopback interface: `preferred` if it is free, else any."""
    for port in (preferred, None):
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port or 0))
            return int(probe.getsockname()[1])
    raise errors.SetupError("no free port on 127.0.0.1")


# Files and folders


def make_folder(path: Path, *, mode: int = 0o700) -> Path:
    """Make `path` and what is missing above it; an existing folder keeps its mode.

    Raises: SetupError when it is not ours to write.
    """
    try:
        if not path.is_dir():
            path.mkdir(parents=True)
            path.chmod(mode)
        if not os.access(path, os.W_OK | os.X_OK):
            raise PermissionError(13, "Permission denied")
    except OSError as error:
        raise errors.SetupError(
            f"cannot write to {path}: {error.strerror}; MEMORYD_DATA names the data folder"
        ) from error
    return path


def write_private(path: Path, text: str) -> None:
    """Write `text` so that only we can read it, and so that a reader sees all of it or nothing."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def password(path: Path) -> str:
    """Return the password kept in `path`; makes a random one when there is none."""
    if not path.exists():
        write_private(path, secrets.token_urlsafe(32) + "\n")
    return path.read_text(encoding="utf-8").strip()


def own(path: Path, who: Account | None) -> None:
    """Make the folder `path` for `who` alone; refuse one that is somebody else's.

    Raises: SetupError that says whose it is.
    """
    uid = who.uid if who else os.geteuid()
    if not path.exists():
        path.mkdir(mode=0o700)
        if who:
            os.chown(path, who.uid, who.gid)
    owner = path.stat().st_uid
    if owner != uid:
        raise errors.SetupError(
            f"{path} belongs to {_name(owner)}, not to {_name(uid)}: start memoryd as the user that made it, "
            "or as root with that user in MEMORYD_SERVER_USER"
        )


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user id {uid}"


@contextlib.contextmanager
def handed(path: Path, who: Account | None) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield a name for the folder `path` that a child of `who` understands, and the descriptors to pass to it.

    An unprivileged child may be barred from a folder above `path`, such as root's home. An open descriptor takes it there
    without a walk, and nobody's folder has to be opened up.
    """
    if who is None:
        yield str(path), ()
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}", (descriptor,)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def readable(text: str, who: Account | None) -> Iterator[int]:
    """Yield a descriptor that a child of `who` can read a short secret from, which then never touches the disk."""
    read, write = os.pipe()
    try:
        os.write(write, text.encode())
        os.close(write)
        if who:
            os.fchown(read, who.uid, who.gid)  # else it may not open what it was handed
        yield read
    finally:
        os.close(read)


def trim_log(path: Path, limit_bytes: int = LOG_LIMIT_BYTES) -> None:
    """Move the text of a long log aside to `<name>.1`. Its writer appends, so it goes on in the emptied file."""
    if path.exists() and path.stat().st_size > limit_bytes:
        shutil.copyfile(path, path.with_name(path.name + ".1"))
        os.truncate(path, 0)


def tail(path: Path, lines: int = 3) -> str:
    """Return the last lines of a log on one line, to show why its writer ended."""
    try:
        text = path.read_bytes()[-4096:].decode("utf-8", "replace")
    except OSError:
        return ""
    return " | ".join([line.strip() for line in text.splitlines() if line.strip()][-lines:])


# Processes


class Child:
    """One program that we start, watch and end. It gets `death_signal` when we die, however we die."""

    def __init__(
        self, name: str, log: Path, *, death_signal: int = signal.SIGTERM, hasty_signal: int = signal.SIGKILL
    ) -> None:
        """`hasty_signal`: ends it at once, however busy it is."""
        self.name = name
        self.log = log
        self._death_signal = death_signal
        self._hasty_signal = hasty_signal
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        return self._process.pid if self._process and self.alive() else None

    def spawn(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        who: Account | None = None,
        cwd: str = "/",
        pass_fds: Sequence[int] = (),
        text: str | None = None,
    ) -> None:
        """Start `command` with `text` (at most a pipe's worth, 64 KiB) as its input.

        Call it from the main thread: the system ties a child to the thread that started it.
        """
        trim_log(self.log)
        uid, gid = (str(who.uid), str(who.gid)) if who else ("-", "-")
        launch = [sys.executable, "-I", "-S", _LAUNCH, str(os.getpid()), str(int(self._death_signal)), uid, gid]
        with open(os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as log:
            self._process = subprocess.Popen(
                [*launch, *command],
                stdin=subprocess.DEVNULL if text is None else subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=dict(env),
                cwd=cwd,
                pass_fds=tuple(pass_fds),
                start_new_session=True,  # a terminal's Ctrl-C is for us, so that we stop things in order
            )
        if text is not None and self._process.stdin:
            with contextlib.suppress(BrokenPipeError), self._process.stdin as pipe:
                pipe.write(text.encode())

    def alive(self) -> bool:
        """True while it runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def code(self) -> int | None:
        """Exit code; minus the signal when one ended it; None while it runs or before its first start."""
        return self._process.poll() if self._process else None

    def send(self, number: int) -> None:
        """Send a signal, if it still runs."""
        if self._process and self.alive():
            self._process.send_signal(number)

    def end(self, number: int, *, timeout_s: float, hasten: Callable[[], bool] = lambda: False) -> None:
        """Ask it to end with signal `number`; press it when it does not in time or `hasten` says so. Safe to repeat."""
        if self._process is None:
            return
        for signal_number, patience_s in ((number, timeout_s), (self._hasty_signal, _HASTE_S)):
            self.send(signal_number)
            wait_until(lambda: not self.alive() or hasten(), timeout_s=patience_s, tick=no_tick)
            if not self.alive():
                return
        self.send(signal.SIGKILL)
        self._process.wait()
