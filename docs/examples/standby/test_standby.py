"""Hot standby: the contract, and that a failure costs no token and no new plan."""

import pytest
from standby import Standby

import edgeloom
from edgeloom.cluster import ClusterSpec, DeviceSpec, LinkSpec
from edgeloom.testing import check_strategy


@pytest.mark.parametrize("spare", [True, False])
def test_it_keeps_the_contract(spare):
    check_strategy(Standby, {"spare": spare})


def star():
    """A terminal with three boards; the first is the fastest."""
    speeds = {"first": 6e9, "second": 4e9, "third": 2e9}
    boards = [
        DeviceSpec(name=name, flop_per_s=1e10, memory_bytes=4e9, memory_byte_per_s=speed, disk_byte_per_s=1e8)
        for name, speed in speeds.items()
    ]
    terminal = DeviceSpec(
        name="terminal", role="terminal", flop_per_s=2e10, memory_bytes=4e9, memory_byte_per_s=4e9
    )
    links = [LinkSpec(a="terminal", b=name, bit_per_s=1e8) for name in speeds]
    return ClusterSpec(name="star", source="terminal", devices=[terminal, *boards], links=links)


def run_without(*lost, **params):
    """The report of a run in which these devices are lost, one after the other."""
    changes = [{"kind": "drop_device", "at_s": 1.0 + i, "device": name} for i, name in enumerate(lost)]
    report = edgeloom.predict(
        star(),
        "gpt2",
        Standby(**params),
        weights="random",
        prompt_tokens=16,
        new_tokens=40,
        scenario={"changes": changes},
    )
    assert report.outcome.kind == "finished", report.outcome.sentence
    return report


def new_plans(report):
    return [recovery.replanned for recovery in report.recoveries].count(True)


def test_the_second_device_takes_over_without_a_new_plan_and_sooner_than_with_one():
    calm, lost, planned_again = run_without(), run_without("first"), run_without("first", spare=False)
    assert (new_plans(calm), new_plans(lost), new_plans(planned_again)) == (0, 0, 1)
    assert calm.latency_s < lost.latency_s < planned_again.latency_s


def test_the_loss_of_the_second_device_delays_nothing():
    assert run_without("second").latency_s == pytest.approx(run_without().latency_s)


def test_when_both_are_gone_the_third_goes_on_with_a_new_plan():
    assert new_plans(run_without("first", "second")) == 1
