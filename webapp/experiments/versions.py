"""The version of the code that results depend on, by world."""

from __future__ import annotations

from functools import cache

from django.conf import settings

from engine.experiments.execution.version import code_version, hash_of

EMULATED = ("engine", "emulator")
"""Folders of the checkout on which an emulation depends."""


@cache
def version_of(world: str) -> str:
    """Of this process: it hashes the files once."""
    if world != "emulated":
        return code_version()
    return hash_of(settings.BASE_DIR / folder for folder in EMULATED)
