"""All model families: the rows of `text_families.py` and `vision_families.py`, found by name."""

from __future__ import annotations

from engine.domain.errors import SpecError
from engine.models.families.family import Family
from engine.models.families.text_families import TEXT_FAMILIES
from engine.models.families.vision_families import VISION_FAMILIES

FAMILIES: tuple[Family, ...] = (*TEXT_FAMILIES, *VISION_FAMILIES)

_BY_NAME = {row.name: row for row in FAMILIES}
if len(_BY_NAME) < len(FAMILIES):
    raise RuntimeError("two model families have the same name: rename one of them")


def family(name: str) -> Family:
    """The family called `name` (config.json's model_type). Raises `SpecError` with the known names."""
    if name not in _BY_NAME:
        raise SpecError(f"model_type {name}: no such family, expected one of {', '.join(_BY_NAME)}.")
    return _BY_NAME[name]
