"""The supervisor: it starts again what dies, ends all in reverse order, and hears signals."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from app import errors
from app.cli import single, supervisor
from app.servers import process

_ENV = {"PATH": "/bin:/usr/bin"}


def program(folder: Path, name: str, script: str, *, timeout_s: float = 10) -> supervisor.Program:
    child = process.Child(name, folder / f"{name}.log")
    return supervisor.Program(child, ["/bin/sh", "-c", script], env=_ENV, cwd=str(folder), timeout_s=timeout_s)


def watch(watched: supervisor.Supervisor, until: Callable[[], bool]) -> None:
    """Watch until something is true; a signal then ends the watch, as it does for people."""

    def wait_and_signal() -> None:
        process.wait_until(until, timeout_s=60, tick=process.no_tick)
        os.kill(os.getpid(), signal.SIGTERM)

    waiting = threading.Thread(target=wait_and_signal)
    waiting.start()
    with pytest.raises(supervisor.Stopped):
        watched.watch()
    waiting.join()


def test_what_dies_is_started_again_and_reported(tmp_path: Path) -> None:
    said: list[str] = []
    count = tmp_path / "count"
    with supervisor.Supervisor(said.append) as watched:
        service = program(
            tmp_path, "brief", "echo start >> count; [ $(wc -l < count) -ge 2 ] && exec sleep 300; exit 3"
        )
        watched.add(service)
        service.spawn()
        watch(watched, lambda: count.exists() and count.read_text().count("start") == 2 and service.child.alive())
    assert not service.child.alive()
    assert len(said) == 1
    assert "brief ended (exit code 3); starting it again in 0.5 s" in said[0]


def test_services_end_in_reverse_order(tmp_path: Path) -> None:
    with supervisor.Supervisor(print) as watched:
        for name in ("first", "second"):
            service = program(
                tmp_path, name, f"trap 'echo {name} >> order; exit' TERM; echo up; while :; do sleep 0.02; done"
            )
            watched.add(service)
            service.spawn()
            assert process.wait_until(
                lambda log=service.child.log: "up" in process.tail(log), timeout_s=20, tick=process.no_tick
            )
    assert (tmp_path / "order").read_text().split() == ["second", "first"]


def test_a_signal_ends_a_coroutine_under_way() -> None:
    async def endless() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(300)

    with supervisor.Supervisor(print) as watched, pytest.raises(supervisor.Stopped):
        watched.run(endless())


def test_signals_are_what_they_were_afterwards() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with supervisor.Supervisor(print):
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_second_start_hears_who_is_there(tmp_path: Path) -> None:
    first, second = "http://127.0.0.1:8123", "http://127.0.0.1:8124"
    said = f"process {os.getpid()}, at {first}"
    with single.alone(tmp_path, base_url=first), pytest.raises(errors.SetupError, match=said):
        single.alone(tmp_path, base_url=second).__enter__()
    with single.alone(tmp_path, base_url=second):
        pass
