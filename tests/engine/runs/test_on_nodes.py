"""A run on boards needs a board for each device, and takes nothing that boards cannot have."""

import pytest

from engine.domain.errors import SpecError
from engine.domain.network import LoopbackNetwork
from engine.domain.scenario import (
    DropDevice,
    FreezeDevice,
    JoinDevice,
    LinkDown,
    Scenario,
    SetDelay,
    SetJitter,
    SetLoss,
    SetRate,
    SlowDevice,
)
from engine.domain.spec import MethodOrigin
from engine.domain.trace import Span
from engine.runs.execute import execute
from engine.runs.on_nodes import check_keeps_up, check_on_nodes, played_by_server
from engine.worlds.real.dilation import CAUTIOUS
from tests.support.boards import bound
from tests.support.fake_devices import small_spec


def with_nodes(spec, *names):
    devices = tuple(
        device.model_copy(update={"node": name})
        for device, name in zip(spec.cluster.devices, names, strict=True)
    )
    return spec.model_copy(update={"cluster": spec.cluster.model_copy(update={"devices": devices})})


def test_a_cluster_of_boards_is_right_also_where_one_board_is_several_devices():
    check_on_nodes(bound(small_spec()))
    check_on_nodes(with_nodes(small_spec(dilation="nodes"), "pi-a", "pi-b", "pi-a"))


def mixed(**settings):
    return with_nodes(small_spec(dilation="nodes", **settings), "pi-a", "", "")


def test_devices_that_are_no_boards_are_played_and_then_links_are_as_drawn():
    check_on_nodes(mixed())
    assert played_by_server(mixed()) == ["d1", "d2"] and not played_by_server(small_spec())
    with pytest.raises(SpecError, match="d1 is no board but played"):
        check_on_nodes(mixed().model_copy(update={"board_links": "given"}))
    with pytest.raises(SpecError, match="has no device that is bound to a board"):
        check_on_nodes(small_spec(dilation="nodes"))


def span(device, start_s, end_s, flops):
    return Span(device, "compute", "mlp", 0, start_s, end_s, flops=flops, bytes=2 * flops)


@pytest.mark.parametrize(
    ("own_s", "others_s", "words"),
    [(0.03, 1e-9, ""), (0.02, 1.0, "one operation would have to take 1.45 times as long")],
)
def test_the_server_plays_what_it_keeps_up_with_and_says_by_how_much_it_does_not(own_s, others_s, words):
    """1e8 bytes at 6e9 byte/s, a fifth more beside others, and 0.3 ms of the runtime are 20.3 ms: that may be
    0.7 of an operation. What boards compute is not asked.
    """
    trace = [span("d1", 0.0, own_s, 50_000_000), span("d0", 0.0, others_s, 50_000_000)]
    if not words:
        check_keeps_up(mixed(), trace, CAUTIOUS, cores=4)
        return
    with pytest.raises(SpecError, match=words):
        check_keeps_up(mixed(), trace, CAUTIOUS, cores=4)


def test_boards_get_no_code():
    with pytest.raises(SpecError, match="boards get no code"):
        check_on_nodes(bound(small_spec()).model_copy(update={"method": MethodOrigin(package="theirs")}))


def changed_by(*changes, **settings):
    return bound(small_spec()).model_copy(update={"scenario": Scenario(changes=changes)} | settings)


LINK = small_spec().cluster.links[0].name


def test_boards_change_rates_and_delays_and_can_be_dropped():
    rate, delay = SetRate(at_s=1, link=LINK, bit_per_s=1e6), SetDelay(at_s=1, link=LINK, delay_s=0.01)
    check_on_nodes(changed_by(rate, delay, DropDevice(at_s=1.0, device="d1")))
    with pytest.raises(SpecError, match="to change links, let them be as drawn"):
        check_on_nodes(changed_by(rate, board_links="given"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (SetLoss(at_s=1, link=LINK, loss_frac=0.1), "slowed down and never lost"),
        (SetJitter(at_s=1, link=LINK, jitter_s=0.1), "slowed down and never lost"),
        (LinkDown(at_s=1, link=LINK), "slowed down and never lost"),
        (SlowDevice(at_s=1, device="d1", factor=2), "computes as fast as it is"),
        (FreezeDevice(at_s=1, device="d1"), "computes as fast as it is"),
        (JoinDevice(at_s=1, device="d1"), "does not come back"),
    ],
)
def test_what_boards_cannot_do_is_refused_with_what_they_can(change, words):
    with pytest.raises(SpecError, match=words) as caught:
        check_on_nodes(changed_by(change))
    assert caught.value.fields[0][0] == "scenario"


def test_without_a_way_to_the_boards_such_a_run_is_refused_and_not_run_here():
    with pytest.raises(SpecError, match="through the server"):
        execute(bound(small_spec()), lambda spec, dilation: LoopbackNetwork(spec.cluster))
