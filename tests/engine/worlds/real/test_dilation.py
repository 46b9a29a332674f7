"""The dilation is the smallest at which this machine keeps up."""

from typing import Any

import pytest

from engine.domain.cluster import ClusterSpec, DeviceSpec, LinkSpec
from engine.domain.host_times import CallCosts, HostProfile, MeasuredRow, PackedRow
from engine.domain.model import ModelSpec
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark, Span
from engine.ops.cost import INLINE_FLOPS
from engine.worlds.real.dilation import (
    CAUTIOUS,
    CROWDED,
    INLINE_HOST_S,
    OP_HEADROOM,
    OP_HOST_S,
    choose_dilation,
    demands,
    host_s,
    runtime_s,
)

FLOP_PER_S = 1e9  # of the host, for products of any number of rows
PROFILE = HostProfile(
    host="test",
    products=(MeasuredRow(rows=1, s_per_flop=1 / FLOP_PER_S),),
    elementwise_s_per_element=1e-9,
    op_overhead_s=1e-9,
    memory_byte_per_s=1e15,
)
DEVICE = DeviceSpec(name="a", flop_per_s=1e9, memory_bytes=1e9, memory_byte_per_s=1e9)
MODEL = ModelSpec(
    name="m",
    family="gpt2",
    num_layers=1,
    hidden_size=8,
    num_heads=2,
    num_kv_heads=2,
    head_dim=4,
    intermediate_size=16,
    vocab_size=32,
    max_positions=16,
)


def spec(dilation: Any = "auto") -> RunSpec:
    names = ("a", "b", *(f"d{number}" for number in range(8)))
    links = tuple(LinkSpec(a="a", b=name, bit_per_s=1e9) for name in names[1:])
    devices = tuple(DEVICE.model_copy(update={"name": name}) for name in names)
    cluster = ClusterSpec(name="some", source="a", devices=devices, links=links)
    return RunSpec(cluster=cluster, model=MODEL, strategy="single", dilation=dilation, profile=PROFILE)


def op(device: str, start_s: float, target_s: float, host_s: float, devices: int = 1) -> Span:
    """An operation meant to last `target_s` that takes this host `host_s`, among so many devices."""
    flops = round((host_s - runtime_s(INLINE_FLOPS, devices)) / CROWDED * FLOP_PER_S)
    return Span(device, "compute", "op", 0, start_s, start_s + target_s, bytes=4 * flops, flops=flops)


def test_a_given_number_is_taken_as_it_is() -> None:
    trace = [op("a", 0.0, 0.001, 10.0)]
    assert choose_dilation(spec(3.5), trace) == 3.5
    assert choose_dilation(spec("native"), trace) == 1.0


def test_slow_devices_need_no_dilation() -> None:
    assert choose_dilation(spec(), [op("a", 0.0, 1.0, 0.1)], cores=2) == 1.0
    assert choose_dilation(spec(), [], cores=2) == 1.0


def test_every_long_operation_leaves_thirty_percent() -> None:
    # 1.4 s of work in 1 s: at D = 2 it fills 70 %.
    assert choose_dilation(spec(), [op("a", 0.0, 1.0, 1.4)], cores=64) == 2.0
    assert choose_dilation(spec(), [op("a", 0.0, 1.0, 1.41)], cores=64) == 2.25


def test_short_operations_count_together() -> None:
    trace = [op("a", 0.001 * i, 0.001, 0.0005) for i in range(100)]
    assert choose_dilation(spec(), trace, cores=64) == 1.0
    trace = [op("a", 0.0002 * i, 0.0002, 0.000558) for i in range(100)]
    assert choose_dilation(spec(), trace, cores=64) == 4.0


def test_a_short_operation_may_use_the_spare_time_of_the_next() -> None:
    """0.56 ms of work fit into 0.2 ms, as the next operation leaves 9 of its 10 ms; from 1 ms on, not."""
    short, long = op("a", 0.0, 0.0002, 0.00056), op("a", 0.0, 0.0002, 0.0011)
    next_one = op("a", 0.0002, 0.01, 0.001)
    assert choose_dilation(spec(), [short, next_one], cores=64) == 1.0
    assert choose_dilation(spec(), [long, next_one], cores=64) == 8.0  # 1.1 ms are 70 % of 8 · 0.2 ms


def test_beside_other_devices_an_operation_takes_a_fifth_longer_than_alone() -> None:
    side = 20_000  # of a matrix of 4 bytes a number, times one row
    product = Span("a", "compute", "op", 0, 0.0, 1.0, bytes=4 * side**2, flops=2 * side**2)
    assert host_s(product, PROFILE) == pytest.approx(1.2 * 0.8 + 300e-6)


def test_on_an_unknown_machine_more_rows_never_take_longer_per_operation() -> None:
    seconds = [row.s_per_flop for row in CAUTIOUS.products]
    assert seconds == sorted(seconds, reverse=True)


def test_an_operation_that_changes_threads_costs_the_runtime_more() -> None:
    below, above = (
        host_s(Span("a", "compute", "op", 0, 0.0, 1.0, bytes=4 * flops, flops=flops), PROFILE)
        for flops in (INLINE_FLOPS - 1, INLINE_FLOPS)
    )
    assert above - below == pytest.approx(OP_HOST_S - INLINE_HOST_S, rel=1e-3)


def test_the_runtime_costs_more_the_more_devices_take_turns_up_to_a_limit() -> None:
    costs = [runtime_s(INLINE_FLOPS, devices) for devices in (1, 2, 9, 16, 23, 64)]
    assert costs == pytest.approx([OP_HOST_S * cold for cold in (1, 1, 2, 3, 4, 4)])


def test_devices_at_the_same_time_share_the_cores() -> None:
    together = [op(f"d{i}", 0.0, 1.0, 0.65, 8) for i in range(8)]
    assert choose_dilation(spec(), together, cores=2) == 4.0
    assert choose_dilation(spec(), together, cores=8) == 1.0
    in_turn = [op(f"d{i}", float(i), 1.0, 0.65, 8) for i in range(8)]
    assert choose_dilation(spec(), in_turn, cores=2) == 1.0


def test_a_crowd_counts_if_it_lasts_longer_than_a_twentieth_of_the_busy_time() -> None:
    def trace(together_s: float) -> list[Span]:
        begin_s = 10 - together_s
        return [op("a", 0.0, 10.0, 6.5, 2), op("b", begin_s, together_s, 0.65 * together_s, 2)]

    assert choose_dilation(spec(), trace(1.0), cores=1) == 2.0
    assert choose_dilation(spec(), trace(0.4), cores=1) == 1.0


def test_messages_cost_the_host_too() -> None:
    trace = [Span("a", "recv", "x", 0, i * 1e-4, i * 1e-4 + 1e-4, bytes=100, peer="b") for i in range(50)]
    assert choose_dilation(spec(), trace, cores=64) == pytest.approx(2.75, abs=0.5)


@pytest.mark.parametrize(
    ("first_token_s", "end_s", "dilation"),
    [
        (0.01, 0.05, 20.0),  # 0.2 wall seconds until the first token, 1 in all
        (0.01, 0.2, 5.0),  # as much as 1 wall second in all allows
        (0.01, 100.0, 4.0),  # a long run is not stretched for its first token's sake
        (0.1, 100.0, 2.0),
        (1.0, 2.0, 1.0),
    ],
)
def test_a_short_run_is_stretched_so_that_its_first_token_is_long_enough_to_be_measured(
    first_token_s: float, end_s: float, dilation: float
) -> None:
    marks = [Mark(0.0, "request_arrived"), Mark(first_token_s, "token_emitted"), Mark(end_s, "token_emitted")]
    assert choose_dilation(spec(), marks, cores=2) == dilation


def test_the_calls_of_a_layer_count_where_an_operation_may_be_one() -> None:
    """Of a layer: 7 products of 2 ms and 6 passes of 1 ms, its attention and itself, 3 and 4 ms: 27 ms."""
    calls = CallCosts(width=64, operation_s=4e-3, product_s=2e-3, attention_s=3e-3, pass_s=1e-3)
    costly = HostProfile.model_validate(dict(PROFILE) | {"calls": (calls,)})
    long, short = op("a", 0.0, 1.0, 0.1), Span("a", "compute", "op", 0, 0.0, 1.0, bytes=400, flops=100)
    assert host_s(long, costly) - host_s(long, PROFILE) == pytest.approx(CROWDED * 27e-3)
    assert host_s(short, costly) == host_s(short, PROFILE)


ONE_ROW_S, MANY_ROWS_S = 8e-9, 1e-9


@pytest.mark.parametrize("rows", [1, 64])
@pytest.mark.parametrize("as_stored", [True, False])
def test_weights_in_8_bits_take_the_hosts_time_for_such_weights(as_stored: bool, rows: int) -> None:
    """A matrix of 4,096 × 4,096 times one row and 64, whether the device's spans count its 8 bits or 32."""
    table = tuple(
        PackedRow(bits=8, rows=count, s_per_flop=seconds)
        for count, seconds in ((1, ONE_ROW_S), (64, MANY_ROWS_S))
    )
    profile = HostProfile.model_validate(dict(PROFILE) | {"packed": table})
    device = DEVICE.model_copy(update={"compute_model": "roofline" if as_stored else "flops"})
    weights = 4096**2
    flops, counted = 2 * rows * weights, weights * (1 if as_stored else 4)
    span = Span("a", "compute", "op", 0, 0.0, 100.0, bytes=counted, flops=flops)
    run = spec().model_copy(
        update={
            "cluster": ClusterSpec(name="one", source="a", devices=(device,)),
            "model": MODEL.model_copy(update={"weight_bits": 8.0}),
            "profile": profile,
        }
    )
    needed_s = CROWDED * flops * (ONE_ROW_S if rows == 1 else MANY_ROWS_S)
    needed_s += 1e-9 * CROWDED + runtime_s(flops)
    asked = demands(run, profile, [span], cores=64)
    assert asked["device"] == pytest.approx(needed_s / 100.0 / OP_HEADROOM, rel=1e-3)
