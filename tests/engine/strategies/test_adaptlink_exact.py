"""AdaptLink's exact choice of roles and shares: against other methods and brute force, as simulated."""

from itertools import product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.domain.errors import PlanError
from engine.domain.trace import Span
from engine.models import catalogue
from engine.strategies.adaptlink.choice import filled
from engine.strategies.adaptlink.plan import plan_of_roles
from engine.strategies.adaptlink.roles import roles_with_backups
from engine.strategies.adaptlink.shares import Split
from engine.strategies.adaptlink.time import RequestTime, SplitTime
from engine.strategies.shared.demand import demand_of
from tests.support.adaptlink_cases import room_of, tight
from tests.support.small_cases import BERT, GPT2, LLAMA, plan_of, play, spec_of, star

WIDE = GPT2.model_copy(
    update={"num_layers": 4, "hidden_size": 256, "head_dim": 64, "intermediate_size": 2048}
)


def latency_s(spec, plan=None):
    return max(item.end_s for item in play(spec, plan) if isinstance(item, Span))


def at_rates(spec, bit_per_s):
    """`spec` with these rates of its links, the last one for all further links."""
    links = [
        link.model_copy(update={"bit_per_s": bit_per_s[min(i, len(bit_per_s) - 1)]})
        for i, link in enumerate(spec.cluster.links)
    ]
    return spec.model_copy(update={"cluster": spec.cluster.model_copy(update={"links": tuple(links)})})


def changed(spec, strategy="adaptlink", **params):
    kept = spec.params if strategy == "adaptlink" else {}
    return spec.model_copy(update={"strategy": strategy, "params": kept | params})


cases = st.tuples(
    st.sampled_from([WIDE, LLAMA, BERT]),
    st.floats(-0.2, 0.95),
    st.lists(st.floats(8.5, 11.5), min_size=2, max_size=5),
    st.sampled_from([0.4, 0.9, 1.5]),
    st.lists(st.floats(7, 10.5), min_size=6, max_size=6),
    st.booleans(),
)


def spec_of_case(case):
    model, over, powers, others, links, terminal = case
    rates = [10**power for power in powers]
    spec = tight(model, over, rates=rates, others=others, terminal=terminal, comm_mode="exact")
    return at_rates(spec, [10**power for power in links])


@settings(max_examples=40, deadline=None)
@given(cases)
def test_a_request_is_never_slower_than_by_equation_5_or_on_any_single_device(case):
    spec = spec_of_case(case)
    others = [changed(spec, comm_mode="eq5"), changed(spec, comm_mode="none")]
    others += [changed(spec, "edge_only", beta=1.0, bits="none")]
    others += [changed(spec, "single", device=f"d{rank}") for rank in spec.cluster.workers]
    times_s = []
    for other in others:
        try:
            times_s.append(latency_s(other))
        except PlanError:
            continue
    try:
        took_s = latency_s(spec)
    except PlanError:
        assert not times_s, "another method has a plan"
        return
    # a secondary more must save one percent, and heads that move are not in the predicted time
    if not plan_of(spec).layout.heads:
        assert took_s <= min(times_s, default=took_s) * 1.02


def drawn_case(draw):
    """As `cases` draws them; in half of them all links are equal."""
    rates = [draw.uniform(8.5, 11.5) for _ in range(draw.randint(2, 5))]
    links = [draw.uniform(7, 10.5) for _ in range(6)]
    model, over = draw.choice([WIDE, LLAMA, BERT]), draw.uniform(-0.2, 0.95)
    some = [links, 6 * links[:1]]
    return model, over, rates, draw.choice([0.4, 0.9, 1.5]), draw.choice(some), draw.random() < 0.5


def predicted_to_simulated(case):
    """The predicted time of a request, with that of both its ends, as a multiple of the simulated one.

    None if there is no plan, or heads move in it, which the prediction leaves out.
    """
    spec = spec_of_case(case)
    try:
        plan = plan_of(spec)
    except PlanError:
        return None
    layout, model = plan.layout, spec.model
    if layout.heads:
        return None
    times = RequestTime(spec.cluster, model, demand_of(model, spec.workload, True))
    predicted_s = times.alone_s(layout.primary)
    if layout.split_layers:
        split = SplitTime(times, layout.primary, [shard.device for shard in layout.shards[1:]])
        number = len(layout.split_layers)
        each_s = split.split_s([shard.stop - shard.start for shard in layout.shards])
        whole_s = (model.num_layers - number) * times.layer_s(layout.primary)
        predicted_s = times.ends_s(layout.primary) + whole_s + number * each_s
    spans = [item for item in play(spec, plan) if isinstance(item, Span)]
    ends_s = sum(
        item.end_s - item.start_s
        for item in spans
        if item.name in ("embed", "head") and item.kind == "compute"
    )
    return (predicted_s + ends_s) / max(item.end_s for item in spans)


def test_the_predicted_request_is_nearly_the_simulated_one_but_for_the_ends():
    """The prediction lets all messages on a link arrive together: sometimes it is off by more than 8 %."""
    draw = Random(11)
    found = [ratio for _ in range(80) if (ratio := predicted_to_simulated(drawn_case(draw))) is not None]
    assert len(found) > 40
    assert min(found) > 0.8 and max(found) < 1.25
    assert sum(abs(ratio - 1) <= 0.08 for ratio in found) >= 0.9 * len(found)


@pytest.mark.parametrize("over", [-0.1, 0.2, 0.6])
@pytest.mark.parametrize("bit_per_s", [1e8, 1e10])
def test_of_all_shares_and_split_layers_of_two_devices_none_is_faster(over, bit_per_s):
    spec = tight(WIDE, over, rates=(2e10, 1e10), others=1.5, grid=16, comm_mode="exact", split="if_faster")
    spec = at_rates(spec, [bit_per_s])
    room = room_of(spec.cluster, WIDE, spec.workload)
    every = []
    for primary, kept, number in product((0, 1), range(16), range(WIDE.num_layers + 1)):
        split = Split(number, (kept, 16 - kept))
        ranks = (primary, 1 - primary) if number else (primary,)
        if not number:
            split = Split(0, (16,))
        try:
            roles = roles_with_backups(room, ranks, split, 16, (), False)
            plan = plan_of_roles(spec.cluster, WIDE, room.demand, room.ends, roles)
        except PlanError:
            continue
        every.append(latency_s(spec, plan))
        if not number and kept:
            break
    assert latency_s(spec) <= min(every) * 1.012


def test_a_model_of_13b_splits_fewer_layers_than_by_equation_5_and_is_twice_as_fast():
    """24 GB, 1 Gbit/s: equation 5 leaves the primary so much of every layer that all 40 are split."""
    model = catalogue.resolve("llama-2-13b", "random")[0]
    # the largest device keeps the ends, too
    cluster = star(
        [8e13] * 5, memory_bytes=24e9, memory_byte_per_s=1e12, op_overhead_s=5e-6, message_overhead_s=30e-6
    )
    spec = at_rates(spec_of("adaptlink", model, cluster, rows=64, new_tokens=4), [1e9])
    printed = changed(spec, comm_mode="eq5")
    counts = [len(plan_of(one).layout.split_layers) for one in (spec, printed)]
    assert counts[0] < 0.6 * counts[1]
    assert latency_s(spec) < 0.6 * latency_s(printed)


def test_layers_of_a_model_that_fits_are_split_only_where_that_was_asked_for_and_is_faster():
    spec = at_rates(
        spec_of("adaptlink", WIDE, star([1e9, 1e9], memory_byte_per_s=1e9), rows=32, new_tokens=1), [1e10]
    )
    assert not plan_of(spec).layout.split_layers, "the paper leaves a model that fits alone"
    quick = changed(spec, split="if_faster")
    assert len(plan_of(quick).layout.split_layers) == WIDE.num_layers
    assert latency_s(quick) < 0.8 * latency_s(changed(spec, comm_mode="none"))
    assert not plan_of(changed(spec, comm_mode="none")).layout.split_layers
    assert not plan_of(changed(spec, comm_mode="eq5")).layout.split_layers


def test_none_splits_nothing_and_needs_the_memory_for_it():
    with pytest.raises(PlanError, match="needs"):
        plan_of(tight(GPT2, 0.3, comm_mode="none"))
    spec = tight(GPT2, -0.1, comm_mode="none")
    assert plan_of(spec).layout.split_layers == ()


@pytest.mark.parametrize("mode", ["exact", "eq5"])
def test_attention_moves_only_if_it_may(mode):
    spec = tight(GPT2, 1.1, rates=(4e10, 2.5e10, 1e10), others=3, primary="d0", comm_mode=mode)
    assert plan_of(spec).layout.heads
    with pytest.raises(PlanError, match="needs"):
        plan_of(changed(spec, offload_attention="none"))


@given(
    st.integers(0, 6),
    st.lists(st.tuples(st.floats(0.1, 3), st.floats(0, 5), st.integers(0, 6)), min_size=1, max_size=3),
)
def test_blocks_are_dealt_out_as_brute_force_would(total, devices):
    block_s, first_s, caps = zip(*devices, strict=True)

    def slowest(sizes):
        return max(
            (first + n * each for n, first, each in zip(sizes, first_s, block_s, strict=True) if n),
            default=0.0,
        )

    every = [sizes for sizes in product(*(range(cap + 1) for cap in caps)) if sum(sizes) == total]
    given = filled(total, block_s, first_s, caps)
    if not every:
        assert given is None
    else:
        assert sum(given) == total and all(n <= cap for n, cap in zip(given, caps, strict=True))
        assert slowest(given) == pytest.approx(min(map(slowest, every)))
