"""The fastest few: the contract, and that a device more is used only where memory is short."""

import pytest
from fastest_few import FastestFew

import edgeloom
from edgeloom.cluster import ClusterSpec, DeviceSpec, LinkSpec
from edgeloom.testing import check_strategy


@pytest.mark.parametrize("at_least", [1, 2])
def test_it_keeps_the_contract(at_least):
    check_strategy(FastestFew, {"at_least": at_least})


def line_of(memory_bytes):
    """Three devices, the second of which is the fastest and the third the slowest."""
    speeds = {"first": 2e10, "second": 4e10, "third": 1e10}
    devices = [
        DeviceSpec(name=name, flop_per_s=speed, memory_bytes=memory_bytes, memory_byte_per_s=4e9)
        for name, speed in speeds.items()
    ]
    links = [LinkSpec(a="first", b=name, bit_per_s=1e8) for name in ("second", "third")]
    return ClusterSpec(name="three", source="first", devices=devices, links=links)


def devices_with_layers(memory_bytes, **params):
    report = edgeloom.predict(
        line_of(memory_bytes), "gpt2", FastestFew(**params), weights="random", prompt_tokens=16, new_tokens=2
    )
    return [stage.device for stage in report.plan.layout.stages]


def test_a_device_more_takes_part_only_where_memory_is_short():
    assert devices_with_layers(4e9) == [1]
    assert devices_with_layers(3.2e8) == [0, 1]


def test_so_many_take_part_as_are_asked_for():
    assert devices_with_layers(4e9, at_least=3) == [0, 1, 2]
