"""Makes the calling process the first of a session, in namespaces of its own: `enter(room)`.

It drops the rights that it has, covers what the session must not see, and is root inside these namespaces
only: no process of the session has rights outside that an ordinary user lacks. It ends with its parent, and
everything inside ends with it.

`python -I -S enter.py ROOM PROGRAM …`, ROOM as JSON (`Room`), becomes PROGRAM inside, as `rights.py` does to
find out what a machine allows: it imports the standard library only, so it starts within some 20 ms.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import stat
import sys
from pathlib import Path
from typing import NamedTuple, NoReturn

NICENESS = -20
SCRATCH = "/run"
"""The directory of a session's temporary files, in a memory file system, which the kernel removes with it."""

MOST_FILES = 8192
"""No more: Mininet's `mnexec` closes every number that is allowed, one by one, for each node."""
MOST_PROCESSES = 8192
"""Processes and threads of one session; a device of a run has up to ten. A kernel before 5.14 counts all of
the user's.
"""

MEMORY = (SCRATCH, "/dev/shm")
"""Memory file systems of the session's own, which it may write."""

TUN = "/dev/net/tun"
CANNOT = 71
"""The exit status if the room cannot be entered; standard error has one line that says why."""

# linux/sched.h, linux/mount.h, linux/prctl.h, asm-generic/unistd.h
NEWNS, NEWIPC, NEWUSER, NEWPID, NEWNET = 0x00020000, 0x08000000, 0x10000000, 0x20000000, 0x40000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_PRIVATE = 0x2, 0x4, 0x8, 0x4000, 0x40000
AT_EMPTY_PATH, AT_RECURSIVE, AT_FDCWD = 0x1000, 0x8000, -100
OPEN_TREE_CLONE, MOVE_MOUNT_F_EMPTY_PATH = 1, 4
ATTR_RDONLY, ATTR_IDMAP = 0x1, 0x100000
OPEN_TREE, MOVE_MOUNT, MOUNT_SETATTR = 428, 429, 442
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 1, 4, 38

LIBC = ctypes.CDLL(None, use_errno=True)


class View(NamedTuple):
    """A path that the session sees although a directory above it is covered.

    `owner`: the user and group of its files, where the session could not read or write them as somebody else:
    they are shown as its own.
    """

    path: str
    writable: bool = False
    owner: tuple[int, int] | None = None


class Room(NamedTuple):
    """What a session gets of its machine.

    parent      the process with which it ends
    identity    the number of the user and group that it becomes; None: it stays who it is
    own_users   whether it has a user namespace: without one it keeps the machine's root
    group       the file of a control group that takes its pid, or ""
    cores       the processor cores that it may use
    covered     directories that it sees empty
    views       what it sees below these, and what it may write; all else is read-only
    own_network whether it has a network of its own: without one it has this machine's, and no rights over it
    """

    parent: int
    identity: int | None
    own_users: bool
    group: str
    cores: tuple[int, ...]
    covered: tuple[str, ...]
    views: tuple[View, ...]
    own_network: bool = True


def enter(room: Room) -> None:
    """Returns in the first process of the new namespaces; the calling one waits for it and ends as it does.

    Only a process with a single thread may call this. Raises `OSError` where the kernel refuses.
    """
    die_with(room.parent)
    if room.group:
        Path(room.group).write_text(str(os.getpid()))
    os.sched_setaffinity(0, room.cores)
    raise_priority()
    os.umask(0o022)  # whatever the parent's is, the session must pass the directories made here
    if room.own_users and room.identity is None:
        own_users()
    call("unshare", NEWNS)
    arrange(room)
    if room.own_users:
        # Two steps: from within the second, the kernel lets nobody uncover what the first has covered.
        own_users() if room.identity is None else become(room.identity)
    die_with(room.parent)  # a change of user has cancelled it
    limit_processes()
    raise_open_files()
    call("unshare", NEWNS | NEWIPC | NEWPID | (NEWNET if room.own_network else 0))
    call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    alive, mine = os.pipe()
    init = os.fork()
    if init:
        keep_only(mine)
        _, status = os.waitpid(init, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    os.close(mine)
    call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL)
    if select.select([alive], [], [], 0)[0]:  # the parent has ended before
        os._exit(CANNOT)
    mount("proc", "/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    stand_anew()


def keep_only(descriptor: int) -> None:
    """Close all files but the standard ones and this: what only waits keeps nothing that others wait for."""
    os.closerange(3, descriptor)
    os.closerange(descriptor + 1, os.sysconf("SC_OPEN_MAX"))


def stand_anew() -> None:
    """Look the current directory up again, and go to / where that is closed. A process that keeps the old one
    sees through the mounts that cover it, and programs cannot be started in a closed one.
    """
    try:
        os.chdir(Path.cwd())
    except OSError:
        os.chdir("/")


def die_with(parent: int) -> None:
    """Let the kernel kill this process when its parent, the process `parent`, ends."""
    call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(CANNOT)


def raise_priority() -> None:
    """Raise the priority of this process and its children, as far as it may; and of its autogroup if it leads
    one: that of a terminal would keep it, and whatever is started there would come before all else.
    """
    present = os.getpriority(os.PRIO_PROCESS, 0)
    allowed = 20 - resource.getrlimit(resource.RLIMIT_NICE)[0]  # 20: none, as without that right
    for niceness in (NICENESS, allowed):
        if niceness > present:
            return
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, niceness)
            if os.getsid(0) == os.getpid():
                Path("/proc/self/autogroup").write_text(str(niceness))
            return


def raise_open_files() -> None:
    """Let each process of this session open `MOST_FILES`, as far as it may: a run of 256 devices needs some
    1,500, and most shells allow 1,024.
    """
    present, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(present, most), hard))


def limit_processes() -> None:
    """Limit the processes and threads of this session: of the user that it is, in its user namespace."""
    _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    most = MOST_PROCESSES if hard == resource.RLIM_INFINITY else min(hard, MOST_PROCESSES)
    resource.setrlimit(resource.RLIMIT_NPROC, (most, most))


def own_users() -> None:
    """Enter a new user namespace in which this user is root."""
    user, group = os.geteuid(), os.getegid()
    call("unshare", NEWUSER)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {user} 1")
    Path("/proc/self/gid_map").write_text(f"0 {group} 1")


def become(identity: int) -> None:
    """Drop root: enter a user namespace whose root is the user `identity` outside."""
    os.setgroups([])
    own = users(0, 0, identity)
    call("setns", own, NEWUSER)
    os.close(own)
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)
    call("prctl", PR_SET_DUMPABLE, 1, 0, 0, 0)  # or its files in /proc would be the machine's root's


def users(user: int, group: int, identity: int) -> int:
    """The file descriptor of a new user namespace, in which user and group `identity` have these numbers."""
    made, make = os.pipe()
    parent, child = os.getpid(), os.fork()
    if not child:
        with contextlib.suppress(OSError):
            call("unshare", NEWUSER)
        die_with(parent)  # it has the files of the session, whose turn would last for ever
        os.write(make, b"x")
        signal.pause()
    try:
        os.read(made, 1)
        Path(f"/proc/{child}/uid_map").write_text(f"{user} {identity} 1")
        Path(f"/proc/{child}/gid_map").write_text(f"{group} {identity} 1")
        return os.open(f"/proc/{child}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(made)
        os.close(make)


def arrange(room: Room) -> None:
    """Cover what the session must not see, show what it needs, and let it write nowhere else."""
    mount("", "/", MS_REC | MS_PRIVATE, kind="")
    owners = {view.owner for view in room.views if view.owner is not None}
    shown_as = {owner: users(*owner, room.identity or 0) for owner in owners}
    trees = {view.path: tree_of(view, shown_as) for view in room.views}
    for path in mount_points():
        if not path.startswith(("/proc", "/sys")):
            with contextlib.suppress(OSError):  # another mount hides it
                set_attributes(AT_FDCWD, path, ATTR_RDONLY)
    laid: list[str] = []
    places: list[View | str] = sorted([*room.covered, *room.views], key=lambda one: path_of(one).count("/"))
    for place in places:
        if isinstance(place, View):
            show(place, trees[place.path])
        elif Path(place).is_dir():  # not hidden by what covers a directory above
            cover(place, room.identity)
            laid.append(place)
    for descriptor in shown_as.values():  # a session that is forked, and becomes no program, would keep it
        os.close(descriptor)
    if room.identity is not None and room.own_users:
        open_tun()
    for path in laid:
        if path not in MEMORY:
            set_attributes(AT_FDCWD, path, ATTR_RDONLY)


def path_of(place: View | str) -> str:
    return place.path if isinstance(place, View) else place


def mount_points() -> list[str]:
    """The mount points of this mount namespace."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [line.split()[4].encode().decode("unicode_escape") for line in lines]


def tree_of(view: View, shown_as: dict[tuple[int, int], int]) -> int:
    """The file descriptor of a copy of the mounts at and below the view's path."""
    tree = syscall(OPEN_TREE, AT_FDCWD, view.path, OPEN_TREE_CLONE | AT_RECURSIVE | os.O_CLOEXEC)
    if not view.writable:
        set_attributes(tree, "", ATTR_RDONLY)
    if view.owner is not None:
        with contextlib.suppress(OSError):  # overlayfs cannot: then the files' own rights hold
            set_attributes(tree, "", ATTR_IDMAP, shown_as[view.owner])
    return tree


def show(view: View, tree: int) -> None:
    path = Path(view.path)
    if not path.exists():  # below what is covered
        is_directory = stat.S_ISDIR(os.fstat(tree).st_mode)
        (path if is_directory else path.parent).mkdir(parents=True, exist_ok=True)
        if not is_directory:
            path.touch()
    syscall(MOVE_MOUNT, tree, "", AT_FDCWD, view.path, MOVE_MOUNT_F_EMPTY_PATH)
    os.close(tree)


def cover(path: str, identity: int | None) -> None:
    owner = f",uid={identity},gid={identity}" if path in MEMORY and identity is not None else ""
    mount("tmpfs", path, MS_NOSUID, options=f"mode=0755{owner}")


def open_tun() -> None:
    """Let the session open the TUN device also where only root may: its own network is all it can reach."""
    with contextlib.suppress(OSError):  # there is none, or a container may not make devices
        device, own = Path(TUN).stat().st_rdev, Path(SCRATCH, "tun")
        os.mknod(own, stat.S_IFCHR, device)
        own.chmod(0o666)
        show(View(TUN), syscall(OPEN_TREE, AT_FDCWD, str(own), OPEN_TREE_CLONE | os.O_CLOEXEC))


def mount(source: str, target: str, flags: int, kind: str | None = None, options: str = "") -> None:
    texts = (source, target, source if kind is None else kind)
    call("mount", *(text.encode() for text in texts), flags, options.encode())


def set_attributes(where: int, path: str, attributes: int, users: int = 0) -> None:
    """Set attributes of the mount at `path`, or of a whole copied tree `where`."""
    values = (ctypes.c_uint64 * 4)(attributes, 0, 0, users)  # struct mount_attr
    flags = 0 if path else AT_EMPTY_PATH | AT_RECURSIVE
    syscall(MOUNT_SETATTR, where, path, flags, ctypes.byref(values), ctypes.sizeof(values))


def syscall(number: int, *arguments: object) -> int:
    return call("syscall", number, *(one.encode() if isinstance(one, str) else one for one in arguments))


def call(name: str, *arguments: object) -> int:
    """A function of the C library; raises `OSError` with its name and its arguments."""
    result = getattr(LIBC, name)(*arguments)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}{arguments}: {os.strerror(number)}")
    return int(result)


def room_from(text: str) -> Room:
    """A `Room` that was written as JSON."""
    values = json.loads(text)
    views = tuple(
        View(path, writable, None if owner is None else tuple(owner))
        for path, writable, owner in values.pop("views")
    )
    return Room(**values, views=views)


def enter_or_end(room: Room) -> None:
    """`enter` the room; where the kernel refuses, this process ends with one line that says why."""
    try:
        enter(room)
    except OSError as error:
        os.write(2, f"{error.strerror or error}\n".encode())
        os._exit(CANNOT)


def main(room: str, program: list[str]) -> NoReturn:
    enter_or_end(room_from(room))
    os.execv(program[0], program)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
