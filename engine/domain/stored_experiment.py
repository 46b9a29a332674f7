"""Stored experiments: read like other stored documents (`stored.py`), with runs that are not complete: a base
that may leave the method to a factor, and settings at paths.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.domain.experiment import Experiment
from engine.domain.stored import Document, Stored, read, schema_of, without_caches

UNTIL = 5
"""The last version in which methods had these parameters, which are the workload's now."""
ASSUMED = "assumed_tokens"
"""Of LIME alone: the length that plans assume."""
DECODE, CACHES = "decode", "workload.kv_cache"
"""Of EdgeFormer: whether there are KV caches. Voltage has a parameter of this name, too."""


def read_experiment(document: Document, where: str) -> Stored[Experiment]:
    return read(Experiment, document, where, upgrade_experiment)


def upgrade_experiment(document: Document) -> Document:
    """The present form of an experiment: the length that plans assume, and whether there are KV caches, are
    the workload's.
    """
    base, factors = document.get("base"), document.get("factors")
    if schema_of(document) > UNTIL or not (isinstance(base, dict) and isinstance(factors, list)):
        return document
    return _with_caches(_with_length(document))


# The length that plans assume ---------------------------------------------------------------------
def _with_length(document: Document) -> Document:
    base, factors = document["base"], document["factors"]
    params, assumed = _parted(base.get("params"), ASSUMED)
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
        value, length = _parted(value, ASSUMED)
        lengths.append(length)
    if "params" in given:
        given["params"], length = _parted(given["params"], ASSUMED)
        lengths.append(length)
    if lengths:
        said = next((length for length in lengths if length is not None), unsaid)
        given = ({} if said is None else {f"workload.{ASSUMED}": said}) | given
    return {**level, "value": value, "set": given}


def _path(path: str) -> str:
    return f"workload.{ASSUMED}" if path == f"params.{ASSUMED}" else path


# Whether there are KV caches ----------------------------------------------------------------------
def _with_caches(document: Document) -> Document:
    base, factors = document["base"], document["factors"]
    named = {_strategy_of(level, factor, "") for factor in factors for level in factor.get("values", ())}
    strategy = base.get("strategy") or ("edgeformer" if "edgeformer" in named else "")
    workload = base.get("workload", {})
    lacking = without_caches("recompute", workload)
    params, decode = _parted(base.get("params"), DECODE) if strategy == "edgeformer" else (None, None)
    if decode is not None:
        base = {**base, "params": params, "workload": {**without_caches(decode, workload), **workload}}
    unsaid = True if decode == "recompute" and lacking else None
    changed = [_factor_of_caches(factor, strategy, lacking, unsaid) for factor in factors]
    return {**document, "base": base, "factors": changed}


def _factor_of_caches(factor: Document, strategy: str, lacking: Document, unsaid: bool | None) -> Document:
    """A factor whose levels give the caches to the workload, and keep their values, which are coordinates.
    `lacking` is what a workload without caches says, `unsaid` is what is said with parameters which replace
    all of the base's.
    """
    paths, levels = factor.get("paths", ()), []
    for level in factor.get("values", ()):
        given, value, decode = dict(level.get("set", {})), level.get("value"), None
        if _strategy_of(level, factor, strategy) == "edgeformer":
            if strategy == "edgeformer" and f"params.{DECODE}" in paths:
                decode = value
            decode = given.pop(f"params.{DECODE}", decode)
            if "params" in given:
                given["params"], decode = _parted(given["params"], DECODE)
            if "params" in paths:
                value, decode = _parted(value, DECODE)
        if decode is not None:
            given[CACHES] = not lacking or decode != "recompute"
        elif unsaid is not None and ("params" in given or "params" in paths):
            given[CACHES] = unsaid
        levels.append({**level, "value": value, "set": given})
    rest = [path for path in paths if strategy != "edgeformer" or path != f"params.{DECODE}"]
    return {**factor, "paths": rest, "values": levels}


def _strategy_of(level: Document, factor: Document, strategy: str) -> Any:
    if "strategy" in factor.get("paths", ()):
        return level.get("value")
    return level.get("set", {}).get("strategy", strategy)


def _parted(params: Any, name: str) -> tuple[Any, Any]:
    """Parameters without this one, and its value; None where they do not say it."""
    if not isinstance(params, Mapping) or name not in params:
        return params, None
    return {key: value for key, value in params.items() if key != name}, params[name]
