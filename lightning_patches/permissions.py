"""Who else can change a file or a directory: told by owner, mode, group and access list, as ssh's StrictModes does.

What is trusted is a file that is open: nobody can put another one in its place then.

Access lists are read on Linux only (POSIX ones; those of NFSv4 show in the mode as far as they do). On a system without
owners and modes, nothing can be told: a checkpoint counts as open to others then, and a module does not.
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
"""How torch spells a variable that is on."""
_WRITE = 2
_NAMED_USER, _OWNING_GROUP, _NAMED_GROUP, _MASK = 2, 4, 8, 16
"""Tags of an access list's entries that are not in the mode."""


def open_trusted(path: object, directories: Mapping[str, Optional[tuple[int, int]]]) -> tuple[Optional[BinaryIO], str]:
    """A file in one of these directories or below, if nobody else can change it.

    Args:
        path: what the program loads. Links are followed.
        directories: by path, links followed, device and inode; ``None`` where others may write as well.

    Returns:
        The file, to be closed by the caller, or ``None``; and why it is not opened, if it lies in one of them.
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
                why = f"{directory!r} was made anew since, and is not the directory that was trusted"
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
    """A file that is no link, pipe or device; looked at once more, now that it is open."""
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
    """What lets another user than root change a file, or put another one in its place; with the command that mends it.

    Looks at the file and at every directory above it, from the root on: what nobody else can rename stays what it is
    while the next one is looked at.

    Args:
        path: absolute, links followed.
        sticky_from: a directory above the file; those above it may be open to all if they are sticky, as /tmp is.

    Returns:
        "others can write to '/data/runs': `chmod o-w /data/runs` ends that"; "" if nothing does.
    """
    if not hasattr(os, "geteuid"):
        return "who else can write there cannot be told on this system"
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
    """What lets those change a module who could not change this Python environment anyway; "" if nothing does.

    Who owns it is not asked: somebody has installed it for this user.

    Args:
        file: the module's file.
    """
    if not hasattr(os, "geteuid"):  # modes say nothing here
        return ""
    prefix = os.path.realpath(sys.prefix)
    environments = [os.stat(place) for place in (sys.prefix, os.path.dirname(os.__file__))]
    groups = {status.st_gid for status in environments if status.st_mode & stat.S_IWGRP}
    directory = os.path.dirname(file)
    for place in _from_the_root(file):
        status = os.stat(place)
        # What others add to a sticky directory is not imported, unless it is one that Python looks in.
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
    """The same as :func:`why_others_can_change` for one file or directory, without what is above it.

    Args:
        place: its path, or a descriptor.
        status: of it.
        name: what to call it, where ``place`` is a descriptor.
        groups: may write.
        any_owner: whoever owns it may write.
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
    """Whether the members of a group are only this user and root.

    A network's directory service may list no members: only a group that is named after the user is taken for the user's
    own.
    """
    import grp
    import pwd

    try:
        user = pwd.getpwuid(os.geteuid()).pw_name
        entry = grp.getgrgid(group)
    except KeyError:  # without a name, as in containers
        return False
    members = {*entry.gr_mem, *(person.pw_name for person in pwd.getpwall() if person.pw_gid == group)}
    return entry.gr_name in (user, "root") and members <= {user, "root"}


def _from_the_root(path: str) -> list[str]:
    places = [path]
    while os.path.dirname(places[-1]) != places[-1]:
        places.append(os.path.dirname(places[-1]))
    return places[::-1]


def _is_safe_by_sticky_bit(status: os.stat_result) -> bool:
    """Whether others can add files to a directory at most, and not rename or remove what belongs to somebody else."""
    return bool(status.st_mode & stat.S_ISVTX) and status.st_uid in (0, os.geteuid())


def _access_list(place: Union[str, int]) -> Iterator[tuple[int, int, int]]:
    """Tag, rights and user or group of each entry of a POSIX access list; nothing where there is none."""
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
