"""Max-min fair rates against their definition: brute force over a grid, and a bottleneck for every flow."""

from itertools import product
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.worlds.simulated.flows import max_min_rates

LINKS = [(0, True), (1, True), (2, True)]
routes = st.lists(
    st.lists(st.sampled_from(LINKS), min_size=1, max_size=3, unique=True), min_size=1, max_size=3
)
capacities = st.lists(st.sampled_from([0, 6, 12, 18]), min_size=3, max_size=3)


def fairest_on_a_grid(routes, capacity):
    """Of all allocations in whole bit/s: the one whose smallest rate is largest, then the next, and so on."""
    feasible = (
        rates
        for rates in product(range(19), repeat=len(routes))
        if all(
            sum(rate for rate, route in zip(rates, routes, strict=True) if link in route) <= capacity[link]
            for link in LINKS
        )
    )
    return max(feasible, key=sorted)


@settings(max_examples=60, deadline=None)
@given(routes, capacities)
def test_rates_are_those_that_brute_force_finds(routes, capacities):
    # three flows at most, and capacities that 6 divides: the fair rates are whole numbers
    capacity = dict(zip(LINKS, map(float, capacities), strict=True))
    rates = max_min_rates([tuple(route) for route in routes], capacity.__getitem__)
    assert rates == pytest.approx(list(fairest_on_a_grid(routes, capacity)))


MANY_LINKS = [(index, forward) for index in range(5) for forward in (True, False)]
long_route = st.lists(st.sampled_from(MANY_LINKS), min_size=1, max_size=4, unique=True)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.lists(st.sampled_from(MANY_LINKS), min_size=1, max_size=4, unique=True), min_size=1, max_size=20
    ),
    st.lists(st.floats(0.5, 100.0), min_size=10, max_size=10),
)
def test_every_flow_has_a_full_link_on_which_no_flow_is_faster(routes, capacities):
    # Bertsekas and Gallager, Data Networks, section 6.5.2: an allocation is max-min fair if and only if it
    # is feasible and every flow has such a bottleneck
    capacity = dict(zip(MANY_LINKS, capacities, strict=True))
    rates = max_min_rates([tuple(route) for route in routes], capacity.__getitem__)
    users = {
        link: [rate for rate, route in zip(rates, routes, strict=True) if link in route] for link in capacity
    }
    for link, used in users.items():
        assert sum(used) <= capacity[link] * (1 + 1e-9)
    for rate, route in zip(rates, routes, strict=True):
        assert any(
            sum(users[link]) >= capacity[link] * (1 - 1e-9) and rate >= max(users[link]) * (1 - 1e-9)
            for link in route
        )


def test_three_flows_by_hand():
    # link A (10) carries flows 0 and 1, link B (4) carries 1 and 2: B gives 2 each, and A's rest goes to 0
    capacity = {(0, True): 10.0, (1, True): 4.0}
    rates = max_min_rates([((0, True),), ((0, True), (1, True)), ((1, True),)], capacity.__getitem__)
    assert rates == [8.0, 2.0, 2.0]


def test_a_flow_that_crosses_no_link_has_no_limit():
    assert max_min_rates([(), ((0, True),)], {(0, True): 5.0}.__getitem__) == [inf, 5.0]


def test_the_two_directions_of_a_link_are_not_shared():
    assert max_min_rates([((0, True),), ((0, False),)], lambda link: 5.0) == [5.0, 5.0]
