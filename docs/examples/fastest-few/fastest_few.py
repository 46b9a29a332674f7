"""Places layers on as few of the fastest devices as have the memory: fewer devices, fewer messages."""

from __future__ import annotations

from pydantic import Field

from edgeloom.method import ClusterSpec, ModelSpec, Params, PlacesLayers, Plan, PlanError, Workload
from edgeloom.method.demand import demand_of
from edgeloom.method.planning import largest_remainder, layer_s, source_first


class FastestFewParams(Params):
    at_least: int = Field(default=1, ge=1, le=64, description="Devices that take part, if there are so many.")


class FastestFew(PlacesLayers[FastestFewParams]):
    name = "fastest_few"
    title = "The fastest few"
    summary = "As few of the fastest devices as have the memory get layers, in proportion to their speed."
    Params = FastestFewParams

    def plan(
        self, cluster: ClusterSpec, model: ModelSpec, workload: Workload, params: FastestFewParams
    ) -> Plan:
        demand = demand_of(model, workload, self.batches_bursts)
        speeds = {rank: 1 / layer_s(cluster.devices[rank], model, demand) for rank in cluster.workers}
        fastest = sorted(speeds, key=lambda rank: (-speeds[rank], rank))
        for count in range(min(params.at_least, len(fastest)), len(fastest) + 1):
            chosen = [rank for rank in source_first(cluster) if rank in fastest[:count]]
            shares = largest_remainder(model.num_layers, [speeds[rank] for rank in chosen])
            layers = [(rank, number) for rank, number in zip(chosen, shares, strict=True) if number]
            try:
                return self.placed(cluster, model, workload, layers)
            except PlanError:
                if count == len(fastest):
                    raise
        raise PlanError(f"{self.name}: the cluster has no worker: let a device compute.")
