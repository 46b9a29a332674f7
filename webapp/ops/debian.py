"""Install programs from Debian's packages: Mininet, Redis, and what the tests need."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from webapp.ops.places import OpsError, shown
from webapp.ops.steps import log_of, run_logged

SEARCH_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin", "/sbin"])
APT_LOCK_PATIENCE_S = 300
"""How long apt-get waits for another one, such as a fresh system's update of itself."""
FIXED_S, PACKAGE_S = 6, 2
"""What apt-get takes on two quiet cores."""
POSTGRESQL_DIR = Path("/usr/lib/postgresql")


class Package(NamedTuple):
    name: str
    is_installed: Callable[[], bool]


def program(name: str) -> Callable[[], bool]:
    """Whether a program is on the search path: then its package need not be installed."""
    return lambda: shutil.which(name, path=SEARCH_PATH) is not None


VENV_PACKAGES = (
    Package(
        f"python{sys.version_info.major}.{sys.version_info.minor}-venv",
        lambda: importlib.util.find_spec("ensurepip") is not None,
    ),
)
EMULATOR_PACKAGES = (
    Package("mininet", program("mnexec")),
    Package("iproute2", program("tc")),
    Package("nftables", program("nft")),
    Package("util-linux", program("unshare")),
)
REDIS_PROGRAMS = ("redis-server", "valkey-server")
"""Redis, or Valkey, which continues it and reads the same configuration."""
REDIS_PACKAGES = (Package("redis-server", lambda: any(program(name)() for name in REDIS_PROGRAMS)),)
TEST_PACKAGES = (
    Package("chromium-headless-shell", program("chromium-headless-shell")),
    Package("gcc", program("cc")),
    Package("libc6-dev", Path("/usr/include/elf.h").exists),
    Package("systemd", program("systemd-analyze")),
    Package("postgresql", lambda: any(POSTGRESQL_DIR.glob("*/bin/initdb"))),
    Package("user-mode-linux", program("linux.uml")),
)


def missing_of(packages: Iterable[Package]) -> list[str]:
    return [package.name for package in packages if not package.is_installed()]


def can_install() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def remedy(missing: Iterable[str]) -> str:
    """What the person at the keyboard can do about missing packages, as the end of a sentence."""
    names = " ".join(missing)
    if shutil.which("apt-get") is None:
        return (
            f"there is no apt-get to install them: {names}; EdgeLoom sets itself up on Debian and Ubuntu, "
            "elsewhere install these programs by hand"
        )
    return f"an administrator can add them with `sudo apt-get install {names}`"


def install(packages: Iterable[Package]) -> bool:
    """Install the missing packages, as root. Raises `OpsError` with their names without root or apt-get."""
    packages = tuple(packages)
    missing = missing_of(packages)
    if not missing:
        return False
    if not can_install():
        raise OpsError(f"System packages are missing and {remedy(missing)}.")
    environment = {"DEBIAN_FRONTEND": "noninteractive"}
    patience = ("-o", f"DPkg::Lock::Timeout={APT_LOCK_PATIENCE_S}")
    title = "System packages"
    names = " ".join(missing)
    commands = (
        "dpkg --configure -a",  # goes on where an installation was interrupted
        shlex.join(("apt-get", *patience, "update")),
        shlex.join(("apt-get", *patience, "install", "--yes", "--no-install-recommends", *missing)),
    )
    run_logged(
        title,
        ("/bin/sh", "-c", " && ".join(commands)),
        log_of(title),
        environment=environment,
        expects=f"apt-get installs {names}, about {FIXED_S + PACKAGE_S * len(missing):.0f} s",
    )
    still_missing = missing_of(packages)
    if still_missing:
        raise OpsError(
            f"apt-get installed {names}, yet {' '.join(still_missing)} is still not usable: "
            f"read {shown(log_of(title))}."
        )
    return True
