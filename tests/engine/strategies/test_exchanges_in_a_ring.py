"""When the messages of a ring arrive, by hand: each device hands on to its right what came from its left."""

import numpy as np
import pytest

from engine.strategies.planner.exchange import Exchange
from tests.support.small_clusters import star

HOP_S = 0.2
LATE = np.array([1.0, 0.0, 0.0])
"""The first device begins a second after the others; bytes take less than a thousandth of that."""


def exchange() -> Exchange:
    cluster = star(3, delay_s=HOP_S / 2)
    found = Exchange(cluster, cluster.workers)
    assert found.fixed_s[0, 1] == pytest.approx(HOP_S, abs=1e-3)
    return found


def test_the_late_device_s_shard_comes_to_the_next_one_first() -> None:
    arrived_s = exchange().ring_s(LATE, np.full(3, 100.0))
    assert arrived_s == pytest.approx([1.0, 1.0 + HOP_S, 1.0 + 2 * HOP_S], abs=1e-3)


def test_a_sum_waits_for_the_late_device_wherever_its_part_has_to_go() -> None:
    done_s = exchange().all_reduce_s("ring", LATE, 12, 3, np.zeros(3))
    assert done_s == pytest.approx([1.0 + 3 * HOP_S, 1.0 + 4 * HOP_S, 1.0 + 2 * HOP_S], abs=1e-3)


def test_adding_delays_what_is_handed_on_from_there_until_the_sums_are_complete() -> None:
    """Device 1 adds two of the three parts, 0.1 s each, the first while it waits for the second."""
    adding_s = np.array([0.0, 0.3, 0.0])
    done_s = exchange().all_reduce_s("ring", np.zeros(3), 12, 3, adding_s)
    assert done_s == pytest.approx([4 * HOP_S + 0.1, 4 * HOP_S + 0.1, 4 * HOP_S], abs=1e-3)
