"""Reads the image processor file beside a model's weights, which may differ from the family's settings.

Hugging Face keeps it in preprocessor_config.json, or since version 5 inside processor_config.json.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isclose
from typing import Any

from engine.domain.errors import SpecError
from engine.domain.vision import VisionSpec

FILES = ("preprocessor_config.json", "processor_config.json")
RESAMPLE = {2: "bilinear", 3: "bicubic"}
"""Pillow's numbers of filters."""


def adapted(vision: VisionSpec, config: Mapping[str, Any], where: str) -> VisionSpec:
    """`vision` with the processor's filter, crop, mean and std; what `config` leaves out stays.

    Raises `SpecError` naming `where` for steps that are not done here, or another size.
    """
    given = config.get("image_processor", config)
    for key in ("do_resize", "do_rescale", "do_normalize"):
        if not given.get(key, True):
            raise SpecError(f"{where}, {key}: false is not supported, expected true.")
    if not isclose(given.get("rescale_factor", 1 / 255), 1 / 255, rel_tol=1e-6):
        factor = given["rescale_factor"]
        raise SpecError(f"{where}, rescale_factor: {factor} is not supported, expected 1/255.")
    crop = given.get("do_center_crop", vision.crop)
    for key in ("size", "crop_size") if crop else ("size",):
        edges = _edges(given.get(key))
        if edges - {vision.image_size}:
            raise SpecError(f"{where}, {key}: {given[key]} is not supported, expected {vision.image_size}.")
    resample = given.get("resample")
    if resample is not None and resample not in RESAMPLE:
        raise SpecError(f"{where}, resample: {resample} is not supported, expected 2 or 3.")
    fields = {
        "resample": RESAMPLE[resample] if resample is not None else vision.resample,
        "crop": crop,
        "mean": given.get("image_mean") or vision.mean,
        "std": given.get("image_std") or vision.std,
    }
    changed: VisionSpec = VisionSpec.parse(vision.model_dump() | fields, where)
    return changed


def _edges(size: Any) -> set[int]:
    """The lengths that a size names: of one edge or of both."""
    return set(size.values()) if isinstance(size, dict) else {size} if size is not None else set()
