"""Virtual environments, also where Debian's package python3-venv is missing and cannot be installed."""

from __future__ import annotations

import importlib.util
import shlex
import sys
from pathlib import Path

from webapp.ops import debian
from webapp.ops.places import OpsError

PIP_INSTALL = ("-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--no-compile")
"""What follows a Python. Compiling all takes longer than unpacking it: `first_import` does what counts."""


def has_pip(environment: Path) -> bool:
    """Whether the environment is complete: ensurepip installs pip last, and pip writes RECORD last. Raises
    `OpsError` if this user may not read it.
    """
    try:
        there = (environment / "bin" / "python").exists()
    except PermissionError as error:
        raise OpsError(
            f"{environment} is another user's and closed to you: start EdgeLoom as that user, or from a "
            "checkout of your own."
        ) from error
    return there and any(environment.glob("lib/python3*/site-packages/pip-*.dist-info/RECORD"))


def making(environment: Path) -> tuple[str, ...]:
    """The command that makes an empty one. Raises `OpsError` if this Python has neither ensurepip nor pip."""
    make = (sys.executable, "-m", "venv", "--clear")
    if importlib.util.find_spec("ensurepip") is not None:
        return (*make, str(environment))
    if importlib.util.find_spec("pip") is None:
        raise OpsError(
            f"This Python ({sys.executable}) has neither ensurepip nor pip, and "
            f"{debian.remedy(package.name for package in debian.VENV_PACKAGES)}."
        )
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = environment / "lib" / version / "site-packages"
    commands = (
        (*make, "--without-pip", str(environment)),
        (sys.executable, *PIP_INSTALL, "--target", str(packages), "pip"),
    )
    return ("/bin/sh", "-c", " && ".join(map(shlex.join, commands)))


def without_halves(environment: Path) -> list[Path]:
    """The descriptions of packages whose installation was interrupted: pip would take them for whole.

    pip writes a package's RECORD after all its other files.
    """
    found = environment.glob("lib/python3*/site-packages/*.dist-info")
    return sorted(path for path in found if not (path / "RECORD").exists())
