"""Install programs from Debian's packages: Mininet, Redis, and what the tests need."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from webapp.ops.places import SETUP_DIR, OpsError
from webapp.ops.steps import run_logged

SEARCH_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin", "/sbin"])
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
REDIS_PACKAGES = (Package("redis-server", program("redis-server")),)
TEST_PACKAGES = (
    Package("chromium", program("chromium")),
    Package("gcc", program("cc")),
    Package("libc6-dev", Path("/usr/include/elf.h").exists),
    Package("postgresql", lambda: any(POSTGRESQL_DIR.glob("*/bin/initdb"))),
    Package("user-mode-linux", program("linux.uml")),
)


def missing_of(packages: Iterable[Package]) -> list[str]:
    return [package.name for package in packages if not package.is_installed()]


def install(packages: Iterable[Package]) -> bool:
    """Install the missing packages. Raises `OpsError` with their names without root or apt-get."""
    packages = tuple(packages)
    missing = missing_of(packages)
    if not missing:
        return False
    names = " ".join(missing)
    if shutil.which("apt-get") is None:
        raise OpsError(
            f"These packages are missing and there is no apt-get to install them: {names}. "
            "EdgeLoom sets itself up on Debian and Ubuntu; elsewhere install the programs by hand."
        )
    if os.geteuid() != 0:
        raise OpsError(
            f"These Debian packages are missing: {names}. Install them with "
            f"`sudo apt-get install {names}`, or run this command as root."
        )
    environment = {"DEBIAN_FRONTEND": "noninteractive"}
    logs = SETUP_DIR / "logs"
    run_logged("Package lists", ("apt-get", "update"), logs / "apt-get-update.log", environment=environment)
    run_logged(
        f"Debian packages ({names})",
        ("apt-get", "install", "--yes", "--no-install-recommends", *missing),
        logs / "apt-get-install.log",
        environment=environment,
    )
    still_missing = missing_of(packages)
    if still_missing:
        raise OpsError(
            f"apt-get installed {names}, yet {' '.join(still_missing)} is still not usable: "
            "read .loom/logs/apt-get-install.log."
        )
    return True
