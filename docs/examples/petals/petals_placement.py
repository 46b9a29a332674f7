"""Petals (Borzunov et al., NeurIPS 2023): servers join one after the other, each where the model is served
worst, and a client takes the fastest chain of them.

Servers that the chain leaves out hold blocks for other clients, of which a run has none.
"""

from __future__ import annotations

from pydantic import Field

from edgeloom.method import (
    ClusterSpec,
    ModelSpec,
    Params,
    PlacesLayers,
    Plan,
    PlanError,
    Workload,
    payload_bytes,
)
from edgeloom.method.demand import Demand, demand_of, hidden
from edgeloom.method.planning import layer_s, message_s

Chain = tuple[tuple[int, int], ...]
"""Pairs of a server and how many of the next blocks it computes."""


class PetalsParams(Params):
    blocks: int = Field(default=0, ge=0, le=200, description="Most blocks of a server; 0: as its memory has.")


class Petals(PlacesLayers[PetalsParams]):
    name = "petals"
    title = "Petals"
    paper = "Distributed Inference and Fine-tuning of Large Language Models Over The Internet (NeurIPS 2023)"
    summary = (
        "Each server in turn takes the blocks that are served worst; the client takes the fastest chain."
    )
    Params = PetalsParams

    def plan(self, cluster: ClusterSpec, model: ModelSpec, workload: Workload, params: PetalsParams) -> Plan:
        demand = demand_of(model, workload, self.batches_bursts)
        seconds = {rank: layer_s(cluster.devices[rank], model, demand) for rank in cluster.workers}
        most = self.most_layers(cluster, model, workload)
        if params.blocks:
            most = {rank: min(number, params.blocks) for rank, number in most.items()}
        served = spans_of(most, seconds, model.num_layers)
        chain = fastest_chain(cluster, model, demand, served, seconds)
        if chain is None:
            missing = sorted(
                set(range(model.num_layers)) - {block for span in served.values() for block in span}
            )
            raise PlanError(f"{self.name}: no server has the blocks {missing}: give servers more memory.")
        return self.placed(cluster, model, workload, chain)


def spans_of(most: dict[int, int], seconds: dict[int, float], blocks: int) -> dict[int, range]:
    """The blocks of each server. It takes those whose throughputs, from the least on, are the least; a server
    adds its own to each of its blocks.
    """
    throughput = [0.0] * blocks
    spans = {}
    for rank in sorted(most):
        size = min(most[rank], blocks)
        if size:
            start = min(
                range(blocks - size + 1), key=lambda first: (sorted(throughput[first : first + size]), first)
            )
            spans[rank] = range(start, start + size)
            for block in spans[rank]:
                throughput[block] += 1 / (size * seconds[rank])
    return spans


def fastest_chain(
    cluster: ClusterSpec, model: ModelSpec, demand: Demand, spans: dict[int, range], seconds: dict[int, float]
) -> Chain | None:
    """The chain in which a request is predicted fastest, by the shortest path over (block, server); None if
    there is none.
    """
    steps = max(1, demand.new_tokens) - 1
    prompt, token = (payload_bytes(hidden(model, demand.batch, rows)) for rows in (demand.rows, 1))

    def sent_s(src: int, dst: int) -> float:
        return message_s(cluster, src, dst, prompt) + steps * message_s(cluster, src, dst, token)

    source = cluster.source_rank
    best: list[dict[int, tuple[float, Chain]]] = [{} for _ in range(model.num_layers + 1)]
    best[0][source] = (0.0, ())
    for block in range(model.num_layers):
        for at, (time_s, chain) in best[block].items():
            for rank, span in spans.items():
                # a client that serves, too, computes before it waits for others
                if block not in span or rank in dict(chain) or (rank == source and chain):
                    continue
                for stop in range(block + 1, span.stop + 1):
                    found_s = time_s + sent_s(at, rank) + (stop - block) * seconds[rank]
                    if rank not in best[stop] or found_s < best[stop][rank][0]:
                        best[stop][rank] = (found_s, (*chain, (rank, stop - block)))
    ends = [(time_s + sent_s(rank, source), chain) for rank, (time_s, chain) in best[-1].items()]
    return min(ends)[1] if ends else None
