"""Restrict writes of this process to its own folders by Landlock (Linux 5.13 and newer).

The restriction also holds for all processes that it starts, such as Java and Python workers, and cannot be undone.
Reading is not restricted. If the kernel has no Landlock, nothing is refused.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from pathlib import Path

# System calls have these numbers on every processor.
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
ASK_VERSION = 1
PATH_BENEATH = 1
PR_SET_NO_NEW_PRIVS = 38
# Access rights of linux/landlock.h.
WRITE_FILE = 1 << 1
REMOVE_FOLDER = 1 << 4
# Remove and make folders, files, devices, pipes, sockets and links.
ALL_SINCE_1 = WRITE_FILE | sum(1 << bit for bit in range(4, 13))
MOVE_BETWEEN_FOLDERS, TRUNCATE = 1 << 13, 1 << 14  # since versions 2 and 3
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")


class _Ruleset(ctypes.Structure):
    _fields_ = (("handled", ctypes.c_uint64),)


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


def confine_writes(folders: Iterable[Path]) -> bool:
    """Let this process, and those that it starts from now on, write only in ``folders``. Return False if Linux cannot.

    Empty folders may be removed, so that ``folders`` can be removed too.
    """
    rights = _rights()
    if rights is None:
        return False
    ruleset = _call(CREATE_RULESET, ctypes.byref(_Ruleset(rights)), ctypes.sizeof(_Ruleset), 0)
    if ruleset < 0:
        return False
    try:
        allowed = [(path, WRITE_FILE) for path in map(Path, DEVICES) if path.exists()]
        for folder in folders:
            allowed += [(folder, rights), (folder.parent, REMOVE_FOLDER)]
        if not all(_allow(ruleset, path, right) for path, right in allowed):
            return False
        _libc().prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        return _call(RESTRICT_SELF, ruleset, 0) == 0
    finally:
        os.close(ruleset)


def _rights() -> int | None:
    """Return the rights to write that this kernel can refuse."""
    version = _call(CREATE_RULESET, None, 0, ASK_VERSION)
    if version < 1:
        return None
    return ALL_SINCE_1 | (MOVE_BETWEEN_FOLDERS if version >= 2 else 0) | (TRUNCATE if version >= 3 else 0)


def _allow(ruleset: int, path: Path, right: int) -> bool:
    handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = _PathBeneath(right, handle)
        return _call(ADD_RULE, ruleset, PATH_BENEATH, ctypes.byref(rule), 0) == 0
    finally:
        os.close(handle)


def _call(number: int, *arguments: object) -> int:
    try:
        return int(_libc().syscall(ctypes.c_long(number), *arguments))
    except AttributeError:  # not Linux
        return -1


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
