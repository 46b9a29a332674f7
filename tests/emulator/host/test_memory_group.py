"""The control group of an emulation: the kernel ends who needs more, and it is known afterwards."""

import subprocess
import sys
from pathlib import Path

import pytest

from emulator.host import memory
from emulator.host.memory import MemoryGroup, machine_bytes

pytestmark = pytest.mark.root
ENTER_GROUP = 'echo $$ > "$0" && exec "$@"'
MEGABYTE = 1 << 20
ROOT = Path(__file__).resolve().parents[3]


def allocate(group: MemoryGroup, megabytes: int) -> int:
    """The exit status of a process in the group that fills so much memory."""
    if group.procs is None:
        pytest.skip("this machine does not let a process make control groups for memory")
    program = (sys.executable, "-c", f"bytearray({megabytes * MEGABYTE})")
    return subprocess.run(("sh", "-c", ENTER_GROUP, str(group.procs), *program)).returncode


def test_a_process_within_the_limit_lives_and_one_beyond_it_is_killed() -> None:
    with MemoryGroup(100 * MEGABYTE) as group:
        assert allocate(group, 20) == 0
        assert not group.is_exceeded()
        assert allocate(group, 300) == -9
        assert group.is_exceeded()
        directory = group.directory
    assert directory is not None and not directory.exists()


def test_the_group_of_a_process_that_was_killed_is_removed_by_the_next_one() -> None:
    with MemoryGroup(MEGABYTE) as group:
        if group.directory is None:
            pytest.skip("this machine does not let a process make control groups for memory")
        left = group.directory.parent / f"{memory.PREFIX}{2**22 + 1}-5"  # above the largest process id
        left.mkdir()
        with MemoryGroup(MEGABYTE):
            assert not left.exists()
            assert group.directory.exists()


ANOTHER = "from emulator.host.memory import MemoryGroup\nwith MemoryGroup(1 << 20): pass"
CONTAINER = ("unshare", "--pid", "--fork", "--mount-proc")


def test_a_group_that_nobody_has_entered_yet_is_left_alone_by_a_container_that_does_not_see_its_owner() -> (
    None
):
    """Else the session, which enters it a moment later, found no such file and its run failed."""
    with MemoryGroup(MEGABYTE) as group:
        if group.procs is None:
            pytest.skip("this machine does not let a process make control groups for memory")
        subprocess.run((*CONTAINER, sys.executable, "-c", ANOTHER), check=True, cwd=ROOT)
        assert group.procs.exists()
    assert not group.procs.parent.exists()


def test_where_no_group_can_be_made_nothing_is_limited(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Folders are all that can be made there."""
    monkeypatch.setattr(memory, "CGROUPS", tmp_path)
    with MemoryGroup(MEGABYTE) as group:
        assert group.procs is None and not group.is_exceeded()
    assert list(tmp_path.iterdir()) == []


def test_a_container_has_as_much_memory_as_its_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(memory, "CGROUPS", tmp_path)
    everything = machine_bytes()
    (tmp_path / "memory.max").write_text("max\n")
    assert machine_bytes() == everything
    (tmp_path / "memory.max").write_text("123456\n")
    assert machine_bytes() == 123456
