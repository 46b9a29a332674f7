"""What an experiment may name: clusters, device presets, models and scenarios, looked up by functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from engine.domain.cluster import ClusterSpec, DeviceSpec
from engine.domain.errors import SpecError
from engine.domain.model import ModelSpec
from engine.domain.scenario import Scenario
from engine.domain.spec import WeightsRef
from engine.domain.workload import TracedRequest
from engine.models.catalogue import resolve
from engine.models.weights.manifest import with_digest
from engine.recorded.prompts import Prompt


def no_scenarios(name: str) -> Scenario:
    """Refuse every name: for callers without named scenarios."""
    raise SpecError(
        f"scenario {name}: there are no scenarios by name here: write it out.", [("scenario", name)]
    )


def no_plan_files(name: str, cluster: ClusterSpec, model: ModelSpec) -> dict[str, Any]:
    """Refuse every name: for callers that open no files by name."""
    raise SpecError(
        f"params.plan is {name[:40]!r}: no file is opened by its name here: write the plan out, as "
        '{"devices": [{"device": …}]}.',
        [("params.plan", "expected a plan")],
    )


def model_and_content(name: str, weights: str | None) -> tuple[ModelSpec, WeightsRef]:
    """A model of the catalogue or of a directory, with the digest of its files: other files in the same place
    make other points, and the same files elsewhere make the same. Raises `SpecError`.
    """
    model, reference = resolve(name, weights)
    return model, with_digest(reference)


def no_requests(name: str) -> tuple[TracedRequest, ...]:
    """Refuse every name: for callers that open no files by name."""
    raise SpecError(
        f"workload.trace is {name[:40]!r}: no file is opened by its name here: write the requests out.",
        [("base.workload.trace", "expected a list of requests")],
    )


def no_prompts(name: str) -> tuple[Prompt, ...]:
    """Refuse every name: for callers that open no files by name."""
    raise SpecError(
        f"workload.prompts is {name[:40]!r}: no file is opened by its name here: list the prompts, as "
        '[{prompt = "Hello"}].',
        [("base.workload.prompts", "expected a list of prompts")],
    )


class Sources(NamedTuple):
    """Every function takes a name and raises `SpecError` for an unknown one. Nothing else looks up names, so
    a server gives functions that never open a file by a name that a person has sent.
    """

    cluster: Callable[[str], ClusterSpec]
    preset: Callable[[str], DeviceSpec]
    model: Callable[[str, str | None], tuple[ModelSpec, WeightsRef]] = model_and_content
    """Name and weights ("random", a directory, or None for the model's own) → the model and its weights."""
    scenario: Callable[[str], Scenario] = no_scenarios
    plan: Callable[[str, ClusterSpec, ModelSpec], dict[str, Any]] = no_plan_files
    """A file, and the cluster and the model that it divides → the parameter `plan`."""
    requests: Callable[[str], tuple[TracedRequest, ...]] = no_requests
    """A file of recorded requests → the workload's `trace`."""
    prompts: Callable[[str], tuple[Prompt, ...]] = no_prompts
    """A file of prompts → what becomes the workload's `trace` with the model's tokenizer."""
