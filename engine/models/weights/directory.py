"""Reads a local Hugging Face model directory: its config, and which file has which tensor.

It never runs code of the directory.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from engine.domain.errors import SpecError
from engine.domain.model import ModelSpec
from engine.models.families.hf_config import spec_of_config
from engine.models.inputs.processor import FILES, adapted

PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt")
CONFIG = "config.json"
SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
MAX_JSON_BYTES = 20_000_000
"""A larger config or index is refused. Those of the largest models have less than 1 MB; parsed, a file takes
many times its size.
"""


def read_spec(directory: Path, name: str) -> ModelSpec:
    """The ModelSpec in `directory`'s config.json. Raises `SpecError` with the file and the reason."""
    if not directory.is_dir():
        raise SpecError(f"{directory}: no such model directory: give one with config.json and safetensors.")
    files = sorted(path.name for path in directory.glob("*.gguf"))
    if files and not (directory / CONFIG).exists():
        raise SpecError(f"{directory}: has {files[0]} and no {CONFIG}: give that file as the model.")
    spec = spec_of_config(name, read_json(directory / CONFIG), str(directory / CONFIG))
    file = next((directory / name for name in FILES if (directory / name).is_file()), None)
    if spec.vision is None or file is None:
        return spec
    return spec.model_copy(update={"vision": adapted(spec.vision, read_json(file), str(file))})


def weight_files(directory: Path) -> tuple[Path, ...]:
    """The safetensors files of `directory`: the single one, or those of the index.

    Raises `SpecError`, also for directories that only have pickled weights: loading a pickle runs code.
    """
    if (directory / SINGLE).is_file():
        return (directory / SINGLE,)
    if (directory / INDEX).is_file():
        placed = read_json(directory / INDEX).get("weight_map")
        if not isinstance(placed, dict) or not placed:
            raise SpecError(f"{directory / INDEX}, weight_map: expected an object: tensor name → file name.")
        names = sorted({str(name) for name in placed.values()})
        for name in names:
            if Path(name).name != name or not (directory / name).is_file():
                raise SpecError(f"{directory / INDEX} names {name}, which is no file of the directory.")
        return tuple(directory / name for name in names)
    pickles = sorted(path.name for pattern in PICKLES for path in directory.glob(pattern))
    if pickles:
        raise SpecError(
            f"{directory}: {pickles[0]} is a pickle, which can run code when it is loaded, and is refused: "
            f"convert the weights to {SINGLE}."
        )
    raise SpecError(f"{directory}: has neither {SINGLE} nor {INDEX}: download the safetensors weights.")


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object; raises `SpecError` if there is none."""
    try:
        if path.stat().st_size > MAX_JSON_BYTES:
            raise SpecError(f"{path}: is larger than {MAX_JSON_BYTES:,} bytes, the limit for a JSON file.")
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SpecError(f"{path}: no such file: a model directory needs it.") from None
    except (OSError, ValueError) as error:
        raise SpecError(f"{path}: cannot be read as JSON: {error}.") from error
    except RecursionError:
        raise SpecError(f"{path}: cannot be read as JSON: it is nested too deeply.") from None
    if not isinstance(data, dict):
        raise SpecError(f"{path}: holds a {type(data).__name__}, expected a JSON object.")
    return data
