"""What a report says about the software and the machine that made it."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

PACKAGES = ("torch", "transformers", "safetensors", "pydantic", "mininet")


def versions() -> dict[str, str]:
    """Versions of Python, the kernel and the packages that decide a run's numbers."""
    found = {"python": platform.python_version(), "kernel": platform.release(), "machine": platform.machine()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
