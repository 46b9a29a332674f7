"""Checks, when it is imported from a checkout, that this package and the parts of EdgeLoom that it uses lie
beside each other.

There they are top-level packages, and their names are common: another package called `engine` that Python
finds first would be imported in place of ours, and fail anywhere. In the wheel they are inside this package.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

PARTS = ("engine", "emulator", "topologies")
PLACE = Path(__file__).resolve().parents[1]


def check() -> None:
    """Check every part; raises `ImportError` with the place of the first package that is not EdgeLoom's."""
    for name in PARTS:
        found = _place_of(name)
        if found is None:
            raise ImportError(
                f"edgeloom in {PLACE} lacks its package {name}: install edgeloom again, as a whole."
            )
        if found != PLACE / name:
            raise ImportError(
                f"edgeloom needs its own package {name} in {PLACE}, and `import {name}` gives that in {found}"
                f": rename or uninstall that one, or give edgeloom an environment of its own."
            )


def _place_of(name: str) -> Path | None:
    """The folder of a package that was imported, or would be; None if there is none."""
    module = sys.modules.get(name)
    spec = getattr(module, "__spec__", None) or find_spec(name)
    if spec is None:
        return None
    if spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations))).resolve()
    return Path(spec.origin or name).resolve()


if not (Path(__file__).parent / "_own").is_dir():
    check()
