"""To whom EdgeFormer lends heads, what that takes, and that it is never slower than a plain pipeline."""

from random import Random

import pytest

from engine.domain.cluster import ClusterSpec
from engine.domain.spec import RunSpec
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.runs.predict import predict
from engine.strategies.edgeformer.costs import AttentionRows
from engine.strategies.edgeformer.layout import OwnedBlocks
from engine.strategies.edgeformer.lending import attention_s, lenders_by_rank
from engine.strategies.edgeformer.memory import HeadRooms
from engine.strategies.edgeformer.params import EdgeFormerParams
from engine.strategies.shared.demand import demand_of
from tests.support.small_cases import GPT2, plan_of, spec_of, star

FLOPS = {"compute_model": "flops", "message_overhead_s": 0.0}
ROWS = AttentionRows(1, 32, 32)
HEAD_S = (4 * 8 + 1) * 32 * 32 / 1e6
"""FLOPs of a head of 8 columns over 32 rows (two products, one pass), at 1 MFLOP/s."""
THERE_S, BACK_S = ((112 + n * 32 * 8 * 4) * 8 / 1e8 for n in (3, 1))
"""A frame with Q, K and V of one head there, one with its context back, at 100 Mbit/s."""


def test_attention_at_home_takes_the_device_s_own_time():
    assert attention_s(star([1e6] * 3, **FLOPS), GPT2, 0, {0: 4}, ROWS) == pytest.approx(4 * HEAD_S)


def test_messages_to_several_neighbours_share_the_owner_s_link():
    cluster = star([1e6] * 3, **FLOPS)
    one = attention_s(cluster, GPT2, 0, {0: 1, 1: 1}, ROWS)
    assert one == pytest.approx(THERE_S + HEAD_S + BACK_S)
    both = attention_s(cluster, GPT2, 0, {0: 1, 1: 1, 2: 1}, ROWS)
    assert both == pytest.approx(2 * THERE_S + HEAD_S + 2 * BACK_S)


def test_overheads_delays_and_staging_count_on_both_ways():
    cluster = star([1e9] * 2, compute_model="flops", message_overhead_s=2e-3, staging_byte_per_s=1e6)
    links = tuple(link.model_copy(update={"delay_s": 5e-3}) for link in cluster.links)
    cluster = cluster.model_copy(update={"links": links})
    staged_s = 2 * (3 + 1) * 32 * 8 * 4 / 1e6
    expected = HEAD_S / 1e3 + THERE_S + BACK_S + 2 * 2e-3 + 2 * 2 * 5e-3 + staged_s
    assert attention_s(cluster, GPT2, 0, {1: 1}, ROWS) == pytest.approx(expected)


def lenders(cluster, rows=32, new_tokens=1, **params):
    return plan_of(spec_of("edgeformer", GPT2, cluster, rows, new_tokens, **params)).layout.lenders


def test_slow_devices_lend_heads_and_fast_ones_do_not():
    assert lenders(star([1e5] * 4)) == ((1, 2, 3), (), (), ())
    assert lenders(star([1e5] * 3)) == ((1,), (), ()), "four heads take as long on three devices as on two"
    assert lenders(star([1e12] * 3)) == ((), (), ())
    assert lenders(star([1e12] * 3), lending="paper") == ((1, 2), (), ())
    assert lenders(star([1e12] * 3), scheduling="static") == ((1, 2), (), ())


def test_a_neighbour_that_is_far_slower_gets_no_heads():
    assert lenders(star([1e6, 1e6, 1e3])) == ((1,), (), ())


def test_many_tokens_of_which_each_would_wait_for_a_round_trip_keep_heads_at_home():
    cluster = star([1e8] * 2, message_overhead_s=1e-3)
    assert lenders(cluster, new_tokens=1, rows=60)[0] == (1,)
    assert lenders(cluster, new_tokens=4, rows=60)[0] == ()


def test_an_owner_without_room_for_all_heads_may_lend_to_every_worker():
    cluster, params = star([1e12] * 3), EdgeFormerParams()
    demand = demand_of(GPT2, Workload(prompt_tokens=32, new_tokens=1), True)
    for own, expected in ((4, ()), (3, (1, 2))):
        rooms = HeadRooms((own, 0, 0), (4, 4, 4))
        found = lenders_by_rank(cluster, GPT2, [OwnedBlocks(0, 0, 3)], rooms, demand, params)
        assert found.ranks == (expected, (), ())


def drawn(seed):
    """A cluster, a model and a workload at random: links from 1 Mbit/s to 1 Gbit/s, 0.1 to 50 GFLOP/s."""
    random = Random(f"lending/{seed}")
    number = random.randint(1, 5)
    devices = [
        {
            "name": f"d{i}",
            "flop_per_s": 10 ** random.uniform(8, 10.7),
            "memory_bytes": 8e9,
            "memory_byte_per_s": 10 ** random.uniform(8.5, 10),
            "message_overhead_s": random.choice((0.0, 1e-4, 2e-3)),
        }
        for i in range(number)
    ]
    links = [
        {
            "a": f"d{i}",
            "b": "s1",
            "bit_per_s": 10 ** random.uniform(6, 9),
            "delay_s": random.choice((0.0, 1e-3)),
        }
        for i in range(number)
    ]
    cluster = ClusterSpec(
        name="drawn",
        source=f"d{random.randrange(number)}",
        devices=devices,
        switches=[{"name": "s1"}],
        links=links,
    )
    model = catalogue.resolve(random.choice(("gpt2", "demo-lm", "tinyllama-42m", "bert-base")), "random")[0]
    workload = Workload(
        prompt_tokens=random.choice((4, 32, 150)),
        new_tokens=random.choice((1, 3, 10)) if model.causal else 0,
        requests=random.choice((1, 3)),
        pattern=random.choice(("sporadic", "bursty")),
    )
    return RunSpec(cluster=cluster, model=model, workload=workload, strategy="edgeformer")


def latency_s(spec, strategy, **params):
    return predict(spec.model_copy(update={"strategy": strategy, "params": params})).latency_s


@pytest.mark.parametrize("seed", range(25))
def test_lossless_it_is_predicted_no_slower_than_accelerate_or_the_best_single_device(seed):
    """Accelerate may place the embedding and the head away from a slow source, which EdgeFormer cannot."""
    spec = drawn(seed)
    ours = latency_s(spec, "edgeformer", t_max_mode="none")
    layout = plan_of(spec.model_copy(update={"strategy": "accelerate", "params": {}})).layout
    if {layout.embed, layout.head} == {spec.cluster.source_rank}:
        assert ours <= 1.02 * latency_s(spec, "accelerate")
    assert ours <= 1.01 * min(
        latency_s(spec, "single", device=device.name) for device in spec.cluster.devices
    )


@pytest.mark.parametrize("seed", [*range(12), 39])
def test_by_default_no_pass_is_slower_than_without_pruning_and_quality_is_lost_only_for_time(seed):
    spec = drawn(seed)
    exact_s = latency_s(spec, "edgeformer", t_max_mode="none")
    for t_max in (0.88, 0.5):
        report = predict(spec.model_copy(update={"params": {"t_max": t_max}}))
        pruned = sum(block.pruned for block in report.method.blocks)
        assert report.latency_s < exact_s if pruned else report.latency_s <= exact_s * (1 + 1e-9)


def test_heads_are_pruned_where_that_is_faster_and_else_the_report_says_why_not():
    cluster = star([1e8], memory_bytes=8e9)
    model = catalogue.resolve("narrow-gpt2", "random")[0]
    workload = Workload(prompt_tokens=1000, new_tokens=1, requests=4)
    spec = RunSpec(cluster=cluster, model=model, workload=workload, strategy="edgeformer")
    exact_s = latency_s(spec, "edgeformer", t_max_mode="none")
    report = predict(spec.model_copy(update={"params": {"t_max": 0.3, "expected_hits": 1.0}}))
    assert sum(block.pruned for block in report.method.blocks) > 0
    assert report.latency_s < exact_s
    alone = predict(spec.model_copy(update={"workload": Workload(prompt_tokens=8, new_tokens=1)}))
    (why,) = [line for line in alone.method.lines() if line.startswith("No head is pruned: ")]
    assert "that would save" in why and "finding out which heads to leave out would take" in why


def test_an_owner_that_lends_nothing_says_what_it_would_take():
    spec = drawn(0).model_copy(update={"cluster": star([1e10] * 3, memory_bytes=8e9)})
    lines = predict(spec).method.lines()
    (why,) = [line for line in lines if "lends no heads" in line]
    assert why == "d0 lends no heads: it is through with all of them before a neighbour would be with one."
    far = star([1e10] * 3, memory_bytes=8e9, message_overhead_s=1e-3)
    lines = predict(spec.model_copy(update={"cluster": far})).method.lines()
    assert any("lends no heads: " in line for line in lines)


def test_the_paper_s_own_rules_may_be_slower_and_are_chosen_by_name():
    spec = drawn(0).model_copy(update={"cluster": star([1e10] * 3, memory_bytes=8e9)})
    printed = {"t_max_mode": "none", "lending": "paper", "block_alloc": "even", "cost_model": "paper"}
    assert latency_s(spec, "edgeformer", **printed) > latency_s(spec, "edgeformer", t_max_mode="none")
