"""Predictions of published runs on several boards: what is compared, and how a token's time is divided."""

import pytest

from bench.published.several_boards import Compared, compared, costless, several, summary
from engine.runs.predict import predict
from topologies.presets import preset
from topologies.published import published_rates

ROWS = {row.id: row for row in published_rates()}
COMPARED = [row for row in published_rates() if row.board and row.nodes > 1]


@pytest.mark.parametrize("row", COMPARED, ids=lambda row: row.id)
def test_every_published_run_is_that_many_presets_each_with_its_ethernet(row):
    spec = several(row)
    devices = spec.cluster.devices
    assert len(devices) == len(spec.cluster.links) == row.nodes
    assert {device.format_rates for device in devices} == {preset(row.board).format_rates}
    assert {link.bit_per_s for link in spec.cluster.links} == {940e6}
    assert (spec.strategy, spec.params["all_reduce"]) == ("megatron", "star")
    assert spec.model.weight_bits == 4.5


def test_a_raspberry_pi_3_has_the_ethernet_of_its_usb():
    row = ROWS["r002"]._replace(board="raspberry-pi-3")
    assert {link.bit_per_s for link in several(row).cluster.links} == {260e6}


def test_runtimes_that_split_by_layers_are_predicted_with_a_pipeline():
    assert several(ROWS["r002"]._replace(runtime="llama.cpp RPC")).strategy == "gpipe"


@pytest.mark.parametrize("row", [row for row in COMPARED if row.transfer_s], ids=lambda row: row.id)
def test_published_parts_are_not_longer_than_the_token(row):
    parts_s = row.evaluation_s + row.transfer_s
    assert parts_s <= 1.01 / row.decode_tokens_per_s
    assert parts_s >= 0.9 / row.decode_tokens_per_s


def test_evaluation_and_transfer_are_the_time_of_a_token():
    row = ROWS["r010"]
    one = compared(row)
    assert one.predicted_s == pytest.approx(predict(several(row)).tpot_s)
    assert one.evaluation_s < one.predicted_s
    # four all-reduce steps of each of 32 layers cost at least both boards' messages and two links' delay
    assert one.transfer_s > 4 * 32 * (150e-6 + 0.2e-3)
    assert one.ratio == pytest.approx(row.decode_tokens_per_s**-1 / one.predicted_s)


def test_costless_links_and_messages_take_no_time():
    cluster = costless(several(ROWS["r002"]).cluster)
    assert {device.message_overhead_s for device in cluster.devices} == {0.0}
    assert {(link.delay_s, link.jitter_s, link.loss_frac) for link in cluster.links} == {(0.0, 0.0, 0.0)}
    assert {device.format_rates for device in cluster.devices} == {preset("raspberry-pi-4").format_rates}


def test_a_prediction_is_near_within_a_factor_of_a_quarter_more():
    row = ROWS["r002"]
    near, slow, fast = (Compared(row, "megatron", 1.0, part, 0.0) for part in (1.24, 1.26, 0.79))
    assert (near.near, slow.near, fast.near) == (True, False, False)
    assert summary([near, slow, fast]).rows == (("2", "3", "21%", "1.27", "1 of 3"),)
