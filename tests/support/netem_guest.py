"""Process 1 of a user-mode Linux kernel, which has netem: runs one body there and prints its result.

    linux … init=PYTHON -- netem_guest.py JOB

JOB is a JSON file with the `name` and the `arguments` of a function of `netem_bodies.py`: a kernel's command
line is short and knows no quotes. The host's file system is there read-only. The result is a line of JSON
on the console, after `RESULT`.
"""

import ctypes
import json
import os
import platform
import sys
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODULES = Path("/usr/lib/uml/modules")
NETWORK_MODULES = ("veth", "sch_tbf", "sch_netem", "crc-ccitt", "ipv6", "llc", "stp", "bridge")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
RESULT = "RESULT "
FINIT_MODULE = 313  # x86-64, the only architecture of user-mode Linux besides i386
POWER_OFF = 0x4321FEDC  # linux/reboot.h

LIBC = ctypes.CDLL(None, use_errno=True)


def checked(result: int, what: str) -> None:
    if result:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def mount(kind: str, where: str) -> None:
    checked(LIBC.mount(kind.encode(), where.encode(), kind.encode(), 0, None), f"mounting {where}")


def insert(module: str) -> None:
    """Put a module of this kernel in, unless the kernel has it built in."""
    for path in (MODULES / platform.release()).rglob(f"{module}.ko"):
        with path.open("rb") as file:
            checked(LIBC.syscall(FINIT_MODULE, file.fileno(), b"", 0), f"inserting {path}")


def main() -> None:
    job = json.loads(Path(sys.argv[1]).read_text())
    os.environ |= {"PATH": PATH, "HOME": "/run", "TMPDIR": "/run"}
    sys.path[:0] = [str(HERE.parents[1])]
    for kind, where in (("proc", "/proc"), ("sysfs", "/sys"), ("tmpfs", "/run")):
        mount(kind, where)
    for module in NETWORK_MODULES:
        insert(module)
    from tests.support import netem_bodies

    result = getattr(netem_bodies, job["name"])(*job["arguments"])
    sys.stdout.write(f"{RESULT}{json.dumps(result)}\n")


if __name__ == "__main__":
    try:
        main()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        LIBC.reboot(POWER_OFF)  # process 1 must not simply end
