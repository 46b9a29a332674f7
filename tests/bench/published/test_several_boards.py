"""Predictions of published runs on several boards: what is compared, and how a token's time is divided."""

import pytest

from bench.published import several_boards
from bench.published.several_boards import (
    LINKS,
    Compared,
    added,
    compared,
    costless,
    several,
    summary,
    with_messages,
)
from engine.domain.errors import SpecError
from engine.runs.predict import predict
from topologies.parts import link_preset
from topologies.presets import preset
from topologies.published import published_rates

ROWS = {row.id: row for row in published_rates()}
COMPARED = [row for row in published_rates() if row.board and row.nodes > 1]
FEW = {"r003", "r038"}
LATER = pytest.mark.long("engine", "topologies", "bench/published")


@pytest.mark.parametrize("row", COMPARED, ids=lambda row: row.id)
def test_every_published_run_is_that_many_presets_each_with_its_link(row):
    spec = several(row)
    devices = spec.cluster.devices
    assert len(devices) == len(spec.cluster.links) == row.nodes
    assert {device.format_rates for device in devices} == {preset(row.board).format_rates}
    rate = link_preset(LINKS.get(row.board, "gigabit-ethernet")).bit_per_s
    assert {link.bit_per_s for link in spec.cluster.links} == {rate}
    assert spec.strategy == ("gpipe" if row.runtime == "exo" else "megatron")
    assert spec.model.weight_bits == 4.5


def test_a_raspberry_pi_3_has_the_ethernet_of_its_usb():
    row = ROWS["r002"]._replace(board="raspberry-pi-3")
    assert {link.bit_per_s for link in several(row).cluster.links} == {260e6}


def test_runtimes_that_split_by_layers_are_predicted_with_a_pipeline():
    assert several(ROWS["r002"]._replace(runtime="llama.cpp RPC")).strategy == "gpipe"


def test_a_runtime_that_nobody_described_is_refused_by_its_row():
    with pytest.raises(SpecError, match="r002: no runtime is called telegraph"):
        several(ROWS["r002"]._replace(runtime="telegraph"))


@pytest.mark.parametrize("row", [row for row in COMPARED if row.transfer_s], ids=lambda row: row.id)
def test_published_parts_are_not_longer_than_the_token(row):
    parts_s = row.evaluation_s + row.transfer_s
    assert parts_s <= 1.01 / row.decode_tokens_per_s
    assert parts_s >= 0.9 / row.decode_tokens_per_s


def test_what_a_runtime_adds_is_what_explains_one_and_two_boards(monkeypatch):
    """Made-up rows that take a quarter longer and 3 ms more per layer than the presets, and four boards."""
    few = [ROWS["r001"], ROWS["r002"], ROWS["r005"]]
    made = [
        row._replace(
            evaluation_s=1.25 * several_boards.evaluation(several(row)) + 3e-3 * several(row).model.num_layers
        )
        for row in few
    ]
    monkeypatch.setattr(several_boards, "published_rates", lambda: tuple(made))
    assert added(ROWS["r003"]) == pytest.approx((1.25, 3e-3))


def test_rows_of_more_than_two_boards_say_nothing_of_what_a_runtime_adds(monkeypatch):
    with_all = added(ROWS["r003"])
    few = tuple(row for row in published_rates() if row.nodes <= 2)
    monkeypatch.setattr(several_boards, "published_rates", lambda: few)
    assert added(ROWS["r003"]) == with_all


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, id=row.id, marks=[] if row.id in FEW else LATER)
        for row in COMPARED
        if 2 < row.nodes < 8
    ],
)
def test_three_and_four_boards_are_predicted_within_a_quarter(row):
    assert compared(row).near


def test_evaluation_and_transfer_are_the_time_of_a_token():
    row = ROWS["r010"]
    one = compared(row)
    slower, per_layer_s = added(row)
    spec = with_messages(several(row), 2)
    alone_s = several_boards.evaluation(spec)
    assert one.evaluation_s == pytest.approx(slower * alone_s + 32 * per_layer_s)
    assert one.transfer_s == pytest.approx(predict(spec).tpot_s - alone_s)
    # four steps of each of 32 layers cost at least what two messages cost at both ends and on two links
    assert one.transfer_s > 4 * 32 * 2 * (140e-6 + 60e-6)
    assert one.ratio == pytest.approx(row.decode_tokens_per_s**-1 / one.predicted_s)


def test_twice_the_messages_cost_and_wait_twice_and_carry_the_same_bytes():
    cluster, twice = several(ROWS["r002"]).cluster, with_messages(several(ROWS["r002"]), 2).cluster
    for device, other in zip(cluster.devices, twice.devices, strict=True):
        assert other.message_overhead_s == 2 * device.message_overhead_s > 0
        assert other.receive_overhead_s == 2 * device.receive_overhead_s > 0
    for link, other in zip(cluster.links, twice.links, strict=True):
        assert (other.delay_s, other.bit_per_s) == (2 * link.delay_s, link.bit_per_s)


def test_costless_links_and_messages_take_no_time():
    cluster = costless(several(ROWS["r002"]).cluster)
    assert {device.message_overhead_s for device in cluster.devices} == {0.0}
    assert {(link.delay_s, link.jitter_s, link.loss_frac) for link in cluster.links} == {(0.0, 0.0, 0.0)}
    assert {device.format_rates for device in cluster.devices} == {preset("raspberry-pi-4").format_rates}


def test_a_prediction_is_near_within_a_factor_of_a_quarter_more():
    row = ROWS["r002"]
    near, slow, fast = (Compared(row, "megatron", 1.0, 1.0, part, 0.0) for part in (1.24, 1.26, 0.79))
    assert (near.near, slow.near, fast.near) == (True, False, False)
    assert summary([near, slow, fast]).rows == (("2", "3", "21%", "1.27", "1 of 3"),)
