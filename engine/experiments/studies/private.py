"""Leaves out of a study what only says whose machine it was made on: folders, and with them user names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from engine.domain.errors import SpecError
from engine.domain.spec import RunSpec, spec_digest

FOLDERS = re.compile(r"(?<![\w.:/~-])~?(?:/[^\s/:'\"()]+)+/(?=[^\s/:'\"()])")
"""The folders before a file's name; not those of an address such as https://…"""


def without_folders(sentence: str) -> str:
    """The sentence with every absolute path as the name of its file."""
    return FOLDERS.sub("", sentence)


def without_own_paths(data: Any) -> Any:
    """Plain data in which a text that is the absolute path of something here is its last part: a model's
    directory, or a file. Other texts, as prompts, stay.
    """
    if isinstance(data, dict):
        return {key: without_own_paths(value) for key, value in data.items()}
    if isinstance(data, list):
        return [without_own_paths(value) for value in data]
    return _name_of(data) if isinstance(data, str) else data


def _name_of(text: str) -> str:
    if not text.startswith(("/", "~")) or len(text) > 4096 or "\0" in text:
        return text
    file, colon, attribute = text.partition(".py:")
    path = Path(f"{file}.py" if colon else text)
    try:
        is_here = path.expanduser().exists()
    except (OSError, RuntimeError):
        return text
    return f"{path.name}{colon and ':'}{attribute}" if is_here else text


def without_places(spec: RunSpec) -> RunSpec:
    """The same run, whose model is named by its digest and whose method's file by its name. Raises
    `SpecError` if the model has no digest.
    """
    changes: dict[str, Any] = {"weights": spec.weights.model_copy(update={"directory": ""})}
    if spec.method is not None and spec.method.file:
        changes["method"] = spec.method.model_copy(update={"file": Path(spec.method.file).name})
    found = spec.model_copy(update=changes)
    if spec_digest(found) != spec_digest(spec):
        raise SpecError(
            f"{spec.model.name}: its weights are named by a directory alone: name the model, or its "
            "directory, as `model`, and leave out `weights`."
        )
    return found
