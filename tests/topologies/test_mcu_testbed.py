"""mcu-1, mcu-8 and mcu-64 give what Bochem et al. (DATE 2025) published, per Transformer block.

The catalogue's models have biases, which the paper does not count: figures agree to a few per mille.
"""

from __future__ import annotations

import pytest

import topologies
from engine.domain.cluster import ClusterSpec
from engine.domain.model import ModelSpec
from engine.domain.plan import Plan
from engine.domain.report import RunReport
from engine.domain.spec import RunSpec
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.ops.sizes import weight_bytes
from engine.runs.predict import predict
from engine.strategies.mcu.estimate import BlockEstimate, block_estimate, regime_of
from engine.strategies.mcu.plan import shares_of
from engine.strategies.mcu.report import McuReport
from engine.strategies.mcu.tree import tree_levels
from engine.strategies.registry import strategy

MESSAGE_S = 3.12e-6  # fitted to 60.1 times at 64 chips
KIB = 4 * 1024  # of 8 bit numbers, which take 32 bits here


def model_of(name: str, **more: object) -> ModelSpec:
    """The paper's two matrices per part, without biases."""
    return catalogue.resolve(name, "random")[0].model_copy(
        update={"attention_bias": False, "ffn_bias": False, **more}
    )


def chips(number: int) -> ClusterSpec:
    """`number` of the chips of mcu-64."""
    cluster = topologies.load("mcu-64")
    return cluster.without(cluster.workers[number:])


def block_of(name: str, number: int, rows: int, seen: int) -> BlockEstimate:
    model, cluster = model_of(name), chips(number)
    shares = shares_of(cluster, model, allow_kv_dup=False)
    levels = tree_levels([share.rank for share in shares], 4)
    return block_estimate(
        cluster,
        model,
        levels,
        [(s.rank, s.head_tiles, s.tiles) for s in shares],
        shares[0].regime,
        1,
        rows,
        seen,
    )


def plan_of(name: str, number: int) -> Plan:
    chosen = strategy("mcu")
    workload = Workload(prompt_tokens=16, new_tokens=2)
    return chosen.plan(chips(number), model_of(name), workload, chosen.Params())


@pytest.mark.parametrize(
    ("number", "regime"),
    [
        (1, "streamed"),
        (2, "streamed"),
        (4, "streamed"),
        (8, "double-buffered"),
        (16, "double-buffered"),
        (32, "resident"),
        (64, "resident"),
    ],
)
def test_tinyllama_needs_off_chip_weights_on_the_published_numbers_of_chips(number: int, regime: str) -> None:
    plan = plan_of("mcu-tinyllama-64h", number)
    assert plan.layout.regime == regime
    assert max(plan.layout.slice_bytes) == 3072 // number * KIB


def test_mobilebert_stays_on_four_chips_and_not_on_two() -> None:
    assert regime_of(384 * KIB, 24, 1024 * KIB) == "double-buffered"
    assert regime_of(768 * KIB, 24, 1024 * KIB) == "streamed"


@pytest.mark.parametrize(
    ("name", "number", "rows", "seen", "link_j", "link_s"),
    [
        ("mcu-tinyllama", 8, 1, 128, 1.434e-6, 16.384e-6),
        ("mcu-tinyllama", 8, 16, 16, 22.94e-6, 262.144e-6),
        ("mcu-mobilebert", 4, 268, 268, 164.66e-6, 3.293e-3),
        ("mcu-tinyllama-64h", 64, 1, 128, 12.90e-6, 36.864e-6),
        ("mcu-tinyllama-64h", 64, 16, 16, 206.4e-6, 589.824e-6),
    ],
)
def test_links_take_the_energy_and_the_time_of_the_serial_hops(
    name: str, number: int, rows: int, seen: int, link_j: float, link_s: float
) -> None:
    block = block_of(name, number, rows, seen)
    assert block.link_j == pytest.approx(link_j, rel=1e-3)
    hops = {4: 3, 8: 4, 64: 9}[number]
    assert block.link_s == pytest.approx(link_s + 2 * 2 * hops * MESSAGE_S, rel=1e-3)


def test_a_block_on_eight_chips_takes_the_published_time_and_energy() -> None:
    """0.54 ms and 0.64 mJ (abstract); the parts by calibration. Waiting for the prefetch: 1.25 ms."""
    block = block_of("mcu-tinyllama", 8, 1, 128)
    assert block.paper_s == pytest.approx(0.54e-3, rel=0.01)
    assert block.energy_j == pytest.approx(0.640e-3, rel=0.01)
    assert block.steady_s == pytest.approx(1.25e-3, rel=0.01)
    assert block.compute_j == pytest.approx(0.3177e-3, rel=0.01)
    assert block.off_chip_j == pytest.approx(0.31457e-3, rel=1e-3)
    assert block.on_chip_j == pytest.approx(0.00629e-3, rel=1e-3)


def test_one_chip_is_about_26_times_as_slow_with_the_papers_accounting_and_11_times_without() -> None:
    """Published: 26.1 times 0.54 ms, and 27.2 times the energy-delay product."""
    one, eight = block_of("mcu-tinyllama", 1, 1, 128), block_of("mcu-tinyllama", 8, 1, 128)
    assert one.paper_s == one.steady_s == pytest.approx(14.094e-3, rel=0.005)
    assert one.energy_j == pytest.approx(0.667e-3, rel=0.005)
    assert one.paper_s / eight.paper_s == pytest.approx(26.1, rel=0.005)
    assert one.steady_s / eight.steady_s == pytest.approx(11.24, rel=0.005)


def test_a_prompt_block_is_about_ten_times_as_fast_on_eight_chips() -> None:
    """9.9 times is published, the times are not."""
    one, eight = block_of("mcu-tinyllama", 1, 16, 16), block_of("mcu-tinyllama", 8, 16, 16)
    assert one.paper_s == pytest.approx(41.28e-3, rel=0.005)
    assert eight.paper_s == pytest.approx(4.17e-3, rel=0.005)


def test_one_chip_of_its_own_cluster_is_planned_and_takes_what_the_estimate_says() -> None:
    """Attention does not fit on the chip in one piece; 13.9 ms over the 17 rows of the second token."""
    report, block = simulated("mcu-tinyllama", "mcu-1", 16)
    assert report.plan is not None and report.plan.layout.head_tiles == ((0, 4, 8),)
    assert report.plan.layout.regime == "streamed"
    assert report.tpot_s / 8 == pytest.approx(block["decode"].paper_s, rel=0.01)
    assert report.ttft_s / 8 == pytest.approx(block["prefill"].paper_s, rel=0.02)
    chip = next(device for device in report.devices if device.name == "chip")
    assert chip.peak_memory_bytes <= 2048 * KIB


@pytest.mark.parametrize("name", ["mcu-tinyllama", "mcu-tinyllama-64h", "mcu-mobilebert"])
@pytest.mark.parametrize("number", [1, 2, 4, 8])
def test_every_piece_fits_into_the_memory_for_weights(name: str, number: int) -> None:
    model, cluster = catalogue.resolve(name, "random")[0], chips(number)
    for share in shares_of(cluster, model, allow_kv_dup=False):
        sizes = [weight_bytes(model, piece) for piece in share.pieces(1)]
        together = sum(sizes) if share.regime == "double-buffered" else max(sizes)
        assert together <= 1024 * KIB


def test_twice_the_bytes_per_number_double_what_links_take_and_leave_the_energy_of_products() -> None:
    block, half = (
        block_estimate(
            chips(8),
            model_of("mcu-tinyllama", dtype=dtype),
            tree_levels(range(1, 9), 4),
            [(rank, (rank - 1, rank), (256 * (rank - 1), 256 * rank)) for rank in range(1, 9)],
            "double-buffered",
            1,
            1,
            128,
        )
        for dtype in ("float32", "bfloat16")
    )
    wait_s = 2 * 2 * 4 * MESSAGE_S
    assert block.link_s - wait_s == pytest.approx(2 * (half.link_s - wait_s))
    assert block.link_j == pytest.approx(2 * half.link_j)
    assert (block.compute_s, block.compute_j) == (half.compute_s, half.compute_j)
    parts = (block.compute_j, block.on_chip_j, block.off_chip_j, block.link_j)
    assert block.energy_j == sum(parts) >= max(parts)
    assert block.edp_j_s == block.energy_j * block.paper_s


def simulated(name: str, cluster: str, rows: int) -> tuple[RunReport, dict[str, BlockEstimate]]:
    """A run of two tokens, and what its plan expects of a block."""
    spec = RunSpec(
        cluster=topologies.load(cluster),
        model=catalogue.resolve(name, "random")[0],
        strategy="mcu",
        workload=Workload(prompt_tokens=rows, new_tokens=2),
    )
    report = predict(spec)
    assert report.plan is not None
    return report, report.plan.layout.block


def test_a_simulated_block_waits_for_the_next_ones_weights_as_the_steady_accounting_says() -> None:
    report, block = simulated("mcu-tinyllama", "mcu-8", 16)
    # the first of the eight blocks was fetched while the prompt was computed
    assert report.tpot_s / 8 == pytest.approx(block["decode"].steady_s, rel=0.06)
    assert report.ttft_s / 8 == pytest.approx(block["prefill"].steady_s, rel=0.03)


def test_sixty_four_chips_keep_all_weights_and_take_about_as_long_as_the_estimate_says() -> None:
    """The paper does not count norms, additions and message headers; members of a group, which wait for one
    another in its model, prepare their messages at the same time here.
    """
    report, block = simulated("mcu-tinyllama-64h", "mcu-64", 16)
    assert block["decode"].off_chip_s == 0.0 and report.attribution.load_s == 0.0
    assert block["decode"].paper_s == pytest.approx(0.2345e-3, rel=0.02)
    assert report.tpot_s / 8 == pytest.approx(block["decode"].paper_s, rel=0.1)
    assert report.ttft_s / 8 == pytest.approx(block["prefill"].paper_s, rel=0.06)


def test_a_reported_energy_is_that_of_blocks_and_a_little_for_norms_logits_and_activations() -> None:
    report, block = simulated("mcu-tinyllama", "mcu-8", 16)
    chips_j = sum(device.energy_j for device in report.devices if device.name != "host")
    links_j = sum(link.energy_j for link in report.links)
    blocks_j = 8 * (block["prefill"].energy_j + block["decode"].energy_j)
    assert 1.0 < (chips_j + links_j) / blocks_j < 1.2
    assert report.energy_j == pytest.approx(chips_j + links_j + report.devices[0].energy_j)


def test_the_report_has_both_accountings_every_energy_and_what_was_published() -> None:
    spec = RunSpec(
        cluster=topologies.load("mcu-8"),
        model=catalogue.resolve("mcu-tinyllama", "random")[0],
        strategy="mcu",
        workload=Workload(prompt_tokens=127, new_tokens=2),
    )
    method = predict(spec).method
    assert isinstance(method, McuReport)
    (plan,) = method.plans
    prefill, decode = plan.blocks
    assert (plan.chips, plan.regime, plan.is_calibrated) == (8, "double-buffered", True)
    assert (prefill.rows, prefill.seen, prefill.published_s) == (127, 127, None)
    assert (decode.rows, decode.seen, decode.published_s, decode.published_j) == (1, 128, 0.54e-3, 0.64e-3)
    # the catalogue's model has biases
    assert (decode.ratio_s, decode.ratio_j) == pytest.approx((1.0, 1.0), abs=0.003)
    lines = method.lines()
    assert all("er block" in line for line in lines)
    assert (
        "decode on 8 chips (weights double-buffered; efficiencies fitted to published figures): "
        "540 µs by the paper's accounting, 1.26 ms" in lines[3]
    )
    assert lines[-1] == "Published per block: 540 µs, ours / published 1.000; 640 µJ, ours / published 1.001."
