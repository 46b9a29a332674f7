"""What planning says a message takes, against the simulated world and by hand."""

import pytest

from engine.domain.message_costs import receiver_cost_s, sender_cost_s
from engine.program.frames import framed_bytes
from engine.strategies.shared.all_reduce_time import cluster_all_reduce_s
from engine.strategies.shared.messages import fixed_s, message_s
from tests.support.small_cases import star

SENDER = {"message_overhead_s": 1e-3, "receive_overhead_s": 50e-3, "byte_overhead_s": 1e-6}
RECEIVER = {
    "message_overhead_s": 70e-3,
    "receive_overhead_s": 2e-3,
    "byte_overhead_s": 2e-6,
    "staging_byte_per_s": 1e6,
}


def pair():
    cluster = star([1e10, 1e10])
    ends = zip(cluster.devices, (SENDER, RECEIVER), strict=True)
    links = tuple(link.model_copy(update={"bit_per_s": 8e6, "delay_s": 5e-3}) for link in cluster.links)
    return cluster.model_copy(
        update={"devices": tuple(device.model_copy(update=costs) for device, costs in ends), "links": links}
    )


def test_a_message_costs_the_sender_its_own_and_the_receiver_what_receiving_takes():
    cluster = pair()
    delay_s, size = cluster.delay_s(0, 1), framed_bytes(1000)
    assert delay_s > 0
    assert fixed_s(cluster, 0, 1) == pytest.approx(1e-3 + 2e-3 + delay_s)
    by_hand_s = size * (1e-6 + 1e-6 + 2e-6 + 1e-6) + 1e-3 + 2e-3 + delay_s  # link, sender, receiver, staging
    assert message_s(cluster, 0, 1, 1000) == pytest.approx(by_hand_s)
    ends_s = sender_cost_s(cluster.devices[0], size) + receiver_cost_s(cluster.devices[1], size)
    assert message_s(cluster, 0, 1, 1000) - ends_s == pytest.approx(size * 1e-6 + delay_s)
    assert message_s(cluster, 0, 0, 1000) == 0.0


def test_a_hop_of_a_sum_takes_what_receiving_takes_too():
    cluster = pair()
    worst_s = fixed_s(cluster, 1, 0)
    assert worst_s > fixed_s(cluster, 0, 1)
    assert cluster_all_reduce_s(cluster, (0, 1), 1000, "direct") == pytest.approx(1e-3 + worst_s)
