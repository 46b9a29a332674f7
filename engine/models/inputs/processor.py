"""Reads the image processor file beside a model's weights, which may differ from the family's settings.

Hugging Face keeps it in preprocessor_config.json, or since version 5 inside processor_config.json.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isclose
from typing import Any

from engine.domain.errors import SpecError
from engine.domain.vision import NUM_CHANNELS, VisionSpec
from engine.models.families.keys import NUMBER, Key, an_object, harmless, only, refused, shown, typed

FILES = ("preprocessor_config.json", "processor_config.json")
RESAMPLE = {2: "bilinear", 3: "bicubic"}
"""Names of filters by Pillow's numbers."""
SIZE = int | dict[str, int] | None
KEYS: Mapping[str, Key] = {
    "do_resize": only(bool | None, True, None),
    "do_rescale": only(bool | None, True, None),
    "do_normalize": only(bool | None, True, None),
    "do_pad": only(bool | None, None, False),
    "do_center_crop": harmless(bool | None, None),
    "rescale_factor": harmless(NUMBER | None, None),
    "resample": harmless(int | None, None),
    "size": harmless(SIZE, None),
    "crop_size": harmless(SIZE, None),
    "image_mean": harmless(list[NUMBER] | None, None),
    "image_std": harmless(list[NUMBER] | None, None),
}
"""The steps of the library's image processors. Other keys say how to store and pass on, and are ignored."""


def adapted(vision: VisionSpec, config: Mapping[str, Any], where: str) -> VisionSpec:
    """`vision` with the processor's filter, crop, mean and std; what `config` leaves out or has null stays.

    Raises `SpecError` naming `where` and the key for steps that are not done here, or another size.
    """
    nested = config.get("image_processor")
    config = config if nested is None else an_object(nested, where, "image_processor")
    given = {key: typed(config, key, entry, where) for key, entry in KEYS.items()}
    for key, entry in KEYS.items():
        if entry.only and given[key] not in entry.only:
            raise refused(where, key, given[key], "true" if entry.default else "false")
    factor = given["rescale_factor"]
    if factor is not None and not isclose(factor, 1 / 255, rel_tol=1e-6):
        raise refused(where, "rescale_factor", factor, "1/255")
    resample = given["resample"]
    if resample is not None and resample not in RESAMPLE:
        raise refused(where, "resample", resample, "2 or 3")
    mean, std = (_channels(given[key], where, key) for key in ("image_mean", "image_std"))
    if min(std or vision.std) <= 0:
        raise SpecError(f"{where}, image_std: {shown(std)} is not above 0 for every colour.")
    fields = {
        "resample": RESAMPLE[resample] if resample is not None else vision.resample,
        "crop": _crops(vision, given, where),
        "mean": mean or vision.mean,
        "std": std or vision.std,
    }
    changed: VisionSpec = VisionSpec.parse(vision.model_dump() | fields, where)
    return changed


def _crops(vision: VisionSpec, given: Mapping[str, Any], where: str) -> bool:
    """Whether the shorter edge is scaled and the middle cropped.

    A size with height and width scales both edges, so that nothing is left to crop. One number means what the
    family's processor takes it for.
    """
    size, asked = given["size"], given["do_center_crop"]
    scaled = not vision.crop
    if isinstance(size, dict):
        if set(size) not in ({"height", "width"}, {"shortest_edge"}):
            raise refused(where, "size", size, "height and width, or shortest_edge")
        scaled = "height" in size
    crop = vision.crop if asked is None else asked
    if not scaled and not crop:
        raise refused(where, "do_center_crop", asked, "true where only the shortest edge has a size")
    for key in ("size", "crop_size") if crop else ("size",):
        edges = given[key].values() if isinstance(given[key], dict) else [given[key] or vision.image_size]
        if set(edges) - {vision.image_size}:
            raise refused(where, key, given[key], str(vision.image_size))
    return not scaled


def _channels(values: Any, where: str, key: str) -> tuple[float, ...] | None:
    if values is not None and len(values) != NUM_CHANNELS:
        raise refused(where, key, values, f"{NUM_CHANNELS} numbers")
    return values and tuple(map(float, values))
