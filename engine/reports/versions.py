"""Finds the versions of the software and of the machine, which a report records."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

PACKAGES = ("torch", "transformers", "safetensors", "pydantic", "mininet")


def versions() -> dict[str, str]:
    """Versions of Python, the kernel and the packages that a run's numbers depend on, if installed."""
    found = {"python": platform.python_version(), "kernel": platform.release(), "machine": platform.machine()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
