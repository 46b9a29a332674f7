"""Leaves out of a study what only says whose machine it was made on: folders, and with them user names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

from engine.domain.errors import SpecError
from engine.domain.experiment import Experiment
from engine.domain.spec import RunSpec, spec_digest
from engine.experiments.design.written_out import RECORDED, without_folder

FOLDERS = re.compile(r"(?<![\w.:/~-])~?(?:/[^\s/:'\"()]+)+/(?=[^\s/:'\"()])")
"""The folders before a file's name; not those of an address such as https://…"""


def without_folders(sentence: str) -> str:
    """The sentence with every absolute path as the name of its file."""
    return FOLDERS.sub("", sentence)


def own_paths(experiment: Experiment) -> dict[str, str]:
    """What in an experiment is a place on this machine, and what stands for it in a study, no two the same:
    a model's directory or a file by its last part, recorded files that a level names with link and options,
    too. Other texts, as prompts, stay.
    """
    texts = dict.fromkeys(_texts(experiment.model_dump(mode="json")))
    short = {text: _name_of(text) for text in texts}
    short |= {
        level.value: without_folder(level.value)
        for factor in experiment.factors
        for level in factor.values
        if isinstance(level.value, str) and not level.set.keys().isdisjoint(RECORDED)
    }
    found: dict[str, str] = {}
    for text, name in short.items():
        if name != text:
            names = (f"{name} ({number})" if number > 1 else name for number in count(1))
            found[text] = next(one for one in names if one not in texts and one not in found.values())
    return found


def without_own_paths(data: Any, names: Mapping[str, str]) -> Any:
    """Plain data with `names` in place of what they stand for, also where a condition quotes it."""
    if isinstance(data, dict):
        return {
            key: _in_conditions(value, names) if key == "where" else without_own_paths(value, names)
            for key, value in data.items()
        }
    if isinstance(data, list):
        return [without_own_paths(value, names) for value in data]
    return names.get(data, data) if isinstance(data, str) else data


def _in_conditions(data: Any, names: Mapping[str, str]) -> Any:
    if isinstance(data, list):
        return [_in_conditions(value, names) for value in data]
    if isinstance(data, str):
        for text in sorted(names, key=len, reverse=True):
            data = data.replace(text, names[text])
    return data


def _texts(data: Any) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, dict | list):
        for value in data.values() if isinstance(data, dict) else data:
            yield from _texts(value)


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
    changes: dict[str, Any] = {
        name: getattr(spec, name).model_copy(update={"directory": ""})
        for name in ("weights", "draft_weights")
    }
    if spec.method is not None and spec.method.file:
        changes["method"] = spec.method.model_copy(update={"file": Path(spec.method.file).name})
    found = spec.model_copy(update=changes)
    if spec_digest(found) != spec_digest(spec):
        raise SpecError(
            f"{spec.model.name}: its weights are named by a directory alone: name the model, or its "
            "directory, as `model`, and leave out `weights`."
        )
    return found
