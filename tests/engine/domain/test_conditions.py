"""The cluster after changes: each direction alone, speeds against the given cluster, devices that fail."""

import pytest

from engine.domain.cluster import DeviceSpec
from engine.domain.conditions import Conditions, absent_at_start, changed_link, slowed_device
from engine.domain.errors import SpecError
from engine.domain.scenario import (
    DropDevice,
    FreezeDevice,
    JoinDevice,
    LinkDown,
    Scenario,
    SetDelay,
    SetLoss,
    SetRate,
    SlowDevice,
)
from tests.support.small_clusters import cluster, link

LINK = link("a", "b", 8e6, reverse_bit_per_s=4e6, delay_s=0.01, loss_frac=0.1)
DRAWN = cluster("a b c", "", LINK, link("b", "c", 2e6))
STAR = cluster("a b c", "hub", *(link(name, "hub", 1e6) for name in "abc"))


def both(of):
    return of(True), of(False)


@pytest.mark.parametrize(
    ("direction", "rates"), [("both", (1e6, 1e6)), ("forward", (1e6, 4e6)), ("backward", (8e6, 1e6))]
)
def test_a_rate_changes_in_the_asked_directions_only(direction, rates):
    changed = changed_link(LINK, SetRate(at_s=0, link="a--b", bit_per_s=1e6, direction=direction))
    assert both(changed.rate) == rates
    assert both(changed.delay) == (0.01, 0.01)
    assert both(changed.loss) == (0.1, 0.1)


@pytest.mark.parametrize(
    ("direction", "figures"), [("both", (0.5, 0.5)), ("forward", (0.5, None)), ("backward", (None, 0.5))]
)
def test_delays_and_packet_loss_change_in_the_asked_directions_only(direction, figures):
    later = changed_link(LINK, SetDelay(at_s=0, link="a--b", delay_s=0.5, direction=direction))
    assert both(later.delay) == tuple(0.01 if figure is None else figure for figure in figures)
    lossy = changed_link(LINK, SetLoss(at_s=0, link="a--b", loss_frac=0.5, direction=direction))
    assert both(lossy.loss) == tuple(0.1 if figure is None else figure for figure in figures)
    assert both(later.rate) == both(lossy.rate) == (8e6, 4e6)


def test_a_device_is_slowed_against_its_given_speed_however_often():
    now = Conditions(DRAWN)
    for factor in (4.0, 2.0):
        now.apply(SlowDevice(at_s=0, device="b", factor=factor))
    given, slowed = DRAWN.devices[1], now.cluster.devices[1]
    assert slowed.flop_per_s == given.flop_per_s / 2
    assert slowed.memory_byte_per_s == given.memory_byte_per_s / 2
    assert slowed.op_overhead_s == given.op_overhead_s * 2
    assert slowed.measured_scale == given.measured_scale * 2
    assert slowed.memory_bytes == given.memory_bytes
    now.apply(SlowDevice(at_s=0, device="b", factor=1.0))
    assert now.cluster.devices[1] == given


def test_on_a_slowed_device_every_rate_is_divided_and_every_cost_of_an_operation_multiplied():
    costs = {"op_overhead_s": 1e-6, "dispatch_s": 2e-6, "token_s": 3e-6, "handover_s": 4e-6}
    rates = {
        "family_rates": [{"family": "gpt2", "flop_per_s": 4e9}],
        "format_rates": [
            {"bits": 8, "flop_per_s": 8e9, "basis": "published measurement"},
            {"bits": 4, "flop_per_s": 2e9, "basis": "published measurement"},
        ],
    }
    device = DeviceSpec.model_validate(DRAWN.devices[1].model_dump() | costs | rates)
    slowed = slowed_device(device, 4.0)
    assert [getattr(slowed, name) for name in costs] == [4e-6, 8e-6, 12e-6, 16e-6]
    assert [row.flop_per_s for row in slowed.family_rates] == [1e9]
    assert [(row.bits, row.flop_per_s) for row in slowed.format_rates] == [(8, 2e9), (4, 0.5e9)]


def test_a_failed_device_is_a_terminal_until_it_joins_and_keeps_its_speed():
    now = Conditions(DRAWN)
    now.mark_failed(1)
    now.apply(SlowDevice(at_s=0, device="b", factor=2.0))
    assert (now.failed, now.cluster.workers) == ({1}, (0, 2))
    now.join(1)
    assert (now.failed, now.cluster.workers) == (frozenset(), (0, 1, 2))
    assert now.cluster.devices[1].flop_per_s == DRAWN.devices[1].flop_per_s / 2


def test_routes_stay_those_of_the_given_cluster():
    now = Conditions(DRAWN, absent=[1])
    now.apply(SetRate(at_s=0, link="b--c", bit_per_s=1.0))
    assert now.cluster.path(0, 2) == DRAWN.path(0, 2)
    assert DRAWN.links[1].bit_per_s == 2e6


def test_a_cut_link_changes_nothing_that_planners_see():
    now = Conditions(DRAWN)
    now.apply(LinkDown(at_s=0, link="a--b"))
    assert now.cluster == DRAWN


def test_devices_whose_first_change_is_to_join_are_absent_at_the_start():
    changes = (
        FreezeDevice(at_s=0, device="a"),
        DropDevice(at_s=1, device="b"),
        JoinDevice(at_s=2, device="b"),
        JoinDevice(at_s=3, device="c"),
        DropDevice(at_s=4, device="c"),
    )
    assert absent_at_start(STAR, Scenario(changes=changes)) == {2}


@pytest.mark.parametrize(
    "cut",
    [
        DropDevice(at_s=1, device="b"),  # c is behind b
        LinkDown(at_s=1, link="a--b"),
        LinkDown(at_s=1, link="b--c"),
        SetLoss(at_s=1, link="c--b", loss_frac=1.0, direction="backward"),
    ],
)
def test_a_device_that_was_cut_off_before_it_joins_was_there_from_the_start(cut):
    join = JoinDevice(at_s=2, device="c")
    assert absent_at_start(DRAWN, Scenario(changes=(cut, join))) == frozenset()
    assert absent_at_start(DRAWN, Scenario(changes=(join, cut.model_copy(update={"at_s": 3})))) == {2}


def test_the_cut_of_another_device_says_nothing_about_the_one_that_joins():
    changes = (LinkDown(at_s=1, link="b--hub"), JoinDevice(at_s=2, device="c"))
    assert absent_at_start(STAR, Scenario(changes=changes)) == {2}


def test_a_device_that_freezes_and_joins_again_was_there_from_the_start():
    changes = (FreezeDevice(at_s=1, device="b"), JoinDevice(at_s=2, device="b"))
    assert absent_at_start(DRAWN, Scenario(changes=changes)) == frozenset()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (SetRate(at_s=0, link="a--c", bit_per_s=1), r"changes\[1\]: cluster test has no link a--c"),
        (DropDevice(at_s=0, device="z"), r"changes\[1\]: cluster test has no device z"),
    ],
)
def test_a_scenario_may_only_name_what_the_cluster_has(change, message):
    fine = LinkDown(at_s=0, link="b--a")
    Scenario(changes=(fine,)).check(DRAWN)
    with pytest.raises(SpecError, match=message):
        Scenario(changes=(fine, change)).check(DRAWN)
