"""A trusted directory: each file is checked when it is loaded, and refused if other users can change it."""

import os
import struct
from pathlib import Path

import pytest

from lightning_patches import LightningPatchesWarning, permissions, trust, trust_checkpoints

pytestmark = pytest.mark.skipif(os.name != "posix", reason="owners and modes are POSIX's")
as_root = pytest.mark.skipif(os.name == "posix" and os.geteuid() != 0, reason="only root can give a file away")
OTHER = 12345


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """A trusted directory with a checkpoint that only this user can write; its parents are not writable by others."""
    monkeypatch.setattr(trust, "_trusted_directories", {})
    monkeypatch.delenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", raising=False)
    directory = tmp_path / "above" / "runs"
    directory.mkdir(parents=True, mode=0o755)
    directory.parent.chmod(0o755)
    (directory / "a.ckpt").write_bytes(b"content")
    (directory / "a.ckpt").chmod(0o644)
    return directory


def content_of(path):
    """Return the loaded value, or the reason why loading was refused."""
    file, why = trust.open_trusted(path)
    if file is None:
        return why
    with file:
        return file.read()


def allow_to_write(path, tag, number):
    """Add an access list with one more entry than the mode: named user (2) or named group (8)."""
    entries = [(1, 7, -1), (tag, 7, number), (4, 5, -1), (16, 7, -1), (32, 5, -1)]
    packed = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in sorted(entries))
    try:
        os.setxattr(path, "system.posix_acl_access", packed)
    except OSError as error:
        pytest.skip(f"no access lists on this file system: {error}")


def test_checked_file_is_already_open(runs):
    trust_checkpoints(runs)
    file, why = trust.open_trusted(runs / "a.ckpt")
    (runs / "a.ckpt").unlink()
    (runs / "a.ckpt").write_bytes(b"another file")
    assert file is not None and (file.read(), why) == (b"content", "")
    file.close()


@pytest.mark.parametrize(
    ("below", "mode", "named", "command"),
    [
        ("sub", 0o777, "sub", "chmod o-w"),
        ("sub", 0o1777, "sub", "chmod o-w"),
        ("sub/a.ckpt", 0o666, "sub/a.ckpt", "chmod o-w"),
        (".", 0o777, "", "chmod o-w"),
        (".", 0o1777, "", "chmod o-w"),
        ("..", 0o777, "..", "chmod o-w"),
    ],
)
def test_world_writable_file_is_refused(runs, below, mode, named, command):
    trust_checkpoints(runs)
    (runs / "sub").mkdir(mode=0o755)
    (runs / "sub" / "a.ckpt").write_bytes(b"content")
    (runs / below).chmod(mode)
    why = content_of(runs / "sub" / "a.ckpt")
    place = os.path.realpath(runs / named)
    assert f"others can write to {place!r}: `{command} {place}` ends that" in why and "shared=True" in why
    (runs / below).chmod(mode & ~0o022)
    assert content_of(runs / "sub" / "a.ckpt") == b"content", "the command that was named has repaired it"


def test_sticky_parent_directory_is_accepted(runs):
    runs.parent.chmod(0o1777)
    trust_checkpoints(runs)
    assert content_of(runs / "a.ckpt") == b"content"


@as_root
@pytest.mark.parametrize("below", ["a.ckpt", ".", ".."])
def test_file_of_another_user_is_refused(runs, below):
    trust_checkpoints(runs)
    os.chown(runs / below, OTHER, -1)
    place = os.path.realpath(runs / below)
    assert f"{place!r} belongs to another user: `chown {os.geteuid()} {place}`" in content_of(runs / "a.ckpt")


@as_root
@pytest.mark.parametrize("below", ["a.ckpt", "."])
def test_file_writable_by_another_group_is_refused(runs, below):
    import grp

    trust_checkpoints(runs)
    groups = (entry.gr_gid for entry in grp.getgrall() if entry.gr_name in ("daemon", "nogroup", "users"))
    os.chown(runs / below, -1, next(groups))
    (runs / below).chmod(0o775)
    place = os.path.realpath(runs / below)
    assert f"the group of {place!r} can write to it: `chmod g-w {place}`" in content_of(runs / "a.ckpt")


def test_private_group_may_write(runs, monkeypatch):
    trust_checkpoints(runs)
    (runs / "a.ckpt").chmod(0o664)
    monkeypatch.setattr(permissions, "is_own_group", lambda group: group == (runs / "a.ckpt").stat().st_gid)
    assert content_of(runs / "a.ckpt") == b"content"


def test_group_with_another_member_is_not_private(monkeypatch):
    import grp
    import pwd

    user = pwd.getpwuid(os.geteuid())
    group = grp.struct_group((user.pw_name, "x", 4321, []))
    monkeypatch.setattr(grp, "getgrgid", lambda number: group)
    monkeypatch.setattr(pwd, "getpwall", list)
    assert permissions.is_own_group(4321)
    group = grp.struct_group((user.pw_name, "x", 4321, ["colleague"]))
    assert not permissions.is_own_group(4321)


@pytest.mark.parametrize("below", ["a.ckpt", "."])
@pytest.mark.parametrize("tag", [2, 8])
def test_access_list_is_checked(runs, below, tag):
    trust_checkpoints(runs)
    allow_to_write(runs / below, tag, OTHER)
    place = os.path.realpath(runs / below)
    assert f"an access list lets others write to {place!r}: `setfacl -b {place}`" in content_of(runs / "a.ckpt")


def test_recreated_directory_is_not_trusted(runs):
    trust_checkpoints(runs)
    runs.rename(runs.parent / "before")
    runs.mkdir()
    (runs / "a.ckpt").write_bytes(b"of others")
    assert "was deleted and created again after" in content_of(runs / "a.ckpt")
    trust_checkpoints(runs)
    assert content_of(runs / "a.ckpt") == b"of others"


def test_link_out_of_the_directory_is_not_trusted(runs):
    trust_checkpoints(runs)
    outside = runs.parent / "outside.ckpt"
    outside.write_bytes(b"of others")
    (runs / "link.ckpt").symlink_to(outside)
    assert content_of(runs / "link.ckpt") == ""


def test_only_regular_files_are_opened(runs):
    trust_checkpoints(runs, shared=True)
    os.mkfifo(runs / "pipe.ckpt")
    assert "is not a regular file" in content_of(runs / "pipe.ckpt")


def test_shared_directory_can_be_trusted_explicitly(runs):
    runs.chmod(0o777)
    with pytest.warns(LightningPatchesWarning, match="No objects will be loaded.*chmod o-w"):
        trust_checkpoints(runs)
    trust_checkpoints(runs, shared=True)
    assert content_of(runs / "a.ckpt") == b"content"


def test_torch_variable_is_respected(runs, monkeypatch):
    trust_checkpoints(runs)
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "True")
    assert content_of(runs / "a.ckpt") == ""


def test_valid_arguments_are_accepted(runs, monkeypatch):
    for wrong in (3, None, os.fsencode(runs), [runs]):
        with pytest.raises(TypeError):
            trust_checkpoints(wrong)
    with pytest.raises(ValueError, match="existing directory"):
        trust_checkpoints(runs / "none")
    with pytest.raises(ValueError, match="existing directory"):
        trust_checkpoints("")  # os.environ.get("CHECKPOINTS", "")
    with pytest.raises(ValueError, match="root of the file system"):
        trust_checkpoints(os.path.abspath(os.sep))
    (runs.parent / "link").symlink_to(runs)
    trust_checkpoints(runs.parent / "link")
    assert content_of(str(runs / "a.ckpt")) == b"content"
    assert content_of(runs / ".." / "a.ckpt") == ""
    monkeypatch.chdir(runs)
    for elsewhere in ("https://example.org/a.ckpt", "s3://bucket/a.ckpt", "simplecache::s3://a.ckpt", os.fsencode("a")):
        assert content_of(elsewhere) == ""
    assert content_of("a.ckpt") == b"content"
    assert "No such file" in content_of("b.ckpt")


def test_module_that_others_can_write_is_reported(tmp_path):
    module = tmp_path / "package" / "networks.py"
    module.parent.mkdir()
    module.write_text("")
    for place in (module, module.parent, tmp_path):
        place.chmod(0o755)
    assert trust.why_module_is_open(str(module)) == ""
    module.chmod(0o666)
    assert "chmod o-w" in trust.why_module_is_open(str(module))
    assert trust.why_module_is_open(None) == trust.why_module_is_open("built-in") == ""
    assert trust.why_module_is_open(os.__file__) == "", "part of this Python environment"


def test_nothing_is_trusted_without_file_owners(runs, monkeypatch):
    trust_checkpoints(runs)
    monkeypatch.delattr(os, "geteuid")
    assert "this system does not show who else can write there" in content_of(runs / "a.ckpt")
    assert permissions.why_others_can_change_code(str(Path(__file__).resolve())) == ""
