"""The machine that packs a study: versions, processor and kernel, and nothing that tells whose it is."""

from __future__ import annotations

import os
import tomllib
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from engine.experiments.execution.version import ENGINE, code_version
from engine.ops.torch_kernels.linear_table import processor
from engine.reports.versions import versions

CHECKOUT = ENGINE.parent / "pyproject.toml"


def environment() -> dict[str, str]:
    """What is known, by its name."""
    found = {"edgeloom": edgeloom_version(CHECKOUT), "code": code_version(), **versions()}
    found |= {"processor": processor(), "cores": str(os.cpu_count() or "")}
    return {name: value[:200] for name, value in found.items() if value}


def edgeloom_version(checkout: Path) -> str:
    """The version of the checkout whose file this is, else that of the installed wheel."""
    with suppress(OSError, KeyError, tomllib.TOMLDecodeError):
        return str(tomllib.loads(checkout.read_text(encoding="utf-8"))["project"]["version"])
    with suppress(PackageNotFoundError):
        return version("edgeloom")
    return ""
