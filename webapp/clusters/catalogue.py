"""GET /api/catalogue: the strategies, models, shapes, and presets of devices, links and disks."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any, Literal

from django.conf import settings
from django.http import HttpRequest
from ninja import Router, Schema
from pydantic import Field

import topologies
from engine.domain.command_name import COMMAND
from engine.domain.errors import SpecError
from engine.domain.model import ModelSpec, QuantisedBits, in_bits
from engine.domain.spec import WeightsRef
from engine.models import catalogue
from engine.models.inputs.chat import has_template
from engine.ops.sizes import model_bytes, num_parameters
from engine.reports import metrics
from engine.reports.metric import Metric
from engine.strategies.registry import STRATEGIES, origin_of
from topologies.shapes import SHAPES
from webapp.clusters import nodes
from webapp.clusters.machines import machines
from webapp.clusters.model_library import portable
from webapp.clusters.models import StoredModel

router = Router(tags=["catalogue"])


class StrategyOut(Schema):
    name: str
    title: str
    paper: str
    is_baseline: bool
    summary: str
    lossless: bool
    origin: str = Field(description="The package and version it is from; empty: it comes with EdgeLoom.")
    params_schema: dict[str, Any]


class ModelOut(Schema):
    name: str
    title: str
    family: str
    num_layers: int
    hidden_size: int
    num_heads: int
    num_kv_heads: int
    num_parameters: int
    weight_bytes: int
    trained: bool
    causal: bool
    has_head: bool
    reads_text: bool
    vocab_size: int
    chats: bool
    image_rows: int
    num_classes: int
    max_positions: int
    source: str


class CatalogueOut(Schema):
    strategies: list[StrategyOut]
    models: list[ModelOut]
    presets: list[topologies.DevicePreset]
    link_presets: list[topologies.LinkPreset]
    disk_presets: list[topologies.DiskPreset]
    shapes: list[str]


@router.get("/catalogue", response=CatalogueOut)
def get_catalogue(request: HttpRequest) -> CatalogueOut:
    return CatalogueOut(
        strategies=strategies(),
        models=models(),
        presets=[*topologies.presets(), *nodes.devices(), *machines()],
        link_presets=list(topologies.link_presets()),
        disk_presets=list(topologies.disk_presets()),
        shapes=list(SHAPES),
    )


@router.get("/metrics", response=list[Metric])
def list_metrics(request: HttpRequest) -> list[Metric]:
    """Every figure with title and unit, in the order in which people look for it."""
    return list(metrics.METRICS)


@cache  # they come with the program: making all schemas takes 60 ms
def strategies() -> list[StrategyOut]:
    return [
        StrategyOut(
            name=strategy.name,
            title=strategy.title,
            paper=strategy.paper,
            is_baseline=strategy.is_baseline,
            summary=strategy.summary,
            lossless=strategy.lossless,
            origin=str(origin_of(strategy.name) or ""),
            params_schema=strategy.Params.model_json_schema(),
        )
        for strategy in STRATEGIES
    ]


@lru_cache(maxsize=1)  # until one is fetched: counting the parameters of all takes 90 ms
def shipped_models(names: tuple[str, ...]) -> list[ModelOut]:
    """The models of the catalogue that are on this machine, which are those with these names."""
    found = []
    for row in catalogue.rows():
        model, weights = catalogue.resolve(row.name, None if row.trained else "random")
        found.append(model_out(model, row.title, row.trained, chats=has_template(weights)))
    return found


def models() -> list[ModelOut]:
    """The catalogue's models, those that people added, then the directories in `MODELS_DIR`."""
    shipped = catalogue.names()
    found = shipped_models(shipped).copy()
    added = StoredModel.objects.all()
    found += [model_out(ModelSpec.parse(row.spec, row.name), row.name, trained=True) for row in added]
    for directory in sorted(settings.MODELS_DIR.glob("*/config.json")):
        name = directory.parent.name
        if name in shipped:
            continue
        trained = any(directory.parent.glob("*.safetensors"))
        try:
            found.append(model_out(resolve_model(name, "random")[0], name, trained, name=name))
        except SpecError:
            continue  # `resolve_model` refuses it by name, with the reason
    return found


def model_out(model: ModelSpec, title: str, trained: bool, name: str = "", chats: bool = True) -> ModelOut:
    """chats: whether it has a chat template, or may have one."""
    return ModelOut(
        name=name or model.name,
        title=title,
        family=model.family,
        num_layers=model.num_layers,
        hidden_size=model.hidden_size,
        num_heads=model.num_heads,
        num_kv_heads=model.num_kv_heads,
        num_parameters=num_parameters(model),
        weight_bytes=model_bytes(model),
        trained=trained,
        causal=model.causal,
        has_head=model.has_head,
        reads_text=model.reads_text,
        vocab_size=model.vocab_size,
        chats=chats and trained and model.has_head and model.vision is None,
        image_rows=model.image_rows,
        num_classes=model.num_classes,
        max_positions=model.max_positions,
        source=model.source,
    )


def resolve_model(
    name: str, weights: str | None, weight_bits: QuantisedBits | None = None
) -> tuple[ModelSpec, WeightsRef]:
    """A model and its weights by name only: the browser may name what is in the catalogue, what people added,
    or what is in `MODELS_DIR`, not any path. The weights are named by digest: every machine finds them
    itself. `weight_bits`: its matrices are rounded to so many bits.

    Raises `SpecError` naming the known models.
    """
    model, reference = _named_model(name, weights)
    return in_bits(model, weight_bits), reference


def _named_model(name: str, weights: str | None) -> tuple[ModelSpec, WeightsRef]:
    if name in catalogue.names():
        return _portable(*catalogue.resolve(name, weights))
    added = StoredModel.objects.filter(name=name).first()
    if added is not None:
        kind: Literal["random", "directory"] = "random" if weights == "random" else "directory"
        return ModelSpec.parse(added.spec, name), WeightsRef(kind=kind, digest=added.digest)
    local = {path.parent.name: path.parent for path in settings.MODELS_DIR.glob("*/config.json")}
    if name in local:
        return _portable(*catalogue.resolve(str(local[name]), weights))
    others = StoredModel.objects.values_list("name", flat=True)
    known = ", ".join([*catalogue.names(), *others, *sorted(local)])
    raise SpecError(
        f"There is no model {name}: choose one of {known}, or add a Hugging Face directory with "
        f"{COMMAND} models add DIR.",
        [("model", f"unknown: {name}")],
    )


def _portable(model: ModelSpec, weights: WeightsRef) -> tuple[ModelSpec, WeightsRef]:
    return model, portable(weights)
