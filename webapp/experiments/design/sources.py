"""The names that an experiment on the server may use, and the limits that its points must keep.

Nothing that a person sends is ever opened as a file: clusters are drawn or shipped ones, models are those of
the catalogue and of `MODELS_DIR`.
"""

from __future__ import annotations

from functools import cache

import topologies
from engine.domain.cluster import ClusterSpec
from engine.domain.errors import SpecError
from engine.domain.model import ModelSpec
from engine.domain.spec import RunSpec, WeightsRef
from engine.experiments.design.sources import Sources
from engine.runs.on_nodes import check_on_nodes, on_nodes
from topologies.layout import enabled
from topologies.traces import scenario_of
from webapp.base import budgets
from webapp.clusters import services as clusters
from webapp.clusters.catalogue import resolve_model
from webapp.clusters.models import Cluster
from webapp.clusters.nodes import boards_of
from webapp.experiments.points import PREDICTED


def sources() -> Sources:
    """Looks up every name once."""
    return Sources(
        cluster=cache(cluster), preset=cache(preset), model=cache(model), scenario=cache(scenario_of)
    )


def cluster(name: str) -> ClusterSpec:
    """A drawn cluster without what is switched off in it, else a shipped one. Raises `SpecError`."""
    stored = Cluster.objects.filter(name=name).first()
    if stored is not None:
        return enabled(clusters.spec_of(stored), clusters.layout_of(stored))
    if name in topologies.names() or name in topologies.paper_names():
        return topologies.load(name)
    known = sorted({*topologies.names(), *Cluster.objects.values_list("name", flat=True)})
    raise SpecError(
        f"There is no cluster {name[:40]}: choose one of {', '.join(known)}.",
        [("base.cluster", "unknown cluster")],
    )


def preset(name: str) -> topologies.DevicePreset:
    return topologies.preset(name)


def model(name: str, weights: str | None) -> tuple[ModelSpec, WeightsRef]:
    if weights not in (None, "random"):
        raise SpecError(
            f'weights is {weights[:40]!r}: expected "random", or nothing for the model\'s own.',
            [("base.weights", "expected random")],
        )
    return resolve_model(name, weights)


class Limits:
    """Says why a point is too large for the server, or would read files; remembers the models it has seen."""

    def __init__(self) -> None:
        self.weights: dict[tuple[str, str], WeightsRef] = {}

    def problem_of(self, spec: RunSpec, world: str) -> str:
        """Why a point may not run in this world, as a sentence; "" if it may."""
        try:
            budgets.check_cluster(spec.cluster, "cluster")
            budgets.check_workload(spec.workload)
            budgets.check_scenario(spec.scenario)
            self.check_weights(spec)
            (budgets.check_prediction if world in PREDICTED else budgets.check_emulation)(spec)
            if world == "nodes":
                check_on_nodes(on_nodes(spec))
                boards_of(spec.cluster, must_be_there=False)
        except SpecError as error:
            return str(error)
        return ""

    def check_weights(self, spec: RunSpec) -> None:
        """Check that the weights are in the own directory of each model; raises `SpecError`."""
        self._check_weights_of(spec.model.name, spec.weights)
        if spec.model.draft is not None or spec.draft_weights != WeightsRef():
            self._check_weights_of(spec.model.draft.name if spec.model.draft else "", spec.draft_weights)

    def _check_weights_of(self, name: str, weights: WeightsRef) -> None:
        if weights == WeightsRef():
            return
        key = (name, weights.kind)
        if key not in self.weights:
            try:
                self.weights[key] = resolve_model(key[0], "random" if key[1] == "random" else None)[1]
            except SpecError:
                self.weights[key] = WeightsRef()
        if weights != self.weights[key]:
            raise SpecError(
                f"The weights of {name} are said to be in a directory of the server: name a model "
                "of the catalogue, or use random weights.",
                [("base.weights", "a directory")],
            )
