"""Runs in which a strategy's parameters matter, and what a run does under its parameters.

Most parameters matter somewhere among random runs; `CRAFTED` has runs for those that need a certain shortage
of memory, a change during the run, or numbers in place of shapes.
"""

import hashlib
from bisect import bisect_left
from functools import lru_cache

from bench.fuzz.check import outputs_of
from bench.fuzz.draw import draw_spec
from engine.domain.errors import EdgeLoomError
from engine.domain.plan import Slice
from engine.domain.scenario import DropDevice, JoinDevice, Scenario, SetRate, SlowDevice
from engine.domain.spec import RunSpec
from engine.ops.sizes import weight_bytes
from engine.runs.predict import prepare, simulate
from engine.strategies.registry import strategy
from tests.support.adaptlink_cases import tight, with_memory
from tests.support.small_cases import GPT2, LLAMA, spec_of, star

DRAWN, SEED = 14, 77
DEEP = GPT2.model_copy(update={"num_layers": 8})
SLOW = star([1e6] * 3)
"""Devices so slow that EdgeFormer lends heads over their links."""


def prepared(spec):
    return _prepared(spec.model_dump_json())


@lru_cache(maxsize=64)
def _prepared(document):
    return prepare(RunSpec.model_validate_json(document))


def planned(spec):
    """What a run's plan is, or that it is refused. It does not contain the layout, which may only repeat a
    parameter.
    """
    try:
        plan = prepared(spec).plan
    except EdgeLoomError:
        return "refused"
    return plan.holdings, plan.work


def played(spec):
    """The whole trace of a run that is not refused, and how it ends."""
    trace, outcome = simulate(prepared(spec))
    return trace, outcome.kind


def numbers(spec):
    """A digest of what the source gets, on real tensors: of a lossy method, which heads it kept."""
    got = outputs_of(prepare(spec))
    return hashlib.sha256(repr({name: x.tolist() for name, x in sorted(got.items())}).encode()).hexdigest()


def cases_of(name):
    """(ways to observe, spec) in the order in which they are tried."""
    for spec in CRAFTED.get(name, lambda: ())():
        yield (planned, played), spec
    for spec in NUMBERS.get(name, lambda: ())():
        yield (numbers,), spec
    for index in range(DRAWN):
        yield (planned, played), draw_spec(SEED, index, (strategy(name),))


def with_params(spec, **params):
    return spec.model_copy(update={"params": {**spec.params, **params}})


def changed(spec, *changes):
    return spec.model_copy(update={"scenario": Scenario(changes=changes)})


def pressed(name):
    """A little less memory than the least with which all of the KV cache stays in memory."""

    def spec_with(bytes_):
        return spec_of(name, DEEP, star([1e10] * 2, memory_bytes=bytes_), rows=8, new_tokens=9)

    sizes = range(20_000, 400_000, 1000)
    least = sizes[bisect_left(sizes, True, key=lambda bytes_: planned(spec_with(bytes_)) != "refused")]
    yield spec_with(least - 1000)
    yield spec_with(least - 2500)


def adaptlink():
    """The primary lacks memory for a part; a device that is away joins, or one fails."""
    yield tight(GPT2, 0.5, new_tokens=5)
    yield spec_of("adaptlink", GPT2, star([1e8, 1e8]), rows=32, new_tokens=1)
    yield tight(GPT2, 0.7, others=0.4, new_tokens=5)
    yield tight(GPT2, 0.3, new_tokens=5, rates=(4e10, 1e10, 2e10, 2e10))
    yield changed(tight(GPT2, 0.3, new_tokens=5, others=0.6), DropDevice(at_s=1e-3, device="d1"))
    for owner in (1e10, 3e8):  # as fast as the joiner where memory binds both, and slower
        spec = tight(GPT2, 0.3, rates=(4e10, owner, 1e11), new_tokens=6)
        roomy = with_memory(spec.cluster, d0=spec.cluster.devices[0].memory_bytes + 4000)
        spec = spec.model_copy(update={"cluster": roomy})
        for at_s in (1e-3, 3e-3, 6e-3):
            yield changed(spec, JoinDevice(at_s=at_s, device="d2"))


def edgeshard():
    """Memory that is short, and a burst that is worth a batch."""
    yield from pressed("edgeshard")
    yield spec_of("edgeshard", GPT2, star([1e8, 2e8]), requests=4, pattern="bursty")


def galaxy():
    """Memory that is short, and devices so unlike that rows go by speed."""
    yield from pressed("galaxy")
    for rows in (5, 32):
        yield spec_of("galaxy", GPT2, star([1e8, 1e9]), rows=rows)


def megatron():
    """A prompt whose sums take longer to send to everybody than around the ring."""
    yield spec_of("megatron", GPT2, star([1e10] * 4), rows=48)


def accelerate():
    """Devices that have just room for equal shares, so that half of their memory is too little."""
    for bytes_ in range(60_000, 240_000, 20_000):
        yield spec_of("accelerate", GPT2, star((1e9, 2e9), memory_bytes=bytes_))


def edge_only():
    """Memory around what the model takes in its own numbers, in 8 bits and in 4."""
    for bytes_ in range(60_000, 240_000, 20_000):
        spec = spec_of("edge_only", GPT2, star((1e9, 2e9), memory_bytes=bytes_))
        yield from (spec, with_params(spec, bits="8"), with_params(spec, bits="4"))


def edgeformer():
    """Devices so slow that heads are lent over the links, one of which changes while tokens are generated."""
    yield spec_of("edgeformer", LLAMA, star((1e6, 3e6, 5e5)), prune="paper", t_max=0.6)
    yield spec_of("edgeformer", GPT2, SLOW, new_tokens=2, requests=2, prune="paper", t_max=0.9)
    yield spec_of("edgeformer", DEEP, star((3e6, 1e6, 2e6), memory_bytes=150_000), prune="paper", t_max=0.6)
    slower = SetRate(at_s=0.5, link="d1--s1", bit_per_s=1e3)
    yield changed(spec_of("edgeformer", GPT2, SLOW, new_tokens=6, prune="paper", t_max=1.0), slower)


def edgeformer_numbers():
    """Heads are pruned by their importance, which depends on the prompt."""
    sizes = {"requests": 4, "rows": 7, "new_tokens": 2}
    yield spec_of("edgeformer", GPT2, SLOW, prune="paper", t_max=0.5, tau=1.0, **sizes)


def voltage():
    slowed = spec_of("voltage", GPT2, star([1e8, 2e8, 3e8]), requests=2)
    yield changed(slowed, SlowDevice(at_s=1e-3, device="d1", factor=9))
    yield spec_of("voltage", GPT2, star([1e8, 2e8, 3e8]), planner="best")


def lime():
    """Memory for three or four layers each, so that caches outgrow it before the answer is complete."""
    layer_bytes = sum(weight_bytes(DEEP, Slice(layer=0, part=part)) for part in ("attention", "ffn"))
    long = DEEP.model_copy(update={"max_positions": 128})
    cluster = star((2e9, 1e9), memory_bytes=3.5 * layer_bytes + 3.5e4, disk_byte_per_s=2e5)
    params = {"assumed_tokens": 12, "reserve_frac": 0.05, "num_segments": 4, "mode": "exact"}
    for tokens in (24, 40):
        for transfer in (True, False):
            more = params | {"kv_transfer": transfer}
            yield spec_of("lime", long, cluster, new_tokens=tokens, requests=2 - transfer, **more)


def tpi_llm_offload():
    """Memory for a part of the blocks, so that the others stream through the window."""
    for bytes_ in range(60_000, 200_000, 20_000):
        yield spec_of("tpi_llm_offload", DEEP, star([1e10] * 2, memory_bytes=bytes_), rows=8, new_tokens=9)


def deepspeed():
    """Four equal devices: a prompt long enough for the ring, and tokens that are exchanged directly."""
    cluster = star([1e10] * 4)
    slow = [link.model_copy(update={"bit_per_s": 1e7}) for link in cluster.links]
    yield spec_of("deepspeed", GPT2, cluster.model_copy(update={"links": tuple(slow)}), rows=40)


def speculative():
    """Two devices that can verify, and layers that can draft."""
    yield spec_of("speculative", GPT2, star([1e9, 4e10, 2e10]), new_tokens=6, draft_layers=1)


CRAFTED = {
    "speculative": speculative,
    "accelerate": accelerate,
    "megatron": megatron,
    **{name: (lambda name=name: pressed(name)) for name in ("gpipe", "tpi_llm")},
    "adaptlink": adaptlink,
    "deepspeed": deepspeed,
    "edge_only": edge_only,
    "edgeformer": edgeformer,
    "edgeshard": edgeshard,
    "galaxy": galaxy,
    "lime": lime,
    "tpi_llm_offload": tpi_llm_offload,
    "voltage": voltage,
}
NUMBERS = {"edgeformer": edgeformer_numbers}
