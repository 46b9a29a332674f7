"""Requests for runs, and how one is resolved to a `RunSpec`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from engine.domain.cluster import ClusterSpec
from engine.domain.errors import SpecError
from engine.domain.model import (
    LIKELY_ACCEPTANCE,
    ModelSpec,
    QuantisedBits,
    computed_bits,
    in_int8,
    with_draft,
)
from engine.domain.spec import RunSettings, RunSpec, WeightsRef
from engine.domain.values import Fraction, Value, Whole
from engine.models.inputs.pictures import of_base64
from engine.runs.on_nodes import check_on_nodes
from engine.strategies.registry import STRATEGIES, origin_of, strategy, why_not
from topologies.layout import enabled
from webapp.base import budgets
from webapp.base.files import read_picture
from webapp.clusters import services as clusters
from webapp.clusters.catalogue import resolve_model
from webapp.clusters.nodes import boards_of


class Pair(Value):
    """A model by its name, and exactly one of `cluster_id` (a stored cluster, without what is switched off in
    it) and `cluster`.
    """

    cluster_id: Whole | None = None
    cluster: ClusterSpec | None = None
    model: str
    weight_bits: QuantisedBits | None = Field(
        default=None, description="Bits to which the model's matrices are rounded; none: those of its dtype."
    )
    activation_bits: Literal[0, 8] | None = Field(
        default=0,
        description="With weight_bits 8: those of numbers that products of layers take in; else its dtype's.",
    )
    draft_model: str | None = Field(
        default=None, description="The name of a model that drafts tokens for it; none: there is none."
    )


class RunRequest(RunSettings, Pair):
    """A run that a person asks for."""

    name: str = Field(default="", max_length=100)
    notes: str = ""
    tags: tuple[str, ...] = ()
    weights: Literal["random"] | None = None
    likely_acceptance: Fraction = Field(
        default=LIKELY_ACCEPTANCE,
        description="Predictions take each drafted token to be the model's own with this probability.",
    )


def spec_of(request: RunRequest) -> RunSpec:
    """The complete run that a person asked for. Raises `SpecError` with paths into the request, also for one
    that is too large to be predicted.
    """
    budgets.check_labels(request.name, request.notes, request.tags)
    budgets.check_workload(request.workload)
    budgets.check_scenario(request.scenario)
    cluster = cluster_of(request)
    budgets.check_cluster(cluster, "cluster")
    model, weights = _model_of(request, request.weights)
    model, draft_weights = _with_draft(model, request, request.weights, request.likely_acceptance)
    check_strategy(request)
    workload = request.workload
    if workload.image is not None and model.vision is not None:  # whatever its size, as the model sees it
        image = read_picture(model.vision, of_base64(workload.image, "workload.image"), "workload.image")
        workload = workload.model_copy(update={"image": image})
    try:
        request.scenario.check(cluster)
    except SpecError as error:
        raise SpecError(f"scenario: {error}", [("scenario", str(error))]) from error
    spec = RunSpec(
        cluster=cluster,
        model=model,
        weights=weights,
        draft_weights=draft_weights,
        method=origin_of(request.strategy),
        **settings_of(request) | {"workload": workload},
    )
    if spec.on_nodes:
        check_on_nodes(spec)
        boards_of(cluster)
    budgets.check_prediction(spec)
    return spec


def request_of(spec: RunSpec, name: str, tags: tuple[str, ...] = ()) -> RunRequest:
    """The request of which `spec_of` makes `spec`, with another name."""
    return RunRequest(
        tags=tags,
        cluster=spec.cluster,
        model=spec.model.name,
        weights="random" if spec.weights.kind == "random" else None,
        weight_bits=computed_bits(spec.model),
        activation_bits=spec.model.activation_bits,
        draft_model=spec.model.draft.name if spec.model.draft else None,
        likely_acceptance=spec.model.likely_acceptance,
        **settings_of(spec) | {"name": name},
    )


def settings_of(run: RunSettings) -> dict[str, Any]:
    return {name: getattr(run, name) for name in RunSettings.model_fields}


def reasons_against(pair: Pair) -> dict[str, str | None]:
    """For each strategy why it cannot run this model on this cluster; None where it can. Raises
    `SpecError`.
    """
    cluster = cluster_of(pair)
    budgets.check_cluster(cluster, "cluster")
    model, _ = _model_of(pair, "random")
    model, _ = _with_draft(model, pair, "random")
    return {chosen.name: why_not(chosen, cluster, model) for chosen in STRATEGIES}


def _model_of(pair: Pair, weights: Literal["random"] | None) -> tuple[ModelSpec, WeightsRef]:
    """The model in its bits, and its weights. Raises `SpecError` if there is none, or none in these bits."""
    model, reference = resolve_model(pair.model, weights, pair.weight_bits)
    return in_int8(model) if pair.activation_bits else model, reference


def _with_draft(
    model: ModelSpec, pair: Pair, weights: Literal["random"] | None, likely_acceptance: float | None = None
) -> tuple[ModelSpec, WeightsRef]:
    """The model with its draft, and the weights of that. Raises `SpecError` if the two do not go together."""
    try:
        if pair.draft_model is None:
            return with_draft(model, None, likely_acceptance), WeightsRef()
        draft, draft_weights = resolve_model(pair.draft_model, weights)
        return with_draft(model, draft, likely_acceptance), draft_weights
    except SpecError as error:
        raise SpecError(str(error), [("draft_model", str(error))]) from error


def cluster_of(request: Pair) -> ClusterSpec:
    if request.cluster is not None and request.cluster_id is None:
        return request.cluster
    if request.cluster is not None or request.cluster_id is None:
        sentence = "A run needs one cluster: give either cluster_id or cluster."
        raise SpecError(sentence, [("cluster_id", "give this or cluster")])
    stored = clusters.find(request.cluster_id)
    try:
        return enabled(clusters.spec_of(stored), clusters.layout_of(stored))
    except SpecError as error:
        raise SpecError(str(error), [("cluster_id", str(error))]) from error


def check_strategy(request: RunRequest) -> None:
    try:
        chosen = strategy(request.strategy)
    except SpecError as error:
        raise SpecError(str(error), [("strategy", "unknown")]) from error
    try:
        chosen.Params.parse(request.params, f"parameters of {request.strategy}")
    except SpecError as error:
        fields = [(f"params.{path}", message) for path, message in error.fields]
        raise SpecError(str(error), fields) from error
