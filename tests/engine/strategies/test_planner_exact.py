"""Galaxy's exact planner against brute force, and against its heuristic."""

from itertools import accumulate, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.domain.errors import PlanError
from engine.domain.method_report import PlanAt
from engine.strategies.galaxy.plan import NoRoom, balance, choose, exact_shares, need_bytes_of, task_of
from engine.strategies.galaxy.strategy import Galaxy
from engine.strategies.galaxy.time import MemberTimes
from engine.strategies.planner.exact import best_shares, most_granules
from engine.strategies.shared.demand import demand_of
from engine.strategies.shared.shares import largest_remainder
from tests.support.small_cases import GPT2, LLAMA, plan_of, spec_of, star


def splits(total, parts):
    """All ways to divide `total` units among `parts` members."""
    return [ways for ways in product(range(total + 1), repeat=parts) if sum(ways) == total]


@st.composite
def problems(draw):
    """Tables of seconds of 1 to 4 members, and weights of a head and a granule with every memory."""
    members, heads, granules = draw(st.integers(1, 4)), draw(st.integers(1, 4)), draw(st.integers(1, 5))

    def table(units):
        steps = st.lists(st.integers(0, 5), min_size=units + 1, max_size=units + 1)
        return [list(accumulate(draw(steps))) for _ in range(members)]

    head, granule = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    most = 2 * (head * heads + granule * granules) // members
    memory = draw(st.lists(st.integers(0, most), min_size=members, max_size=members))
    return table(heads), table(granules), head, granule, memory


@settings(max_examples=150, deadline=None)
@given(problems())
def test_exact_shares_are_as_fast_as_any_that_fit_and_there_are_some_if_any_fit(problem):
    mha, mlp, head, granule, memory = problem
    members, heads, granules = len(memory), len(mha[0]) - 1, len(mlp[0]) - 1

    def seconds(a, b):
        of_heads = max(mha[d][n] for d, n in enumerate(a))
        return of_heads + max(mlp[d][n] for d, n in enumerate(b))

    def fits(a, b):
        return all(head * x + granule * y <= have for x, y, have in zip(a, b, memory, strict=True))

    feasible = [
        seconds(a, b) for a in splits(heads, members) for b in splits(granules, members) if fits(a, b)
    ]
    most = [
        most_granules(heads, granules, lambda a, b, have=have: head * a + granule * b <= have)
        for have in memory
    ]
    found = best_shares(mha, mlp, most)
    assert (found is None) == (not feasible)
    if found is not None:
        assert (sum(found[0]), sum(found[1])) == (heads, granules)
        assert fits(*found) and seconds(*found) == min(feasible)


@pytest.mark.parametrize(("units", "members"), [(12, 3), (13, 3), (8, 3), (3, 4), (1, 2)])
def test_members_alike_get_shares_that_differ_by_one_at_most(units, members):
    times = [[float(n) for n in range(units + 1)]] * members
    heads, granules = best_shares(times, times, [[units] * (units + 1)] * members)
    for shares in (heads, granules):
        assert sum(shares) == units and max(shares) - min(shares) <= 1


def test_a_member_has_as_many_granules_as_fit_beside_its_heads():
    assert most_granules(3, 9, lambda a, b: 4 * a + b <= 9) == [9, 5, 1, -1]
    assert most_granules(3, 9, lambda a, b: 4 * a + b <= 21) == [9, 9, 9, 9]
    assert most_granules(2, 9, lambda a, b: False) == [-1, -1, -1]


def cluster_of(rates, memories):
    cluster = star(rates)
    devices = [
        device.model_copy(update={"memory_bytes": size})
        for device, size in zip(cluster.devices, memories, strict=True)
    ]
    return cluster.model_copy(update={"devices": tuple(devices)})


def task(cluster, model, rows=11):
    spec = spec_of("galaxy", model, cluster, rows=rows)
    return task_of("galaxy", cluster, model, demand_of(model, spec.workload, True), overlap=True)


rates = st.lists(st.sampled_from([1e7, 5e7, 2e8, 1e9, 1e10]), min_size=1, max_size=4)


@settings(max_examples=40, deadline=None)
@given(rates, st.sampled_from([GPT2, LLAMA]), st.data())
def test_exact_is_never_predicted_slower_than_balance_and_plans_wherever_there_is_room(rates, model, data):
    memories = [data.draw(st.sampled_from([2.5e4, 4e4, 6e4, 9e4, 4e8])) for _ in rates]
    one = task(cluster_of(rates, memories), model)
    sizes = largest_remainder(one.demand.rows, [1.0] * len(rates))
    need, units = need_bytes_of(one, sizes), model.num_kv_heads
    try:
        exact = choose(one, "exact", "equal").layer_s
    except NoRoom:
        exact = None
    try:
        balance(units, one.granules, one.capacities, need, memories)
        assert exact is not None and exact <= choose(one, "balance", "equal").layer_s * (1 + 1e-9)
    except NoRoom:
        pass
    # room for all: for every division of the heads, the granules that fit beside them
    most = [
        most_granules(units, one.granules, lambda a, b, i=i: need(i, a, b) <= memories[i])
        for i in range(len(rates))
    ]
    room = [
        sum(most[i][n] for i, n in enumerate(ways))
        for ways in splits(units, len(rates))
        if all(most[i][n] >= 0 for i, n in enumerate(ways))
    ]
    assert (exact is not None) == (max(room, default=-1) >= one.granules)


def test_a_member_may_get_all_that_fits():
    """More than fits has no time, and just as much has one."""
    one = task(star([1e9]), GPT2)
    rows = (one.demand.rows,)
    assert exact_shares(one, rows, need_bytes_of(one, rows)) == ((GPT2.num_kv_heads,), (one.granules,))


def test_the_heuristic_misses_room_that_exact_finds():
    """A head of 4 fits only on the second member and fills it; the granule of 1 must go to the first."""

    def need(i, heads, granules):
        return 4 * heads + granules

    with pytest.raises(NoRoom):
        balance(1, 1, (2, 2), need, (3, 4))
    most = [most_granules(1, 1, lambda a, b, have=have: need(0, a, b) <= have) for have in (3, 4)]
    assert best_shares([[0.0] * 2] * 2, [[0.0] * 2] * 2, most) == ((0, 1), (1, 0))


def test_more_than_eight_devices_are_balanced_unless_only_exact_finds_room():
    roomy = plan_of(spec_of("galaxy", GPT2, star([1e9] * 9)))
    assert roomy.layout.planner == "balance"
    assert plan_of(spec_of("galaxy", GPT2, star([1e9, 3e9]), division="balance")).layout.planner == "balance"


def test_the_report_has_every_member_s_shares_and_the_planner():
    cluster = star([1e9, 3e9])
    plan = plan_of(spec_of("galaxy", GPT2, cluster))
    report = Galaxy().summarise(cluster, GPT2, [PlanAt(0.0, plan)], [])
    (told,) = report.plans
    assert told.planner == plan.layout.planner
    assert [member.device for member in told.members] == ["d0", "d1"]
    assert sum(member.heads for member in told.members) == GPT2.num_heads
    assert sum(member.columns for member in told.members) == GPT2.intermediate_size
    assert sum(member.rows for member in told.members) == 11
    assert report.lines()[0].startswith("Shares from 0 s on, chosen by the planner ")


def test_too_little_memory_in_all_is_refused():
    with pytest.raises(PlanError, match=r"and no other device has room for the rest"):
        plan_of(spec_of("galaxy", GPT2, cluster_of([1e9, 1e9], [3e4, 3e4])))


def test_between_the_parts_a_member_adds_and_normalises_its_rows_twice():
    """Additions of 32 numbers, and norms, which are counted as one operation per number."""
    cluster = star([1e9, 1e9], compute_model="flops")
    demand = demand_of(GPT2, spec_of("galaxy", GPT2, cluster, rows=11).workload, True)
    times = MemberTimes(cluster, GPT2, demand, (0, 1), (6, 5), tiles=True)
    assert times.between_s(0) == pytest.approx(2 * (6 * 32 + 6 * 32) / 1e9)
    assert MemberTimes(cluster, GPT2, demand, (0, 1), (11, 0), tiles=True).between_s(1) == 0.0
