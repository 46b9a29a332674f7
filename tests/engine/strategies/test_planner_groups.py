"""The search for a group of devices: against brute force."""

from itertools import combinations
from random import Random

import pytest

from engine.strategies.planner.groups import best_groups


def groups_of(count):
    return [group for size in range(1, count + 1) for group in combinations(range(count), size)]


@pytest.mark.parametrize("count", [1, 3, 5])
def test_of_few_devices_every_group_is_ordered_by_its_time(count):
    times = {group: Random(f"{group}").random() for group in groups_of(count)}
    assert best_groups(range(count), times.__getitem__) == sorted(times, key=times.__getitem__)


@pytest.mark.parametrize("seed", range(5))
def test_of_eight_devices_the_best_group_is_found_where_work_divides_and_messages_add_up(seed):
    random = Random(seed)
    speeds, delays = ([random.uniform(1, 9) for _ in range(8)] for _ in range(2))

    def time_s(group):
        return 40 / sum(speeds[rank] for rank in group) + sum(delays[rank] for rank in group) / 4

    ranks = sorted(range(8), key=lambda rank: -speeds[rank])
    assert best_groups(ranks, time_s)[0] == min(groups_of(8), key=time_s)


def test_of_many_devices_a_bounded_number_of_groups_is_tried():
    tried = []
    best_groups(range(64), lambda group: tried.append(group) or len(group))
    assert len(tried) == len(set(tried)) < 160
