"""Makes the RunSpec of a point: the base as plain data, settings at paths, names looked up."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Sequence
from typing import Any

from engine.domain.cluster import ClusterSpec
from engine.domain.errors import SpecError
from engine.domain.experiment import RUN_KEYS
from engine.domain.model import ModelSpec, in_bits, in_int8, with_draft
from engine.domain.scenario import TIMES, Scenario
from engine.domain.spec import RunSpec, WeightsRef
from engine.domain.values import Value
from engine.domain.workload import Workload
from engine.experiments.design.cluster_edits import edit_cluster
from engine.experiments.design.paths import parse_path, set_at
from engine.experiments.design.sources import Sources
from engine.recorded.prompts import listed_prompts, traced
from engine.strategies.registry import origin_of, strategy

Setting = tuple[str, Any]
"""A path and the value that it gets."""

DEFAULT_TOKENS = 16
WHERE = "experiment"


OF_MODEL = ("model", "weights", "weight_bits", "activation_bits", "draft_model", "likely_acceptance")
"""Keys of a run that name its model."""


class Assembler:
    """Makes runs from one base. It keeps clusters and models, which many points share."""

    def __init__(self, base: dict[str, Any], sources: Sources):
        self.base = {key: value for key, value in base.items() if key != "schema"}
        self.sources = sources
        self.clusters: dict[str, ClusterSpec] = {}
        self.models: dict[str, tuple[ModelSpec, WeightsRef, WeightsRef]] = {}

    def spec(self, settings: Sequence[Setting], seed: int) -> RunSpec:
        """The run with `settings`, whichever order they have. Raises `SpecError`."""
        cluster = self._cluster(_below(settings, "cluster"))
        model, weights, draft_weights = self._model(_below(settings, *OF_MODEL))
        document = self._document(_below(settings, *(set(RUN_KEYS) - {"cluster", *OF_MODEL})))
        scenario = self._scenario(document.get("scenario"))
        scenario.check(cluster)
        name = document.get("strategy")
        if not isinstance(name, str):
            raise SpecError("strategy is missing: give it in base or as a factor.", [("strategy", "missing")])
        given = {
            **document,
            "cluster": cluster,
            "model": model,
            "weights": weights,
            "draft_weights": draft_weights,
            "scenario": scenario,
            "workload": self._workload(document.get("workload"), model, weights, seed),
            "params": normal_params(name, self._params(document.get("params", {}), cluster, model)),
            "method": origin_of(name),
            "seed": seed,
        }
        spec: RunSpec = RunSpec.parse(given, WHERE)
        return spec

    def _params(self, given: Any, cluster: ClusterSpec, model: ModelSpec) -> Any:
        """The parameters, with the plan read from its file where they name one."""
        if isinstance(given, dict) and isinstance(given.get("plan"), str):
            return {**given, "plan": self.sources.plan(given["plan"], cluster, model)}
        return given

    def _document(self, settings: Sequence[Setting]) -> dict[str, Any]:
        """All of the base but cluster and model, with `settings`."""
        kept = {key: value for key, value in self.base.items() if key not in ("cluster", *OF_MODEL)}
        document = copy.deepcopy(kept)
        if isinstance(document.get("scenario"), str) and not any(path == "scenario" for path, _ in settings):
            document["scenario"] = self.sources.scenario(document["scenario"]).model_dump(mode="json")
        for path, value in _shallow_first(settings):
            if path == "scenario" and isinstance(value, str):
                value = self.sources.scenario(value).model_dump(mode="json")
            set_at(document, path, copy.deepcopy(value))
            for other in other_times(path):
                set_at(document, other, None)
        return document

    def _cluster(self, settings: Sequence[Setting]) -> ClusterSpec:
        key = _key(settings)
        if key not in self.clusters:
            self.clusters[key] = self._edited_cluster(settings)
        return self.clusters[key]

    def _edited_cluster(self, settings: Sequence[Setting]) -> ClusterSpec:
        chosen = next((value for path, value in settings if path == "cluster"), self.base.get("cluster"))
        if chosen is None:
            raise SpecError("cluster is missing: give it in base or as a factor.", [("cluster", "missing")])
        found: ClusterSpec = (
            self.sources.cluster(chosen) if isinstance(chosen, str) else ClusterSpec.parse(chosen, "cluster")
        )
        edits = [setting for setting in settings if setting[0] != "cluster"]
        if not edits:
            return found
        document = found.model_dump(mode="json")
        for path, value in sorted(edits, key=lambda setting: _order_of_edit(setting[0])):
            if not edit_cluster(document, parse_path(path)[1:], value, self.sources):
                set_at({"cluster": document}, path, value)
        edited: ClusterSpec = ClusterSpec.parse(document, "cluster")
        return edited

    def _model(self, settings: Sequence[Setting]) -> tuple[ModelSpec, WeightsRef, WeightsRef]:
        """The model, its weights, and those of its draft model."""
        key = _key(settings)
        if key not in self.models:
            self.models[key] = self._edited_model(settings)
        return self.models[key]

    def _edited_model(self, settings: Sequence[Setting]) -> tuple[ModelSpec, WeightsRef, WeightsRef]:
        whole = dict(settings)
        chosen = whole.get("model", self.base.get("model"))
        weights = whole.get("weights", self.base.get("weights"))
        if chosen is None:
            raise SpecError("model is missing: give it in base or as a factor.", [("model", "missing")])
        reference: WeightsRef = WeightsRef()
        bits = self.base.get("weight_bits")
        if bits not in (None, 8, 4):
            raise SpecError(
                f"weight_bits is {bits!r}: expected 8 or 4, or none for the numbers of the model's dtype.",
                [("weight_bits", "expected 8 or 4")],
            )
        activation_bits = self.base.get("activation_bits", 0)
        if activation_bits not in (0, 8):
            raise SpecError(
                f"activation_bits is {activation_bits!r}: expected 8, or 0 for inputs as they are.",
                [("activation_bits", "expected 0 or 8")],
            )
        if isinstance(chosen, str):
            model, reference = self.sources.model(chosen, weights if isinstance(weights, str) else None)
        else:
            model = ModelSpec.parse(chosen, "model")
        if isinstance(weights, dict):
            reference = WeightsRef.parse(weights, "weights")
        model = in_bits(model, bits)
        model = in_int8(model) if activation_bits else model
        draft, draft_reference = None, WeightsRef()
        draft_model = whole.get("draft_model", self.base.get("draft_model"))
        if draft_model is not None:
            draft, draft_reference = self.sources.model(
                str(draft_model), "random" if weights == "random" else None
            )
        model = with_draft(model, draft, whole.get("likely_acceptance", self.base.get("likely_acceptance")))
        document = {"model": model.model_dump(mode="json"), "weights": reference.model_dump(mode="json")}
        edits = [setting for setting in settings if setting[0] not in OF_MODEL]
        for path, value in edits:
            set_at(document, path, value)
        if not edits:
            return model, reference, draft_reference
        edited: ModelSpec = ModelSpec.parse(document["model"], "model")
        return edited, WeightsRef.parse(document["weights"], "weights"), draft_reference

    def _scenario(self, given: Any) -> Scenario:
        scenario: Scenario = Scenario.parse(given or {}, "scenario")
        return scenario

    def _workload(self, given: Any, model: ModelSpec, weights: WeightsRef, seed: int) -> Workload:
        """The workload, with what the command line takes where nothing is given: 16 tokens in, and 16 out
        where there is a head. `trace` may be a file; `prompts`, a file or a list, become a trace.
        """
        document = dict(given or {})
        if trace := document.get("trace"):
            rows = self.sources.requests(trace) if isinstance(trace, str) else trace
            document |= {"trace": rows, "pattern": "trace"}
        if (prompts := document.pop("prompts", None)) is not None:
            many = self.sources.prompts(prompts) if isinstance(prompts, str) else listed_prompts(prompts)
            tokens, rate_per_s = document.pop("new_tokens", DEFAULT_TOKENS), document.pop("rate_per_s", None)
            document |= {"trace": traced(many, model, weights, tokens, rate_per_s, seed), "pattern": "trace"}
        if not document.get("trace"):
            if document.get("prompt") is None and "prompt_tokens" not in document and model.reads_text:
                document["prompt_tokens"] = DEFAULT_TOKENS
            document.setdefault("new_tokens", DEFAULT_TOKENS if model.has_head else 0)
        workload: Workload = Workload.parse(document, "workload")
        return workload


def normal_params(name: str, given: Any) -> dict[str, Any]:
    """The parameters of strategy `name` that differ from their defaults, so that runs that ask for the same
    have one hash. Raises `SpecError`.
    """
    params: Value = strategy(name).Params.parse(given, f"parameters of strategy {name}")
    changed: dict[str, Any] = params.model_dump(mode="json", exclude_defaults=True)
    return changed


def _below(settings: Iterable[Setting], *fields: str) -> list[Setting]:
    """The settings in these fields of a run."""
    return [setting for setting in settings if parse_path(setting[0])[0].name in fields]


def _shallow_first(settings: Iterable[Setting]) -> list[Setting]:
    """A whole value before what is changed in it."""
    return sorted(settings, key=lambda setting: len(parse_path(setting[0])))


def other_times(path: str) -> list[str]:
    """The paths of a change's other times, where `path` sets one of the three."""
    before, _, field = path.rpartition(".")
    is_time = parse_path(path)[0].name == "scenario" and field in TIMES
    return [f"{before}.{other}" for other in TIMES if other != field] if is_time else []


def _order_of_edit(path: str) -> int:
    """The place of an edit in their order: which devices there are, then what they are, then
    single fields.
    """
    steps = parse_path(path)
    if steps[1].name == "copies":
        return 0
    if steps[1].name in ("num_devices", "num_workers"):
        return 1
    return 2 if steps[-1].name == "preset" else 3


def _key(settings: Sequence[Setting]) -> str:
    return json.dumps(list(settings), sort_keys=True, default=str)
