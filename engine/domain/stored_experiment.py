"""Stored experiments: read like other stored documents (`stored.py`), with runs that are not complete: a base
that may leave the method to a factor, and settings at paths.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.domain.experiment import Experiment
from engine.domain.stored import Document, Stored, read, schema_of

ASSUMED_UNTIL, ASSUMED = 5, "assumed_tokens"
"""The last version in which a parameter, which LIME alone had, gave the length that plans assume."""


def read_experiment(document: Document, where: str) -> Stored[Experiment]:
    return read(Experiment, document, where, upgrade_experiment)


def upgrade_experiment(document: Document) -> Document:
    """The present form of an experiment: the length that plans assume is the workload's."""
    base, factors = document.get("base"), document.get("factors")
    if schema_of(document) > ASSUMED_UNTIL or not (isinstance(base, dict) and isinstance(factors, list)):
        return document
    params, assumed = _parted(base.get("params"))
    if assumed is not None:
        base = {**base, "params": params, "workload": {ASSUMED: assumed, **base.get("workload", {})}}
    unsaid = None if assumed is None else 0
    return {**document, "base": base, "factors": [_factor(factor, unsaid) for factor in factors]}


def _factor(factor: Document, unsaid: int | None) -> Document:
    """A factor whose paths and levels give the length to the workload; `unsaid` is that of parameters which
    replace all of the base's and do not say it.
    """
    paths = [_path(path) for path in factor.get("paths", ())]
    levels = [_level(level, "params" in paths, unsaid) for level in factor.get("values", ())]
    return {**factor, "paths": paths, "values": levels}


def _level(level: Document, value_is_params: bool, unsaid: int | None) -> Document:
    value, given = level.get("value"), {_path(path): one for path, one in level.get("set", {}).items()}
    lengths = []
    if value_is_params:
        value, length = _parted(value)
        lengths.append(length)
    if "params" in given:
        given["params"], length = _parted(given["params"])
        lengths.append(length)
    if lengths:
        said = next((length for length in lengths if length is not None), unsaid)
        given = ({} if said is None else {f"workload.{ASSUMED}": said}) | given
    return {**level, "value": value, "set": given}


def _path(path: str) -> str:
    return f"workload.{ASSUMED}" if path == f"params.{ASSUMED}" else path


def _parted(params: Any) -> tuple[Any, Any]:
    """Parameters without the length, and the length; None where they do not say it."""
    if not isinstance(params, Mapping) or ASSUMED not in params:
        return params, None
    return {key: value for key, value in params.items() if key != ASSUMED}, params[ASSUMED]
