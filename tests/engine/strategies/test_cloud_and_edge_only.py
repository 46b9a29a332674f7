"""AdaptLink's baselines: a server behind an uplink, and one edge device with quantised weights."""

import re

import pytest
import torch

from engine.domain.errors import PlanError, SpecError
from engine.domain.plan import Slice
from engine.domain.trace import Span
from engine.models import catalogue
from engine.ops.sizes import model_bytes, weight_bytes
from engine.runs.predict import predict
from engine.strategies.registry import strategy
from engine.strategies.shared.demand import weights_bytes
from tests.support.adaptlink_cases import with_memory
from tests.support.memory_world import run_in_memory
from tests.support.small_cases import BERT, GPT2, LLAMA, plan_of, play, prompts, sends, spec_of, star

ALONE = star([1e10])


def run(spec):
    return run_in_memory(spec, plan_of(spec), prompts(spec))


def served(model, **more):
    """Logits of the model on one device."""
    return run(spec_of("single", model, ALONE, **more))[0].logits


@pytest.mark.parametrize("terminal", [False, True])
def test_a_server_gets_prompts_and_returns_ids_of_eight_bytes(terminal):
    cluster = star([1e9, 4e10], terminal=terminal)
    spec = spec_of("cloud_only", GPT2, cluster, rows=9, new_tokens=3, requests=2, pattern="bursty")
    source, world = run(spec)
    expected = served(GPT2, rows=9, new_tokens=3, requests=2, pattern="bursty")
    for request, logits in expected.items():
        ours = torch.stack(source.chosen[request])
        assert torch.equal(ours, torch.stack(logits).argmax(-1)) and not source.logits
    at = cluster.source_rank
    assert [size for _, size in world.sent[at, 1]] == [2 * 9 * 8, 2 * 8, 2 * 8]
    assert [size for _, size in world.sent[1, at]] == [2 * 8] * 3
    assert weights_bytes(plan_of(spec), GPT2, 1) == model_bytes(GPT2)
    assert weights_bytes(plan_of(spec), GPT2, at) == 0


def test_an_encoders_states_come_back_from_the_server():
    source, _ = run(spec_of("cloud_only", BERT, star([1e9, 4e10])))
    expected = run(spec_of("single", BERT, ALONE))[0].states
    torch.testing.assert_close(source.states, expected)


def test_a_source_that_is_the_server_itself_sends_nothing():
    source, world = run(spec_of("cloud_only", LLAMA, star([4e10, 1e9])))
    assert not any(world.sent.values()) and len(source.chosen[0]) == 4


def test_the_server_is_the_one_with_the_soonest_answer_not_the_fastest_behind_a_slow_link():
    cluster = star([1e9, 2e10, 1e10], terminal=True)
    slow = cluster.links[1].model_copy(update={"bit_per_s": 1e4})
    cluster = cluster.model_copy(update={"links": (cluster.links[0], slow, *cluster.links[2:])})
    assert plan_of(spec_of("cloud_only", GPT2, cluster)).layout.device == 2


def test_a_server_without_the_memory_is_none():
    cluster = with_memory(star([1e9, 4e10, 1e10], terminal=True), d1=1e3)
    assert plan_of(spec_of("cloud_only", GPT2, cluster)).layout.device == 2


def test_an_upload_of_a_megabyte_over_one_megabit_takes_eight_seconds_per_request():
    cluster = star([1e9, 4e10])
    links = [link.model_copy(update={"bit_per_s": 1e6}) for link in cluster.links]
    cluster = cluster.model_copy(update={"links": tuple(links)})
    spec = spec_of("cloud_only", GPT2, cluster, requests=2, upload_bytes=1_000_000, device="d1")
    uploads = [span for span in sends(play(spec)) if span.name.startswith("upload")]
    assert [span.payload_bytes for span in uploads] == [1_000_000] * 2
    plain = spec.model_copy(update={"params": {"device": "d1"}})
    assert predict(spec).ttft_s - predict(plain).ttft_s == pytest.approx(8.0, rel=2e-3)


def test_the_server_can_be_named_but_must_be_a_worker():
    assert plan_of(spec_of("cloud_only", GPT2, star([4e10, 1e9]), device="d1")).layout.device == 1
    with pytest.raises(SpecError, match="terminal"):
        plan_of(spec_of("cloud_only", GPT2, star([4e10], terminal=True), device="term"))


def alone(model, bits_that_fit):
    """One device on which auto ends at these bits, with 90 % of its memory."""
    cluster = star([1e10])
    need = predict(spec_of("edge_only", model, cluster, bits=bits_that_fit)).devices[0].peak_memory_bytes
    return with_memory(cluster, d0=need / 0.9 * 1.02)


def test_auto_takes_as_few_bits_as_memory_demands():
    model = catalogue.resolve("demo-lm")[0]
    for bits, chosen in (("none", 0), ("8", 8), ("4", 4)):
        plan = plan_of(spec_of("edge_only", model, alone(model, bits), rows=16))
        assert plan.layout.bits == chosen
        assert strategy("edge_only").is_lossy(plan) == (chosen > 0)
    tiny = with_memory(alone(model, "4"), d0=1e5)
    with pytest.raises(PlanError, match=r"needs .* has"):
        plan_of(spec_of("edge_only", model, tiny))


@pytest.mark.parametrize("bits", ["8", "4"])
@pytest.mark.parametrize("model", [GPT2, LLAMA, BERT], ids=lambda model: model.family)
def test_a_quantised_model_runs_and_is_nearly_the_model(model, bits):
    spec = spec_of("edge_only", model, star([1e10] * 2, terminal=True), bits=bits, new_tokens=None)
    source, _ = run(spec)
    theirs, _ = run(spec_of("single", model, ALONE))
    got, expected = (source.logits, theirs.logits) if model.causal else (source.states, theirs.states)
    first, reference = (got[0][0], expected[0][0]) if model.causal else (got[0], expected[0])
    error = float((first - reference).abs().max() / reference.abs().max())
    assert 0 < error < (0.03 if bits == "8" else 0.6)


def test_without_quantising_it_is_the_model_itself():
    source, _ = run(spec_of("edge_only", LLAMA, ALONE, bits="none"))
    torch.testing.assert_close(source.logits, served(LLAMA))


def test_a_device_that_is_twice_as_fast_with_eight_bits_takes_half_the_time_for_its_layers():
    def layers_s(**params):
        spans = play(spec_of("edge_only", GPT2, ALONE, bits="8", **params))
        return sum(
            span.end_s - span.start_s for span in spans if isinstance(span, Span) and span.name == "block"
        )

    assert layers_s() == pytest.approx(2 * layers_s(speed_8bit=2.0))
    assert layers_s() == layers_s(speed_4bit=2.0)


def test_the_plan_counts_the_stored_bytes():
    plan = plan_of(spec_of("edge_only", GPT2, ALONE, bits="4"))
    layers = [
        weight_bytes(GPT2, Slice(layer=layer, part=part, bits=4))
        for layer in range(GPT2.num_layers)
        for part in ("attention", "ffn")
    ]
    ends = weights_bytes(plan, GPT2, 0) - sum(layers)
    assert ends == weights_bytes(plan_of(spec_of("single", GPT2, ALONE)), GPT2, 0) - sum(
        weight_bytes(GPT2, Slice(layer=layer, part=part))
        for layer in range(GPT2.num_layers)
        for part in ("attention", "ffn")
    )


def test_auto_fills_only_the_given_part_of_the_memory():
    model = catalogue.resolve("demo-lm")[0]
    cluster = alone(model, "none")  # a little more than the model needs is 90 % of its memory
    for beta, bits in ((0.9, 0), (0.85, 8)):
        plan = plan_of(spec_of("edge_only", model, cluster, rows=16, beta=beta))
        assert plan.layout.bits == bits


def test_bits_that_are_given_may_fill_the_whole_memory_of_the_fastest_device():
    """With 6 % to spare; auto would leave a tenth of it free and take the slow device."""
    cluster = star([1e10, 1e9])
    need = predict(spec_of("edge_only", GPT2, cluster, device="d0", bits="8")).devices[0].peak_memory_bytes
    scarce = with_memory(cluster, d0=need * 1.06)
    assert plan_of(spec_of("edge_only", GPT2, scarce, bits="8")).layout.device == 0
    assert plan_of(spec_of("edge_only", GPT2, scarce)).layout.device == 1


def test_a_server_needs_room_for_the_kv_caches_of_all_layers():
    model, server = GPT2.model_copy(update={"max_positions": 4096}), star([1e10], memory_bytes=1e3)
    little, much = (
        plan_needs_bytes(spec_of("cloud_only", model, server, rows=2000, new_tokens=new)) for new in (1, 2001)
    )
    # 2000 rows more in 3 layers: keys and values, 4 heads of 8 numbers of 4 bytes; the sentence rounds
    assert much - little == pytest.approx(2000 * 3 * 2 * 4 * 8 * 4, abs=1.1e5)


def plan_needs_bytes(spec):
    """What the refusal of a plan says that the only device needs."""
    with pytest.raises(PlanError) as refused:
        plan_of(spec)
    number, prefix = re.search(r"needs ([0-9.]+) ([kMG]?)B", str(refused.value)).groups()
    return float(number) * {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}[prefix]
