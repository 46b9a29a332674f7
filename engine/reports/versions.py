"""Finds the versions of the software and of the machine, which a report records."""

from __future__ import annotations

import platform
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version

PACKAGES = ("torch", "transformers", "safetensors", "pydantic", "mininet")


def versions() -> dict[str, str]:
    """Versions of Python, the kernel and the packages that a run's numbers depend on, if installed."""
    found = {"python": platform.python_version(), "kernel": platform.release(), "machine": platform.machine()}
    return found | {package: installed for package in PACKAGES if (installed := _installed(package))}


@lru_cache(maxsize=16)
def _installed(package: str) -> str:
    """The version of a package, "" without it. Reading it takes longer than a short prediction."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
