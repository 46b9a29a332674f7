"""Two levels: the contract, groups of any width, and where they are faster than either level alone."""

import pytest
from two_level import TwoLevel

import edgeloom
from edgeloom.cluster import ClusterSpec, DeviceSpec, LinkSpec, SwitchSpec
from edgeloom.testing import check_strategy


@pytest.mark.parametrize("width", [1, 2, 3])
def test_it_keeps_the_contract(width):
    check_strategy(TwoLevel, {"width": width})


def two_rooms(between_bit_per_s):
    """Two devices in each of two rooms; the link between the rooms is slow."""
    board = {"flop_per_s": 1e10, "memory_bytes": 4e9, "memory_byte_per_s": 4e9}
    devices = [DeviceSpec(name=name, **board) for name in ("a1", "a2", "b1", "b2")]
    links = [LinkSpec(a=device.name, b=f"room-{device.name[0]}", bit_per_s=1e9) for device in devices]
    return ClusterSpec(
        name="two-rooms",
        source="a1",
        devices=devices,
        switches=[SwitchSpec(name="room-a"), SwitchSpec(name="room-b")],
        links=[*links, LinkSpec(a="room-a", b="room-b", bit_per_s=between_bit_per_s)],
    )


def test_a_slow_link_between_rooms_favours_groups():
    """One level of four devices sums over the slow link 48 times a token, two levels send once over it."""
    seconds = {
        width: edgeloom.predict(
            two_rooms(2e7), "gpt2", TwoLevel(width=width), weights="random", prompt_tokens=32, new_tokens=4
        ).latency_s
        for width in (1, 2, 4)
    }
    assert seconds[2] < seconds[4]
    assert seconds[2] < seconds[1]
