"""Becomes another program that dies with its parent: `launch.py PARENT SIGNAL UID GID PROGRAM ARGUMENT…`.

Run as a script by a bare interpreter, so it knows nothing of ours. A callback between fork and exec would do the same,
but it is not safe in a process that has threads. The parent-death signal must be set after the change of user, which
clears it, and by the thread that stays: the main one.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # prctl(2)


def main(parent: str, death_signal: str, uid: str, gid: str, *command: str) -> None:
    """Drop to `uid` and `gid` unless they are `-`, tie this process to its parent, and become `command`."""
    if uid != "-":
        os.setgroups([])
        os.setgid(int(gid))
        os.setuid(int(uid))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(death_signal), 0, 0, 0)
    if os.getppid() != int(parent):
        sys.exit("the process that starts this one is gone")
    # Python ignores SIGPIPE and a shell's `&` ignores SIGINT; programs inherit what is ignored.
    for name in (signal.SIGPIPE, signal.SIGINT, signal.SIGTERM):
        signal.signal(name, signal.SIG_DFL)
    os.execv(command[0], list(command))


if __name__ == "__main__":
    main(*sys.argv[1:])
