"""Which heads EdgeFormer looks up and measures, when it does so, and what it remembers."""

from types import SimpleNamespace

import pytest
import torch

from engine.domain.trace import Mark, Span
from engine.ops.tensors import Meta
from engine.strategies.edgeformer.allocation import by_importance
from engine.strategies.edgeformer.choices import Lookup, MappingTables, Recluster
from engine.strategies.edgeformer.importance import BlockImportance, Projected
from engine.strategies.edgeformer.params import EdgeFormerParams
from engine.strategies.edgeformer.table_size import entry_bytes
from tests.engine.strategies.test_edgeformer import SLOW, after_a_change, heads_of, run
from tests.support.memory_world import Handle, run_in_memory
from tests.support.small_cases import GPT2, plan_of, play, prompts, spec_of, star

PRUNING = {"t_max": 0.7, "prune": "paper"}
"""Of four heads the ratio of 0.7 keeps three, whatever deciding costs."""


def three_prompts():
    return prompts(spec_of("edgeformer", GPT2, SLOW, requests=3))


def decided(world, kind, rank=0):
    return [name for name in world.devices[rank].decided if name.startswith(kind)]


def test_only_heads_that_may_have_to_go_are_measured():
    _, _, marks = run(GPT2, requests=three_prompts(), tau=0.0, on_miss="exact", **PRUNING)
    for layer in range(GPT2.num_layers):
        first, *later = heads_of(marks, layer)
        assert (first["hits"], first["measured"]) == (0, 4)
        for facts in later:
            assert (facts["hits"], facts["misses"]) == (0, 4)
            assert 1 <= facts["measured"] <= 4
    assert sum(facts["measured"] for facts in heads_of(marks)) < 3 * 3 * 4


def test_the_head_that_goes_is_the_least_important_one_by_exact_measurement():
    _, _, every = run(GPT2, requests=three_prompts(), tau=-1.0, **PRUNING)
    _, _, few = run(GPT2, requests=three_prompts(), tau=0.0, on_miss="exact", **PRUNING)
    first_layer = [[facts["device_of"].index(-1) for facts in heads_of(marks, 0)] for marks in (every, few)]
    assert first_layer[0][0] == first_layer[1][0], "the first prompt is measured completely either way"
    assert all(facts["device_of"].count(-1) == 1 for facts in heads_of(few))


def test_nearest_measures_nothing_after_the_first_prompt():
    _, world, marks = run(GPT2, requests=three_prompts(), tau=0.0, on_miss="nearest", **PRUNING)
    assert len(decided(world, "importance")) == GPT2.num_layers
    assert [facts["measured"] for facts in heads_of(marks, 1)][:1] == [4]
    assert all(facts["measured"] == 0 for facts in heads_of(marks, 1)[1:])


@pytest.mark.parametrize(("op_overhead_s", "measures"), [(0.0, True), (1.0, False)])
def test_by_cost_measures_only_where_that_takes_less_than_pruning_saves(op_overhead_s, measures):
    cluster = star([1e6], op_overhead_s=op_overhead_s)
    spec = spec_of(
        "edgeformer", GPT2, cluster, rows=40, requests=2, prune="paper", t_max=0.1, tau=0.0, expected_hits=0.0
    )
    marks = [item.facts for item in play(spec) if isinstance(item, Mark) and item.name == "heads"]
    assert {facts["measured"] for facts in marks[:3]} == {4}
    assert {bool(facts["measured"]) for facts in marks[3:]} == {measures}


class Surprised:
    """A `Ctx` whose tables know no head within τ, and where every measured head proves to be important."""

    rank, model = 0, GPT2
    cluster_now = star([1e15], op_overhead_s=1.0)

    def compute(self, op, *inputs):
        return Handle().finish(op.cost(self.model, inputs, 0).output)

    def decide(self, name, choice, *inputs):
        if isinstance(choice, Lookup):
            return {"raw": [0.1, 0.2, 0.3, 0.4], "hit": [False] * 4}
        return [1.0] * len(choice.heads)

    @property
    def managed_memory(self):
        return self

    def reserve(self, what, size_bytes):
        pass


@pytest.mark.parametrize(("saving_s", "measured"), [(1.0, 0), (3.0, 1), (5.0, 2), (20.0, 4)])
async def test_by_cost_counts_all_measurements_of_a_block_against_what_pruning_saves(saving_s, measured):
    # One head has to go. Measuring the least takes two kernels of a second and shows it to be important,
    # so that another one is the least.
    params = EdgeFormerParams(on_miss="by_cost")
    state = SimpleNamespace(
        params=params, tables=MappingTables(params, 64, False), weighed_heads={0: 0}, version=0
    )
    step = SimpleNamespace(index=0, requests=(0,))
    packed, queries, keys_values = (Meta((1, heads, 11, GPT2.head_dim)) for heads in (12, 4, 8))
    block = BlockImportance(Surprised(), state, step, 0, Projected(packed, queries, keys_values))
    scores = await block.scores(lambda raw: by_importance(raw)[-1:], saving_s)
    assert scores.measured == measured
    assert scores.raw == (1.0,) * measured + (0.1, 0.2, 0.3, 0.4)[measured:]


def test_raw_importance_thresholds_need_the_importance_of_all_heads():
    _, world, _ = run(GPT2, requests=three_prompts(), tau=0.0, on_miss="exact", prune_below=-1.0)
    assert len(decided(world, "hits")) == 3 * GPT2.num_layers


def test_heads_that_were_measured_and_stay_are_attended_by_the_same_weights():
    spec = spec_of("edgeformer", GPT2, star([1e6]), new_tokens=1, **PRUNING)
    spans = [item.name for item in play(spec) if isinstance(item, Span)]
    assert [spans.count(name) for name in ("weigh", "statistics", "mix", "importance")] == [3, 3, 3, 0]
    flops = sum(item.flops for item in play(spec) if isinstance(item, Span))
    short = plan_of(spec)
    layout = short.layout.model_copy(update={"weighed_heads": (0,)})
    again = play(spec, short.model_copy(update={"layout": layout}))
    spans = [item.name for item in again if isinstance(item, Span)]
    assert [spans.count(name) for name in ("weigh", "mix", "importance")] == [0, 0, 3]
    saved = sum(item.flops for item in again if isinstance(item, Span)) - flops
    assert saved == 3 * 3 * (2 * 11 * 11 * GPT2.head_dim + 11 * 11), (
        "Q·K and softmax of three heads and layers"
    )


@pytest.mark.parametrize("weighed", [4, 0])
def test_measuring_by_kept_weights_gives_the_same_logits(weighed):
    spec = spec_of("edgeformer", GPT2, SLOW, lending="paper", **PRUNING)
    plan = plan_of(spec)
    assert plan.layout.weighed_heads[0] == 4
    layout = plan.layout.model_copy(update={"weighed_heads": (weighed, 0, 0)})
    source, _ = run_in_memory(spec, plan.model_copy(update={"layout": layout}), prompts(spec))
    expected, _, _ = run(GPT2, lending="paper", **PRUNING)
    torch.testing.assert_close(torch.stack(source.logits[0]), torch.stack(expected.logits[0]))


def test_a_change_after_a_prefill_without_scores_is_decided_by_the_token_s_own_attention():
    trace, moves = after_a_change("link", t_max=1.0, on_change="reallocate", cost_model="corrected")
    before = [item for item in trace if isinstance(item, Mark) and item.name == "heads"]
    assert {(facts.facts["hits"], facts.facts["misses"]) for facts in before[:2]} == {(0, 0)}
    assert moves
    pruned = [facts for facts in moves if -1 in facts["device_of"]]
    assert pruned
    names = [item.facts["decision"] for item in trace if isinstance(item, Mark) and item.name == "decided"]
    assert names and all(name.startswith("importance.") for name in names)


def test_the_mapping_tables_count_in_the_memory_ledger():
    spec = spec_of("edgeformer", GPT2, star([1e6]), requests=3, tau=0.0, on_miss="exact", **PRUNING)
    assert plan_of(spec).layout.table_entries == (12,)
    trace = play(spec)
    entries = 3 * (4 + 1 + 1)  # all heads of the first prompt, then one missed head of each
    last = [item.facts for item in trace if isinstance(item, Mark) and item.name == "memory"][-1]
    kept = last["resident_bytes"] - last["weights_bytes"] - last["kv_bytes"]
    assert kept == entries * entry_bytes(GPT2) == entries * 16 * (2 * 8 + 64 + 4)


def test_tables_get_the_memory_that_heads_leave():
    def layout(memory_bytes, **params):
        return plan_of(
            spec_of("edgeformer", GPT2, star([1e10], memory_bytes=memory_bytes), requests=50, **params)
        ).layout

    ample, scarce = layout(4e8), layout(2.4e5)
    assert (ample.table_entries, ample.own_heads) == ((200,), (4,))
    assert 0 < scarce.table_entries[0] < 200 and scarce.own_heads == (4,)
    assert layout(4e8, t_max_mode="none").table_entries == (0,), "nothing is ever looked up"


def test_a_new_plan_keeps_the_tables_of_its_blocks_within_its_memory():
    tables = MappingTables(EdgeFormerParams(tau=0.0), 100, same_prompt=False)
    for layer in (0, 1):
        tables.table(layer, 4).learn(torch.randn(6, 7).numpy(), [0.0] * 6)
        tables.count(layer, 6)
    tables.adopt(5, [1, 2])
    assert dict(tables.num_entries) == {1: 5}
    assert list(tables.tables) == [1]
    assert len(tables.tables[1]) == 5


def test_clusters_are_recomputed_between_requests_one_table_at_a_time_and_never_inside_a_block():
    tables = MappingTables(EdgeFormerParams(), 4096, same_prompt=False)
    for layer, count in ((0, 300), (1, 500), (2, 20)):
        tables.table(layer, 4).learn(torch.randn(count, 7).numpy(), [0.0] * count)
    recluster = Recluster(tables)
    assert [recluster(), recluster(), recluster()] == [[1], [0], []]
    assert recluster.prior() == []


def test_an_owner_reclusters_after_a_request_and_not_after_the_last():
    _, world, _ = run(GPT2, requests=three_prompts(), tau=0.0, **PRUNING)
    assert len(decided(world, "reclustered")) == 2
    assert not decided(world, "reclustered", rank=1)


def test_the_smallest_number_of_heads_is_kept_under_any_deadline():
    _, _, marks = run(GPT2, t_max_mode="block_s", t_max=1e-9, min_keep=2)
    assert all(facts["device_of"].count(-1) == 2 for facts in heads_of(marks))
