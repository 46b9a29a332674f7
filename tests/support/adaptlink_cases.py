"""Clusters whose primary lacks memory for a chosen part of the model, and worlds in which devices fail."""

from engine.domain.errors import PeerFailed
from engine.domain.plan import Placement
from engine.models.weights.store import WeightStore
from engine.program.serve import serve
from engine.program.strategy import Strategy
from engine.strategies.adaptlink.roles import MemoryBudget
from engine.strategies.registry import strategy
from engine.strategies.shared.demand import demand_of
from engine.strategies.shared.ends import end_holdings, end_work
from tests.support.memory_world import MemoryWorld, source_in
from tests.support.small_cases import plan_of, prompts, spec_of, star

RATES = (4e10, 1e10, 2.5e10, 3e9)


def room_of(cluster, model, workload, beta=1.0):
    ends = Placement(
        strategy="adaptlink", holdings=end_holdings(cluster, model), work=end_work(cluster, model)
    )
    return MemoryBudget(cluster, model, demand_of(model, workload, True), ends, beta)


def with_memory(cluster, **memory_bytes):
    """`cluster` with other memory for the devices named."""
    devices = [
        device.model_copy(update={"memory_bytes": float(memory_bytes.get(device.name, device.memory_bytes))})
        for device in cluster.devices
    ]
    return cluster.model_copy(update={"devices": tuple(devices)})


def tight(
    model,
    over,
    rates=RATES,
    others=0.9,
    rows=11,
    new_tokens=None,
    requests=1,
    pattern="sporadic",
    terminal=False,
    **params,
):
    """A spec whose primary d0 lacks memory for `over` times all feed-forward parts. The others have `others`
    times the primary's. Roles and shares are those of the paper's equation 5, unless `comm_mode` says else.
    """
    cluster = star(rates, terminal=terminal)
    spec = spec_of(
        "adaptlink",
        model,
        cluster,
        rows=rows,
        new_tokens=new_tokens,
        requests=requests,
        pattern=pattern,
        **{"beta": 1.0, "comm_mode": "eq5", **params},
    )
    primary = room_of(cluster, model, spec.workload).primary(0)
    whole = primary.fixed_bytes + primary.num_layers * primary.ffn_bytes
    mine = whole - over * primary.num_layers * primary.ffn_bytes
    sizes = {f"d{rank}": others * mine for rank in range(1, len(rates))} | {"d0": mine}
    return spec.model_copy(update={"cluster": with_memory(cluster, **sizes)})


class DyingWorld(MemoryWorld):
    """Devices die after the world has delivered so many messages: `deaths` is rank → number."""

    def __init__(self, cluster, model, seed=0, deaths=()):
        super().__init__(cluster, model, seed)
        self.deaths, self.delivered, self.dead = dict(deaths), 0, set()

    def disturb(self):
        for rank, number in self.deaths.items():
            if self.delivered >= number and rank not in self.dead:
                self._die(rank)

    def _ready(self, awaited):
        key = getattr(awaited, "key", None)
        waits = key is not None and not awaited.done
        if waits and key[0] in self.dead and not self.boxes[key]:
            name = self.cluster.devices[key[0]].name
            awaited.error, awaited.done = PeerFailed(f"{name} failed.", name), True
            return True
        ready = super()._ready(awaited)
        self.delivered += waits and ready
        return ready

    def _die(self, rank):
        """Its programs end, and what it sent and nobody has yet read is gone with it."""
        self.dead.add(rank)
        for program in [entry[1] for entry in self.programs if entry[0] == rank]:
            program.close()
        self.programs = [entry for entry in self.programs if entry[0] != rank]
        for src, dst, tag in list(self.boxes):
            if rank in (src, dst):
                self.boxes[src, dst, tag].clear()
        for device in self.devices:
            device.failed = frozenset(self.dead)


def run_dying(spec, deaths, seed=0):
    """Serve on real tensors while devices die: the source's results, the world. Lets `PeerFailed` through."""
    plan, requests = plan_of(spec), prompts(spec)
    world = DyingWorld(spec.cluster, spec.model, seed, deaths)
    source = source_in(world, spec)
    chosen: Strategy = strategy(spec.strategy)
    programs = []
    for rank, device in enumerate(world.devices):
        device.weights = WeightStore(spec.model, spec.weights, spec.seed)
        for piece in plan.held_by(rank):
            device.load(piece)
        at_source = source if rank == spec.cluster.source_rank else None
        programs.append((rank, serve(device, chosen, plan, spec.workload, requests, at_source)))
    world.run(programs)
    return source, world
