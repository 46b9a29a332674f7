"""Messages between small programs in the simulated world: a star of devices, a sender and a receiver."""

from itertools import pairwise

from engine.domain.cluster import ClusterSpec
from engine.domain.model import ModelSpec
from engine.domain.plan import HeldSlice, Plan, Slice
from engine.domain.scenario import Scenario
from engine.domain.spec import RunSpec
from engine.ops.tensors import Meta
from engine.program.frames import FRAME_HEADER_BYTES
from engine.strategies.single import SingleLayout
from engine.worlds.simulated.world import SimulatedWorld

MODEL = ModelSpec(
    name="m",
    family="gpt2",
    num_layers=1,
    hidden_size=8,
    num_heads=2,
    num_kv_heads=2,
    head_dim=4,
    intermediate_size=16,
    vocab_size=32,
    max_positions=64,
)
PAYLOAD = Meta((1, 250_000 - FRAME_HEADER_BYTES // 4))  # with its header exactly 1 MB
RATE = 8e6  # 1 MB takes 1 s


def star(names="abc", delay_s=0.0, overhead_s=0.0, rates=None):
    rates = rates or {}
    return ClusterSpec(
        name="star",
        source=names[0],
        devices=[
            {
                "name": n,
                "flop_per_s": 1e9,
                "memory_bytes": 1e9,
                "memory_byte_per_s": 1e9,
                "message_overhead_s": overhead_s,
            }
            for n in names
        ],
        switches=[{"name": "s1"}],
        links=[{"a": n, "b": "s1", "bit_per_s": rates.get(n, RATE), "delay_s": delay_s} for n in names],
    )


def chain(names):
    """Each device has a link to the next one, and passes on what goes beyond."""
    links = [{"a": a, "b": b, "bit_per_s": RATE} for a, b in pairwise(names)]
    return ClusterSpec.model_validate(star(names).model_dump() | {"links": links, "switches": []})


def world_of(cluster, changes=(), holders=(0, 1), silence_s=20.0):
    scenario = Scenario(changes=changes)
    spec = RunSpec(cluster=cluster, model=MODEL, strategy="-", scenario=scenario, silence_s=silence_s)
    held = Slice(layer=0, part="ffn", axis="columns", start=0, stop=1)
    plan = Plan(
        strategy="-",
        holdings=[HeldSlice(device=d, slice=held) for d in holders],
        work=(),
        layout=SingleLayout(device=0),
    )
    trace = []
    return SimulatedWorld(spec, plan, trace.append), trace


async def sender(ctx, dst, tags):
    for tag in tags:
        ctx.send(PAYLOAD, dst, tag)


async def receiver(ctx, sources, times):
    for src, tag in sources:
        await ctx.recv(src, tag)
        times[ctx.rank, tag] = ctx.now_s


def run(world, *programs):
    world.run([(rank, make(world.devices[rank])) for rank, make in programs])
