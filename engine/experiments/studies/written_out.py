"""An experiment whose clusters are written out in it, for a machine that has others of their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.domain.cluster import ClusterSpec
from engine.domain.experiment import Experiment
from engine.experiments.studies.contents import CLUSTER_PATH


def with_clusters(experiment: Experiment, clusters: Mapping[str, ClusterSpec]) -> Experiment:
    """The experiment with each of `clusters` in place of its name. Coordinates stay: a level keeps its value,
    and sets the cluster besides. Raises `SpecError`.
    """
    documents = {name: cluster.model_dump(mode="json") for name, cluster in clusters.items()}

    def written(value: Any) -> Any:
        return documents.get(value, value) if isinstance(value, str) else value

    document = experiment.model_dump(mode="json")
    base = document["base"]
    if CLUSTER_PATH in base:
        base[CLUSTER_PATH] = written(base[CLUSTER_PATH])
    for factor in document["factors"]:
        chooses = CLUSTER_PATH in factor["paths"]
        factor["paths"] = [path for path in factor["paths"] if path != CLUSTER_PATH]
        for level in factor["values"]:
            if chooses and CLUSTER_PATH not in level["set"]:
                level["set"][CLUSTER_PATH] = level["value"]
            if CLUSTER_PATH in level["set"]:
                level["set"][CLUSTER_PATH] = written(level["set"][CLUSTER_PATH])
    found: Experiment = Experiment.parse(document, experiment.name)
    return found
