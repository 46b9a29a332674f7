"""Small clusters and models, and one way to plan and play them in the simulated world."""

from engine.domain.cluster import ClusterSpec
from engine.domain.model import ModelSpec
from engine.domain.spec import RunSpec
from engine.domain.trace import Span
from engine.domain.workload import Request, Workload
from engine.program.serve import serve
from engine.strategies.registry import by_rule, drafted, strategy
from engine.worlds.common.source import SimulatedSource
from engine.worlds.simulated.world import SimulatedWorld

SHAPE = {
    "num_layers": 3,
    "hidden_size": 32,
    "num_heads": 4,
    "head_dim": 8,
    "intermediate_size": 64,
    "vocab_size": 50,
    "max_positions": 64,
}
GPT2 = ModelSpec(name="small-gpt2", family="gpt2", num_kv_heads=4, **SHAPE)
LLAMA = ModelSpec(
    name="small-llama",
    family="llama",
    num_kv_heads=2,
    positions="rope",
    norm="rmsnorm",
    gated_ffn=True,
    attention_bias=False,
    ffn_bias=False,
    activation="silu",
    tied_head=False,
    **SHAPE,
)
BERT = ModelSpec(
    name="small-bert",
    family="bert",
    num_kv_heads=4,
    causal=False,
    norm_position="post",
    has_head=False,
    token_types=2,
    embedding_norm=True,
    activation="gelu",
    **SHAPE,
)
MODELS = (GPT2, LLAMA, BERT)


def star(rates, terminal=False, source=0, memory_bytes=4e8, **device):
    """One switch, workers d0, d1, … with these FLOP/s; the source is one of them or a terminal."""
    common = {"memory_byte_per_s": 4e9, "memory_bytes": memory_bytes, **device}
    devices = [{"name": f"d{i}", "flop_per_s": rate, **common} for i, rate in enumerate(rates)]
    if terminal:
        devices.append({"name": "term", "role": "terminal", "flop_per_s": 1e10, **common})
    return ClusterSpec(
        name="star",
        source="term" if terminal else f"d{source}",
        devices=devices,
        switches=[{"name": "s1"}],
        links=[{"a": device["name"], "b": "s1", "bit_per_s": 1e8} for device in devices],
    )


def spec_of(
    name, model, cluster, rows=11, new_tokens=None, requests=1, pattern="sporadic", assumed_tokens=0, **params
):
    if new_tokens is None:
        new_tokens = 4 if model.causal else 0
    params = by_rule(name) | params
    workload = Workload(
        prompt_tokens=rows,
        new_tokens=new_tokens,
        assumed_tokens=assumed_tokens,
        requests=requests,
        pattern=pattern,
    )
    model = drafted(strategy(name), model, params)
    return RunSpec(cluster=cluster, model=model, strategy=name, params=params, workload=workload, seed=5)


def plan_of(spec):
    chosen = strategy(spec.strategy)
    params = chosen.Params.parse(spec.params, "parameters")
    return chosen.plan(spec.cluster, spec.model, spec.workload, params)


def supported(name, cluster, model):
    chosen = strategy(name)
    return chosen.supports(cluster, drafted(chosen, model)) is None


def prompts(spec):
    """Every request another prompt."""
    rows, vocab = spec.workload.prompt_tokens, spec.model.vocab_size
    return tuple(
        Request(index=i, tokens=tuple((7 * i + 3 * j + j * j) % vocab for j in range(rows)))
        for i in range(spec.workload.requests)
    )


def play(spec, plan=None):
    """The trace of the simulated world."""
    plan, trace = plan or plan_of(spec), []
    world, requests = SimulatedWorld(spec, plan, trace.append), prompts(spec)
    programs = []
    for rank, device in enumerate(world.devices):
        source = SimulatedSource(device) if rank == spec.cluster.source_rank else None
        chosen = strategy(spec.strategy)
        programs.append((rank, serve(device, chosen, plan, spec.workload, requests, source)))
    world.run(programs)
    return trace


def sends(trace):
    return [item for item in trace if isinstance(item, Span) and item.kind == "send"]
