"""Find out if other users can change a file or directory.

The checks of owner, mode, group and access list are those of ssh's StrictModes. The file that is loaded is checked
after it was opened, so that other users can't exchange it after the check.

POSIX access lists are read on Linux only. NFSv4 access lists are not read; their effect is visible only in the mode. On
a system without owners and modes, a checkpoint counts as writable by others, and a module does not.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import stat
import struct
import sys
from pathlib import Path
from typing import BinaryIO, Iterator, Mapping, Optional, Union

SHARED = "If all who can write there may run their code as you, call trust_checkpoints(directory, shared=True)."
_FORCED = ("1", "y", "yes", "true")
"""Values of torch's variables that mean "on"."""
_WRITE = 2
_NAMED_USER, _OWNING_GROUP, _NAMED_GROUP, _MASK = 2, 4, 8, 16
"""Tags of an access list's entries that are not in the mode."""


def open_trusted(path: object, directories: Mapping[str, Optional[tuple[int, int]]]) -> tuple[Optional[BinaryIO], str]:
    """Open a file in or below one of the directories if no other user can change it.

    Args:
        path: the path that the program loads. Links are followed.
        directories: device and inode by resolved path; ``None`` for a directory to which others may write.

    Returns:
        The open file, which the caller must close, or ``None``. And the reason if a file in one of the directories is
        refused, else "".
    """
    if os.environ.get("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "").lower() in _FORCED:
        return None, ""
    if not isinstance(path, (str, Path)) or "://" in str(path) or "::" in str(path):
        return None, ""
    file, why = os.path.realpath(path), ""
    for directory, identity in directories.items():
        if not file.startswith(os.path.join(directory, "")):
            continue
        try:
            status = os.lstat(directory)
            if identity is not None and (status.st_dev, status.st_ino) != identity:
                why = f"{directory!r} was deleted and created again after the program trusted it"
            else:
                why = "" if identity is None else why_others_can_change(file, sticky_from=directory)
            if not why:
                found, why = _open_regular(file, any_writer=identity is None)
                if found is not None:
                    return found, ""
        except OSError as error:
            why = f"{error.filename or file!r}: {error.strerror}"
    return None, f"{file!r} is loaded without objects: {why}. {SHARED}" if why else ""


def _open_regular(file: str, any_writer: bool) -> tuple[Optional[BinaryIO], str]:
    """Open a file that is no link, pipe or device, and check the open file again.

    Returns:
        The open file or ``None``, and the reason for ``None``.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with contextlib.ExitStack() as stack:
        opened = stack.enter_context(open(os.open(file, flags), "rb"))
        status = os.fstat(opened.fileno())
        why = "it is not a regular file" if not stat.S_ISREG(status.st_mode) else ""
        if not why and not any_writer:
            why = why_others_can_write(opened.fileno(), status, name=file)
        if why:
            return None, why
        stack.pop_all()  # the caller closes it
    return opened, ""


def why_others_can_change(path: str, sticky_from: str = "") -> str:
    """Return why other users than this one and root can change or replace a file, with the command that fixes it.

    Checks the directories from the root to the file, so that no other user can rename a directory that is still to be
    checked.

    Args:
        path: absolute resolved path.
        sticky_from: a parent directory whose own parents may be world-writable if they are sticky, such as /tmp.

    Returns:
        "others can write to '/data/runs': `chmod o-w /data/runs` ends that"; "" if no other user can change it.
    """
    if not hasattr(os, "geteuid"):
        return "this system does not show who else can write there"
    try:
        for place in _from_the_root(path):
            status = os.lstat(place)
            if stat.S_ISLNK(status.st_mode):
                return f"{place!r} has become a link"
            above = sticky_from != place and sticky_from.startswith(os.path.join(place, ""))
            why = "" if above and _is_safe_by_sticky_bit(status) else why_others_can_write(place, status)
            if why:
                return why
    except OSError as error:
        return f"{error.filename!r}: {error.strerror}"
    return ""


def why_others_can_change_code(file: str) -> str:
    """Return why users who can't change this Python environment can change a module's file; "" if they can't.

    Any owner is accepted, since an administrator may have installed the module.

    Args:
        file: the module's file.
    """
    if not hasattr(os, "geteuid"):  # a system without owners and modes
        return ""
    prefix = os.path.realpath(sys.prefix)
    environments = [os.stat(place) for place in (sys.prefix, os.path.dirname(os.__file__))]
    groups = {status.st_gid for status in environments if status.st_mode & stat.S_IWGRP}
    directory = os.path.dirname(file)
    for place in _from_the_root(file):
        status = os.stat(place)
        # Others may add files to a sticky directory. That matters only in the directories that Python imports from.
        above = place not in (file, directory, os.path.dirname(directory))
        if place in _from_the_root(prefix) or above and status.st_mode & stat.S_ISVTX:
            continue
        why = why_others_can_write(place, status, groups=frozenset(groups), any_owner=True)
        if why:
            return why
    return ""


def why_others_can_write(
    place: Union[str, int],
    status: os.stat_result,
    name: str = "",
    groups: frozenset[int] = frozenset(),
    any_owner: bool = False,
) -> str:
    """Like :func:`why_others_can_change` for one file or directory, without its parents.

    Args:
        place: its path or descriptor.
        status: its status.
        name: name for messages if ``place`` is a descriptor.
        groups: groups that may write.
        any_owner: accept any owner.
    """
    name = name or str(place)
    quoted, mode, group = shlex.quote(name), status.st_mode, status.st_gid
    if not any_owner and status.st_uid not in (0, os.geteuid()):
        return f"{name!r} belongs to another user: `chown {os.geteuid()} {quoted}`, or use a copy of your own"
    if mode & stat.S_IWOTH:
        return f"others can write to {name!r}: `chmod o-w {quoted}` ends that"
    entries = list(_access_list(place))
    if not entries:
        entries = [(_OWNING_GROUP, mode >> 3 & 7, group)]
    mask = next((rights for tag, rights, _ in entries if tag == _MASK), 7)
    for tag, rights, number in entries:
        if not rights & mask & _WRITE:
            continue
        if tag == _OWNING_GROUP and group not in groups and not is_own_group(group):
            return f"the group of {name!r} can write to it: `chmod g-w {quoted}` ends that"
        is_other_user = tag == _NAMED_USER and number not in (0, os.geteuid())
        if is_other_user or tag == _NAMED_GROUP and number not in groups and not is_own_group(number):
            return f"an access list lets others write to {name!r}: `setfacl -b {quoted}` ends that"
    return ""


def is_own_group(group: int) -> bool:
    """True if only this user and root are members of a group.

    A directory service may not list members, so a group without members must have the user's name.
    """
    import grp
    import pwd

    try:
        user = pwd.getpwuid(os.geteuid()).pw_name
        entry = grp.getgrgid(group)
    except KeyError:  # without a name, as in containers
        return False
    members = {*entry.gr_mem, *(user.pw_name for user in pwd.getpwall() if user.pw_gid == group)}
    return entry.gr_name in (user, "root") and members <= {user, "root"}


def _from_the_root(path: str) -> list[str]:
    places = [path]
    while os.path.dirname(places[-1]) != places[-1]:
        places.append(os.path.dirname(places[-1]))
    return places[::-1]


def _is_safe_by_sticky_bit(status: os.stat_result) -> bool:
    """True if the sticky bit prevents others from renaming or removing files of other users."""
    return bool(status.st_mode & stat.S_ISVTX) and status.st_uid in (0, os.geteuid())


def _access_list(place: Union[str, int]) -> Iterator[tuple[int, int, int]]:
    """Yield tag, rights and user or group of each entry of a POSIX access list."""
    if not sys.platform.startswith("linux"):
        return
    import errno

    try:
        content = os.getxattr(place, "system.posix_acl_access")
    except OSError as error:
        if error.errno in (errno.ENODATA, errno.ENOTSUP, errno.ENOSYS):
            return
        raise
    yield from struct.iter_unpack("<HHI", content[4:])
