"""Predictions of boards that were not measured here have an interval, worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from engine.domain.cluster import ClusterSpec
from engine.domain.rates import FormatRate
from engine.domain.report import RunReport, Uncertainty
from engine.domain.spec import RunSpec
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.reports.finding import finding_of
from engine.runs import uncertainty
from engine.runs.predict import predict
from engine.runs.uncertainty import with_uncertainty
from engine.strategies.registry import by_rule

BOARD: dict[str, Any] = {
    "name": "a",
    "memory_bytes": 1e9,
    "memory_byte_per_s": 1e9,
    "flop_per_s": 2e9,
    "dispatch_s": 1e-4,
    "handover_s": 1e-4,
    "token_s": 1e-4,
}
SHEET: dict[str, Any] = {**BOARD, "basis": "data sheet", "assumed_efficiency": 0.5}


def predicted(
    *devices: dict[str, Any], strategy: str = "single", delay_s: float = 0.0, bits: float = 0.0
) -> RunReport:
    model, weights = catalogue.resolve("tiny-gpt2")
    model = model.model_copy(update={"weight_bits": bits})
    names = [device["name"] for device in devices]
    links = [{"a": names[0], "b": name, "bit_per_s": 1e8, "delay_s": delay_s} for name in names[1:]]
    cluster = ClusterSpec(name="c", source=names[0], devices=devices, links=links)
    work = Workload(prompt_tokens=8, new_tokens=4)
    spec = RunSpec(
        cluster=cluster,
        model=model,
        weights=weights,
        strategy=strategy,
        params=by_rule(strategy),
        workload=work,
    )
    return predict(spec)


def uncertain(report: RunReport) -> Uncertainty:
    found = with_uncertainty(report).uncertainty
    assert found is not None
    return found


def test_alone_a_board_of_a_data_sheet_takes_half_to_twice_as_long() -> None:
    report = predicted(SHEET)
    found = uncertain(report)
    assert found.latency_s == pytest.approx((report.latency_s / 2, 2 * report.latency_s))
    assert found.ttft_s == pytest.approx((report.ttft_s / 2, 2 * report.ttft_s))
    assert found.tpot_s == pytest.approx((report.tpot_s / 2, 2 * report.tpot_s))
    assert found.basis == "a: 0.5 to 2 times the prediction (from the data sheet)"


@pytest.mark.parametrize("model", ["roofline", "serial", "flops"])
def test_every_way_to_compute_is_as_uncertain(model: str) -> None:
    report = predicted({**SHEET, "compute_model": model})
    assert uncertain(report).latency_s == pytest.approx((report.latency_s / 2, 2 * report.latency_s))


def test_rates_of_the_models_own_format_count_and_not_those_of_the_board() -> None:
    rates = {"flop_per_s": 1e9, "memory_frac": 0.5, "source": "somebody"}
    row = FormatRate(bits=32, basis="fitted to published rates", **rates)
    other = FormatRate(bits=4, basis="fitted in another format", **rates)
    report = predicted({**SHEET, "format_rates": (other, row)})
    found = uncertain(report)
    assert found.latency_s == pytest.approx((report.latency_s / 1.35, 1.35 * report.latency_s))
    assert found.basis == "a: 0.74 to 1.35 times the prediction (from published rates of tokens: somebody)"


def test_links_are_not_uncertain() -> None:
    report = predicted(SHEET, {**SHEET, "name": "b"}, strategy="megatron", delay_s=1e-4)
    fast_s, slow_s = uncertain(report).latency_s or (0.0, 0.0)
    computing_s = report.attribution.compute_s
    assert computing_s > 0.05 * report.latency_s, "a case in which both count"
    assert slow_s == pytest.approx(report.latency_s + computing_s, rel=0.02)
    assert fast_s == pytest.approx(report.latency_s - computing_s / 2, rel=0.02)


@pytest.mark.parametrize("more", [{}, {"basis": "calibrated"}])
def test_boards_that_were_measured_or_whose_rates_their_owner_gave_are_certain(more: dict[str, Any]) -> None:
    assert with_uncertainty(predicted({**BOARD, **more})).uncertainty is None


def test_a_board_that_computes_nothing_makes_nothing_uncertain() -> None:
    assert with_uncertainty(predicted(BOARD, {**SHEET, "name": "b"})).uncertainty is None


def test_boards_with_the_same_rates_are_named_together() -> None:
    measured = {**BOARD, "name": "c", "basis": "published measurement"}
    found = uncertain(predicted(SHEET, {**SHEET, "name": "b"}, measured, strategy="megatron"))
    first, second = found.basis.split("; ")
    assert first == "a, b: 0.5 to 2 times the prediction (from the data sheet)"
    assert second == "c: 0.62 to 1.6 times the prediction (from benchmarks of the board)"


def test_devices_without_rates_for_quantised_weights_are_named_with_what_they_are_taken_to_do() -> None:
    rate = FormatRate(bits=8, flop_per_s=2e9, memory_frac=1.0, basis="calibrated")
    stated = {**BOARD, "name": "b", "format_rates": (rate,)}
    report = predicted(BOARD, stated, strategy="megatron", bits=8.0)
    found = uncertain(report)
    assert found.basis == (
        "a: 0.5 to 2 times the prediction (from boards of its kind: weights in 8 bits read as stored at 93% "
        "of the memory rate, which processors with published rates reach in the median)"
    )
    assert found.latency_s and found.latency_s[1] > report.latency_s
    assert with_uncertainty(predicted(stated, bits=8.0)).uncertainty is None
    assert with_uncertainty(predicted({**BOARD, "compute_model": "flops"}, bits=8.0)).uncertainty is None


def test_the_report_says_what_real_boards_take() -> None:
    report = with_uncertainty(predicted(SHEET))
    text = " ".join(finding_of(report).sentences)
    assert "Real boards are expected to take" in text and "0.5 to 2 times the prediction" in text


def test_a_long_run_has_its_basis_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uncertainty, "MOST_STEPS", 3)
    found = uncertain(predicted(SHEET))
    assert found.latency_s is None and "data sheet" in found.basis
