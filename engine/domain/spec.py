"""RunSpec: everything that a run depends on. The same spec and seed give the same run."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Literal

from pydantic import Field

from engine.domain.cluster import ClusterSpec, ComputeModel
from engine.domain.host_times import HostProfile
from engine.domain.model import ModelSpec
from engine.domain.scenario import Scenario
from engine.domain.values import Positive, Value, Whole
from engine.domain.workload import Workload


class WeightsRef(Value):
    """The place of the weights. `random`: drawn from the seed; `directory`: a local Hugging Face directory.

    With random weights `directory` is the one that the model's config.json is from, "" if there is none.
    `digest` says what is in it: the server names models by that alone, and each worker has its own directory.
    """

    kind: Literal["random", "directory"] = "random"
    directory: str = ""
    digest: str = ""


class MethodOrigin(Value):
    """Where a strategy is from that does not come with EdgeLoom: an installed package, or a class of a file.

    `digest` is of its code. The code itself is never in here: a run names it, and whoever carries the run out
    has it already or refuses.
    """

    package: str = ""
    version: str = ""
    file: str = ""
    attribute: str = ""
    digest: str = ""

    def __str__(self) -> str:
        return f"{self.package} {self.version}" if self.package else f"{self.file}:{self.attribute}"

    @property
    def code(self) -> str:
        """What tells one code from another, wherever it is."""
        return f"{self.package} {self.version} {self.digest}".strip()


class RunSettings(Value):
    """What is the same in a complete run and in a request that names its cluster and its model.

    `dilation` is wall seconds per virtual second; "auto" chooses it, "native" switches pacing off, "nodes"
    also runs each device on the board that it is bound to.
    """

    name: str = ""
    workload: Workload = Workload(prompt_tokens=16)
    strategy: str
    params: dict[str, Any] = Field(default_factory=dict)
    scenario: Scenario = Scenario()
    compute_model: ComputeModel | None = Field(default=None, description="Overrides every device's own.")
    dilation: Positive | Literal["auto", "native", "nodes"] = "auto"
    board_links: Literal["drawn", "given"] = Field(
        default="drawn",
        description="Between boards: slow messages down to what is drawn, or take what the network gives.",
    )
    silence_s: Positive = Field(
        default=2.0, description="Virtual seconds of silence after which a peer counts as failed."
    )
    failover: Literal["replan", "stop"] = Field(
        default="replan",
        description="After a device failed: plan again over the others and go on, or end the run.",
    )
    seed: Whole = Field(default=0, ge=0)

    @property
    def is_paced(self) -> bool:
        """Whether operations take the time of the cluster's devices, and not that of who computes them."""
        return self.dilation not in ("native", "nodes")

    @property
    def on_nodes(self) -> bool:
        """Whether devices run on the boards that they are bound to."""
        return self.dilation == "nodes"

    @property
    def slows_links(self) -> bool:
        """Whether links between boards are slowed down to what is drawn."""
        return self.on_nodes and self.board_links == "drawn"


class RunSpec(RunSettings):
    """A run with everything resolved: only the strategy is given by name."""

    cluster: ClusterSpec
    model: ModelSpec
    weights: WeightsRef = WeightsRef()
    draft_weights: WeightsRef = Field(
        default=WeightsRef(),
        description="Those of the model's draft.",
        exclude_if=lambda weights: weights == WeightsRef(),
    )
    method: MethodOrigin | None = Field(
        default=None,
        description="Where the strategy is from, unless it comes with EdgeLoom.",
        exclude_if=lambda method: method is None,
    )
    profile: HostProfile | None = Field(default=None, description="This host's times, for `measured`.")

    @property
    def method_code(self) -> str:
        """The code of the method from outside that the run needs, "" for none."""
        return self.method.code if self.method else ""


def without_record(spec: RunSpec) -> RunSpec:
    """`spec` as it was before its run, if its workload is open."""
    if not spec.workload.is_open:
        return spec
    return spec.model_copy(update={"workload": spec.workload.model_copy(update={"trace": ()})})


NO_PART_OF_A_RUN: dict[str, Any] = {
    "name": True,
    "cluster": {"devices": {"__all__": {"price_usd", "price_source"}}},
}


def spec_digest(spec: RunSpec) -> str:
    """Hash of what a run depends on, 64 hexadecimal digits (SHA-256): equal for specs that ask for the same
    run.

    Its name and what its devices cost are left out, and so is every field that has its default, so that a
    field added later with a default changes no hash. Numbers count by value: 1 and 1.0 are the same. Weights
    whose `digest` is given count by that, wherever they are, and so does a method's file.
    """
    content = spec.model_dump(mode="json", exclude=NO_PART_OF_A_RUN, exclude_defaults=True)
    for name in ("weights", "draft_weights"):
        if getattr(spec, name).digest:
            content[name].pop("directory", None)
    if spec.method is not None:
        content["method"].pop("file", None)
    return digest_of(content)


def digest_of(content: Any) -> str:
    """Hash of plain data, 64 hexadecimal digits (SHA-256); keys have no order, and 1 and 1.0 are the same."""
    text = json.dumps(_plain_numbers(content), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _plain_numbers(value: Any) -> Any:
    """`value` with whole numbers as integers."""
    if isinstance(value, dict):
        return {key: _plain_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain_numbers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
