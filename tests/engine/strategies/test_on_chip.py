"""Weights of layers on a chip have one limit for every method, which a device states."""

from collections import Counter

import pytest

import topologies
from engine.domain.errors import PlanError
from engine.domain.spec import RunSpec
from engine.domain.trace import Span
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.ops.sizes import weight_bytes
from engine.runs.predict import predict, prepare, simulate
from engine.strategies.registry import STRATEGIES, drafted, strategy
from engine.strategies.shared.ends import layer_slices
from tests.support.small_cases import GPT2, spec_of, star, supported

LAYER_BYTES = sum(weight_bytes(GPT2, piece) for piece in layer_slices(0))
NORMS_BYTES = 2 * 2 * GPT2.hidden_size * 4
METHODS = [one.name for one in STRATEGIES]


def most_bytes(prepared):
    """The most bytes of layers that each device has at one time: by the plan, then by loads and evictions."""
    trace, outcome = simulate(prepared)
    assert outcome.kind == "finished", outcome.sentence
    names = [device.name for device in prepared.spec.cluster.devices]
    here, sizes = Counter(), Counter()
    for rank, name in enumerate(names):
        for piece in {piece for piece in prepared.plan.held_by(rank) if piece.layer >= 0}:
            size = weight_bytes(prepared.spec.model, piece)
            here[name] += size
            sizes[name, piece.layer, piece.part] = max(size, sizes[name, piece.layer, piece.part])
    most = Counter(here)
    moves = [span for span in trace if isinstance(span, Span) and span.kind in ("load", "evict")]
    for span in sorted(moves, key=lambda span: (span.start_s, span.kind == "load")):
        key = (span.device, span.layer, span.name)
        if span.kind == "load":
            sizes[key] = span.bytes
        here[span.device] += sizes[key] if span.kind == "load" else -sizes[key]
        most[span.device] = max(most[span.device], here[span.device])
    return most


@pytest.mark.parametrize("name", METHODS)
def test_no_method_has_more_weights_on_a_chip_than_its_limit(name):
    planned, model = 0, drafted(strategy(name), GPT2)
    for layers in (0.5, 0.9, 1.2, 2.1, 4):
        cluster = star([1e9, 2e9, 1e9], on_chip_weight_bytes=layers * LAYER_BYTES)
        if not supported(name, cluster, GPT2):
            continue
        spec = spec_of(name, model, cluster)
        try:
            prepared = prepare(spec)
        except PlanError:
            continue
        planned += 1
        norms = GPT2.num_layers * NORMS_BYTES
        assert max(most_bytes(prepared).values()) <= layers * LAYER_BYTES + norms
    assert planned or not supported(name, star([1e9] * 3), GPT2)


def test_a_method_that_keeps_all_weights_is_refused_with_need_and_have():
    spec = spec_of("single", GPT2, star([1e9], on_chip_weight_bytes=2.5 * LAYER_BYTES))
    with pytest.raises(PlanError, match=r"single: d0 needs [\d.]+ kB for weights of layers on chip and has"):
        prepare(spec)


def test_on_the_papers_chips_no_method_keeps_weights_for_which_mcu_has_no_place():
    """With all of L2 for its weights, TPI-LLM with offloading would keep four times as many there as MCU."""
    model, weights = catalogue.resolve("mcu-tinyllama", "random")

    def seconds(name, new_tokens):
        spec = RunSpec(
            cluster=topologies.load("mcu-8"),
            model=model,
            weights=weights,
            strategy=name,
            workload=Workload(prompt_tokens=16, new_tokens=new_tokens),
        )
        return predict(spec).latency_s

    for new_tokens, least in ((1, 1.0), (8, 0.9)):
        assert seconds("tpi_llm_offload", new_tokens) >= least * seconds("mcu", new_tokens)
