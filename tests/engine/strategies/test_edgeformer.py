"""EdgeFormer at run time: which device attends which heads, the messages, and the effect of a failure, a
change and a known input.

Four tests stand for defects of the authors' public implementation: heads put together in another order,
pruned heads that still attend, scores that some ranks cannot compute, and baselines with other workloads.
"""

import pytest
import torch

from engine.domain.cluster import ClusterSpec
from engine.domain.scenario import Scenario, SetRate, SlowDevice
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark, Span
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.models.weights.store import WeightStore
from engine.ops.core import Embed, FeedForward, Head, Residual
from engine.ops.heads import Attend, Join, Project
from engine.ops.layout import whole_model
from engine.ops.torch_kernels import dispatch as arithmetic
from engine.runs.predict import prepare, simulate
from tests.support.adaptlink_cases import run_dying
from tests.support.memory_world import run_in_memory
from tests.support.small_cases import BERT, GPT2, LLAMA, MODELS, plan_of, play, prompts, sends, spec_of, star

SLOW = star([1e6] * 3)
"""Devices so slow that lending heads pays over their links."""
EXACT = {"t_max_mode": "none"}
SPREAD = {**EXACT, "scheduling": "static", "block_alloc": "even"}


def run(model, cluster=SLOW, requests=None, **more):
    """The source's results, the world and the marks of all devices. Heads are pruned whatever that costs."""
    spec = spec_of("edgeformer", model, cluster, **{"prune": "paper"} | more)
    source, world = run_in_memory(spec, plan_of(spec), requests or prompts(spec))
    return source, world, [mark for device in world.devices for mark in device.marks]


def heads_of(marks, layer=None):
    return [facts for name, facts in marks if name == "heads" and (layer is None or facts["layer"] == layer)]


def carried(world, src, dst, purpose):
    return sum(size for tag, size in world.sent[src, dst] if purpose in tag)


@pytest.mark.parametrize("model", [GPT2, BERT], ids=lambda model: model.family)
def test_a_prefill_carries_three_times_as_much_there_as_back(model):
    _, world, marks = run(model, new_tokens=1 if model.causal else 0, **EXACT)
    lent = [facts["device_of"].count(1) for facts in heads_of(marks)]
    assert all(lent)
    back = sum(lent) * 11 * model.head_dim * 4
    assert carried(world, 1, 0, "context") == back
    assert carried(world, 0, 1, "heads") == 3 * back


def test_grouped_keys_and_values_travel_once_for_all_heads_of_a_group():
    _, world, marks = run(LLAMA, star([1e6] * 2), new_tokens=1, **SPREAD, rows=11)
    assert {tuple(facts["device_of"]) for facts in heads_of(marks)} == {(0, 0, 1, 1)}
    owned = sum(1 for facts in heads_of(marks) if facts["owner"] == 0)
    assert carried(world, 0, 1, "heads") == owned * (2 + 2 * 1) * 11 * 8 * 4


def test_a_neighbour_without_heads_gets_nothing_but_the_end_of_every_pass():
    for lending, sizes in (("paper", [0] * 4), ("best", [])):
        _, world, marks = run(GPT2, star([1e6, 1e6, 1e2]), **EXACT, lending=lending)
        assert all(2 not in facts["device_of"] for facts in heads_of(marks))
        assert [size for _, size in world.sent[0, 2]] == sizes
        assert not world.sent[2, 0]


def test_decoding_sends_one_row_and_gets_one_back():
    _, world, _ = run(GPT2, new_tokens=4, **SPREAD)
    tokens = [size for tag, size in world.sent[1, 0] if "context" in tag and tag.endswith("t3")]
    assert tokens
    assert set(tokens) == {8 * 4}


def pruned_by_hand(spec, device_of):
    """Logits of a prefill whose pruned heads attend nothing, from operations over whole layers."""
    model, store = spec.model, WeightStore(spec.model, spec.weights, spec.seed)
    for piece in whole_model(model):
        store.load(piece)

    def compute(op, *inputs):
        return arithmetic.run(op, model, store, {}, inputs)

    heads, keys = tuple(range(model.num_heads)), tuple(range(model.num_kv_heads))
    x = compute(Embed(0), torch.tensor([prompts(spec)[0].tokens]))
    for layer in range(model.num_layers):
        packed = compute(Project(layer, 0, len(heads)), x)
        context = compute(Attend(layer, heads, keys), packed[:, : len(heads)], packed[:, len(heads) :])
        context[:, [head for head in heads if device_of[layer][head] == -1]] = 0
        total = compute(Join(layer, 0, len(heads), heads, True), context)
        x = compute(Residual(layer, "attention"), x, total)
        total = compute(FeedForward(layer, 0, model.intermediate_size, True), x)
        x = compute(Residual(layer, "ffn"), x, total)
    return compute(Head(), x[:, -1:])[0]


@pytest.mark.parametrize("params", [{}, {"fill": "bands"}, {"t_max": 0.3}, {"scheduling": "static"}], ids=str)
@pytest.mark.parametrize("model", [GPT2, LLAMA], ids=lambda model: model.family)
def test_heads_keep_their_place_and_pruned_ones_attend_nothing(model, params):
    source, _, marks = run(model, new_tokens=1, **{"t_max": 0.6, **params})
    device_of = {facts["layer"]: facts["device_of"] for facts in heads_of(marks)}
    assert any(-1 in ranks for ranks in device_of.values())
    spec = spec_of("edgeformer", model, SLOW, new_tokens=1)
    torch.testing.assert_close(source.logits[0][0], pruned_by_hand(spec, device_of), rtol=1e-4, atol=1e-5)


def test_a_deadline_below_every_head_leaves_layers_without_attention():
    source, _, marks = run(GPT2, new_tokens=1, t_max_mode="block_s", t_max=1e-9)
    assert [name for name, _ in marks].count("all_heads_pruned") == 3
    spec = spec_of("edgeformer", GPT2, SLOW, new_tokens=1)
    device_of = [[-1] * 4] * 3
    torch.testing.assert_close(source.logits[0][0], pruned_by_hand(spec, device_of), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("source", range(3))
@pytest.mark.parametrize("importance", ["var", "paper", "var_minus_entropy"])
def test_every_rank_can_own_blocks_and_score_its_heads(source, importance):
    cluster = star([1e6] * 3, source=source)
    _, _, marks = run(GPT2, cluster, block_alloc="even", importance=importance, t_max=0.7)
    shown = heads_of(marks)
    assert sorted(facts["owner"] for facts in shown) == [0, 1, 2]
    for facts in shown:
        assert facts["device_of"].count(-1) == 1
        for rank, score in zip(facts["device_of"], facts["scores"], strict=True):
            assert (score is None) == (rank == -1)
            assert score is None or 0 <= score <= 1


@pytest.mark.parametrize("name", ["single", "gpipe", "megatron"])
def test_every_strategy_answers_the_same_workload(name):
    def work(strategy):
        trace = play(spec_of(strategy, GPT2, SLOW, requests=2))
        marks = [item for item in trace if isinstance(item, Mark)]
        return sorted((m.facts["request"], m.facts["index"]) for m in marks if m.name == "token_emitted")

    assert work("edgeformer") == work(name)


def test_the_same_request_twice_is_known_the_second_time_and_treated_alike():
    requests = prompts(spec_of("edgeformer", GPT2, SLOW))
    again = requests[0].model_copy(update={"index": 1})
    source, _, marks = run(GPT2, requests=(requests[0], again), tau=0.0, new_tokens=2, t_max=0.7)
    for layer in range(GPT2.num_layers):
        first, second = heads_of(marks, layer)
        assert (first["hits"], first["misses"], first["measured"]) == (0, 4, 4)
        assert (second["hits"], second["misses"], second["measured"]) == (4, 0, 0)
        assert first["device_of"] == second["device_of"]
    first, second = (torch.stack(source.logits[index]) for index in (0, 1))
    torch.testing.assert_close(first, second, rtol=1e-5, atol=1e-6)


def test_without_a_table_every_head_is_measured_every_time():
    requests = prompts(spec_of("edgeformer", GPT2, SLOW))
    again = requests[0].model_copy(update={"index": 1})
    _, world, marks = run(GPT2, requests=(requests[0], again), tau=-1.0, t_max=0.7)
    assert {(facts["hits"], facts["measured"]) for facts in heads_of(marks)} == {(0, 4)}
    assert sum(name.startswith("importance") for name in world.devices[0].decided) == 2 * GPT2.num_layers


@pytest.mark.parametrize("params", [EXACT, {"t_max": 1.0}, {"t_max_mode": "block_s", "t_max": 1e-9}], ids=str)
def test_where_importance_changes_nothing_nothing_is_looked_up_or_measured(params):
    requests = prompts(spec_of("edgeformer", GPT2, SLOW, requests=2))
    _, world, marks = run(GPT2, requests=requests, **params)
    names = {name.partition(".")[0] for device in world.devices for name in device.decided}
    assert names <= {"transfers"}
    assert {facts["hits"] + facts["misses"] for facts in heads_of(marks)} == {0}
    trace = play(spec_of("edgeformer", GPT2, SLOW, **params))
    names = {item.name for item in trace if isinstance(item, Span)}
    assert "attend" in names
    assert not names & {"features", "importance", "weigh", "statistics"}


def test_raw_importance_below_a_threshold_is_pruned():
    _, _, marks = run(GPT2, **EXACT, prune_below=1.0)
    assert all(set(facts["device_of"]) == {-1} for facts in heads_of(marks))


def test_the_prediction_supposes_some_heads_of_later_prompts_known():
    trace = play(
        spec_of(
            "edgeformer", GPT2, SLOW, requests=2, prune="paper", t_max=0.7, expected_hits=0.6, on_miss="exact"
        )
    )
    marks = [item.facts for item in trace if isinstance(item, Mark) and item.name == "heads"]
    assert {(facts["hits"], facts["misses"], facts["measured"]) for facts in marks[:3]} == {(0, 4, 4)}
    assert {(facts["hits"], facts["misses"], facts["measured"]) for facts in marks[3:]} == {(2, 2, 1)}
    scores = {score for facts in marks for score in facts["scores"] if score is not None}
    assert all(score >= 0.8 for score in scores), "equal importance: 1.0, and a share of latency"


def test_the_prediction_supposes_a_prompt_known_that_all_requests_have():
    spec = spec_of("edgeformer", GPT2, SLOW, requests=2, prune="paper", t_max=0.7)
    plan = plan_of(spec)
    same = plan.model_copy(update={"layout": plan.layout.model_copy(update={"same_prompt": True})})
    marks = [item.facts for item in play(spec, same) if isinstance(item, Mark) and item.name == "heads"]
    assert [facts["hits"] for facts in marks] == [0, 0, 0, 4, 4, 4]
    workload = Workload(prompt="Once upon a time", new_tokens=2, requests=2)
    text = RunSpec(**{**dict(spec), "workload": workload, "model": catalogue.resolve("demo-lm")[0]})
    assert prepare(text).plan.layout.same_prompt
    assert not plan.layout.same_prompt


@pytest.mark.parametrize(
    ("model", "kv_cache"),
    [*((model, True) for model in MODELS), *((model, False) for model in MODELS if model.causal)],
    ids=lambda value: value if isinstance(value, bool) else value.family,
)
@pytest.mark.parametrize("number", [1, 5, 12])
def test_the_owner_attends_the_heads_of_a_failed_neighbour(model, number, kv_cache):
    spec = spec_of("edgeformer", model, SLOW, **EXACT, fill="bands")
    workload = spec.workload.model_copy(update={"kv_cache": kv_cache})
    spec = spec.model_copy(update={"workload": workload})
    undisturbed, _ = run_dying(spec, {})
    source, world = run_dying(spec, {1: number})
    assert plan_of(spec).layout.blocks == ((0, 0, 3),)
    if model.causal:
        ours, theirs = (torch.stack(found.logits[0]) for found in (source, undisturbed))
    else:
        ours, theirs = source.states[0], undisturbed.states[0]
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    assert not any(device.caches for device in world.devices if device.rank != 1)


def test_a_failure_in_the_middle_of_a_block_is_marked():
    spec = spec_of("edgeformer", GPT2, SLOW, **EXACT)
    found = set()
    for number in (4, 5, 6):
        _, world = run_dying(spec, {1: number})
        found |= {name for name, _ in world.devices[0].marks}
    assert {"heads_recomputed", "reallocated"} <= found


LAB = ClusterSpec(
    name="lab",
    source="a",
    switches=[{"name": "s1"}],
    devices=[
        {"name": name, "memory_bytes": 4e8, "memory_byte_per_s": 4e9, "flop_per_s": 1e5} for name in "abc"
    ],
    links=[{"a": name, "b": "s1", "bit_per_s": 1e9} for name in "abc"],
)


def changed(*changes, **params):
    """Trace of a run of tiny-llama on slow devices, some things changing after the first tokens."""
    model, weights = catalogue.resolve("tiny-llama", None)
    spec = RunSpec(
        cluster=LAB,
        model=model,
        weights=weights,
        strategy="edgeformer",
        params=params,
        workload=Workload(prompt_tokens=12, new_tokens=6),
        compute_model="flops",
        scenario=Scenario(changes=changes),
    )
    trace, outcome = simulate(prepare(spec))
    assert outcome.kind == "finished", outcome.sentence
    return trace


def token_s(trace, index):
    return next(
        item.time_s
        for item in trace
        if isinstance(item, Mark) and item.name == "token_emitted" and item.facts["index"] == index
    )


def after_a_change(kind, **params):
    at_s = token_s(changed(**params), 1)
    change = (
        SetRate(at_s=at_s, link="b--s1", bit_per_s=1e3)
        if kind == "link"
        else SlowDevice(at_s=at_s, device="b", factor=50)
    )
    trace = changed(change, **params)
    return trace, [item.facts for item in trace if isinstance(item, Mark) and item.name == "reallocated"]


@pytest.mark.parametrize("kind", ["link", "device"])
def test_a_changed_link_or_device_moves_heads_with_their_keys_and_values(kind):
    trace, moves = after_a_change(kind, **EXACT)
    assert moves
    for facts in moves:
        assert 1 in facts["device_of_before"]
        assert facts["device_of"].count(1) < facts["device_of_before"].count(1)
        assert -1 not in facts["device_of"]
        assert facts["reason"]
    names = [item.name for item in trace if getattr(item, "kind", "") == "compute"]
    assert "recall" in names
    assert "regroup" in names


def test_a_changed_link_only_prunes_where_that_was_asked_for():
    _, moves = after_a_change("link", on_change="prune", t_max=1.0)
    assert moves
    for facts in moves:
        stays = [a == b for a, b in zip(facts["device_of"], facts["device_of_before"], strict=True)]
        assert all(ok or rank == -1 for ok, rank in zip(stays, facts["device_of"], strict=True))


@pytest.mark.parametrize("kept", [3, 4])
def test_however_slow_a_link_becomes_pruning_leaves_the_smallest_number_of_heads(kept):
    _, moves = after_a_change("link", on_change="prune", t_max=1.0, min_keep=kept)
    assert {4 - facts["device_of"].count(-1) for facts in moves} == ({kept} if kept < 4 else set())


def test_a_deadline_by_ratio_is_that_of_the_links_and_speeds_at_the_start_of_the_run():
    def limits(*changes):
        trace = changed(*changes, t_max=1.0)
        return {
            (item.facts["layer"], item.facts["t_max_s"])
            for item in trace
            if isinstance(item, Mark) and item.name == "heads" and item.time_s < token_s(trace, 0)
        }

    worse = SetRate(at_s=0, link="b--s1", bit_per_s=1e3), SlowDevice(at_s=0, device="c", factor=50)
    assert limits(*worse) == limits() != set()


def test_without_a_change_heads_stay_where_the_prefill_put_them():
    trace = changed(**EXACT)
    names = {item.name for item in trace if isinstance(item, Mark)}
    assert "reallocated" not in names


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.family)
def test_no_message_goes_where_the_plan_does_not_expect_one(model):
    from engine.strategies.registry import strategy

    spec = spec_of("edgeformer", model, star([1e6] * 3, terminal=True), block_alloc="even")
    plan = plan_of(spec)
    pairs = strategy("edgeformer").partners(spec.cluster, plan)
    ranks = {device.name: rank for rank, device in enumerate(spec.cluster.devices)}
    sent = {(ranks[span.device], ranks[span.peer]) for span in sends(play(spec, plan))}
    ends = {(3, plan.layout.blocks[0][0]), (plan.layout.blocks[-1][0], 3)}
    assert sent <= pairs | ends
    assert pairs == {(a, b) for a in range(3) for b in range(3) if a != b}
