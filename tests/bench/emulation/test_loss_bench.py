"""The benchmark of lost packets: what it compares, without a network."""

import pytest

from bench.emulation.losses import (
    CASES,
    SIZES,
    Lossy,
    PacketLossCase,
    cluster_of,
    losses_table,
    predicted_times,
)
from engine.program.frames import FRAME_HEADER_BYTES

CASE = PacketLossCase(10e6, 0.0, 0.05, 1.0, 2, (30, 3, 1))


def test_every_pair_has_one_lossy_link() -> None:
    assert [link.loss_frac for link in cluster_of(CASE).links] == [0.05, 0.0, 0.05, 0.0]


def test_predicted_are_as_many_messages_as_are_measured() -> None:
    times = predicted_times(CASE, range(3))
    assert [len(of_size) for of_size in times] == [3 * CASE.pairs * count for count in CASE.counts]


def test_without_losses_the_prediction_is_fixed_cost_and_size_over_rate() -> None:
    for of_size, size in zip(predicted_times(CASE._replace(loss_frac=0.0), [1]), SIZES, strict=True):
        assert of_size == pytest.approx([100e-6 + (size + FRAME_HEADER_BYTES) * 8 / 10e6] * len(of_size))


def test_the_same_seed_predicts_the_same_and_another_seed_something_else() -> None:
    assert predicted_times(CASE, [1]) == predicted_times(CASE, [1])
    assert predicted_times(CASE, [1]) != predicted_times(CASE, [2])


def test_a_row_says_how_far_the_mean_of_predictions_is_off_and_how_sure_the_measured_one_is() -> None:
    # mean 2 ± sqrt(2)/sqrt(2) = 1 against 3: +50 %, and half of the mean is one standard error
    table = losses_table([Lossy(CASE, "tbf", 4096, (1.0, 3.0), (3.0, 3.0))])
    assert table.rows[0][-1] == "+50%"
    assert "±50%" in table.rows[0][-3]


def test_dilated_cases_have_a_counterpart_that_is_not() -> None:
    plain = {(case.bit_per_s, case.delay_s, case.loss_frac) for case in CASES if case.dilation == 1}
    assert all((case.bit_per_s, case.delay_s, case.loss_frac) in plain for case in CASES)
