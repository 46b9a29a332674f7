"""`bench reality`: from runs and predictions to errors, table and summary."""

import json
from itertools import product

import pytest

from bench.native import reality
from bench.native.reality import (
    PACKED,
    SINGLES,
    Case,
    Compared,
    Figures,
    distributed_cases,
    measure_reality,
    reality_table,
    single_cases,
    spec_of,
    summary_table,
)
from bench.native.reality_models import model_of
from emulator.calibration.device_row import device_row
from engine.domain.calibration import Calibration
from engine.domain.host_times import HostProfile, MeasuredRow
from engine.models.families.registry import FAMILIES
from engine.ops.sizes import num_parameters
from engine.runs.predict import prepare


def compared(model, predicted_s, *measured_s, devices=1):
    case = Case(model, "single" if devices == 1 else "gpipe", devices, 1e8 if devices > 1 else 0.0)
    return Compared(
        case, Figures(predicted_s, 0.0, predicted_s), tuple(Figures(s, 0.0, s) for s in measured_s)
    )


def test_an_error_is_of_the_prediction_against_the_median_run():
    assert compared("gpt2", 0.9, 1.0, 5.0, 0.5).error() == pytest.approx(-0.1)


def test_the_summary_has_median_95_percent_and_worst_of_the_absolute_errors():
    cases = [compared("gpt2", s, 1.0) for s in (1.01, 0.98, 1.05)] + [compared("gpt2", 2.0, 1.0, devices=2)]
    rows = summary_table(cases).rows
    nothing = ("–", "–", "–")
    assert ("1", "3", "whole", "2.0%", "5.0%", "5.0%", *nothing) in rows
    assert ("2", "1", "whole", "100.0%", "100.0%", "100.0%", *nothing) in rows


def test_beside_the_calibration_in_turn_stands_what_an_earlier_one_says():
    cases = [compared("gpt2", 1.01, 1.0)._replace(before=Figures(0.9, 0.0, 0.9))]
    summary = summary_table(cases, age_s=1200.0)
    assert ("1", "1", "whole", "1.0%", "1.0%", "1.0%", "10.0%", "10.0%", "10.0%") in summary.rows
    assert "20 minutes old" in summary.title


def test_all_cases_run_after_every_round_and_are_predicted_with_the_costs_of_links(monkeypatch, tmp_path):
    """Without those, messages of more devices than cores cost nothing: half of a token's time was missing.
    What an earlier calibration predicts stands beside it.
    """
    profile = HostProfile(
        host="made",
        products=(MeasuredRow(rows=1, s_per_flop=1e-10),),
        elementwise_s_per_element=1e-9,
        op_overhead_s=1e-6,
        memory_byte_per_s=1e10,
    )
    found = Calibration(profile=profile, device=device_row(profile, 1e8))

    def rounds(extent, progress, between):
        for _ in range(3):
            between()
        return {"calibration": found.model_dump(mode="json")}

    def of(host):
        return found.model_copy(update={"profile": profile.model_copy(update={"host": host})})

    def predicted(spec, profile):
        return Figures(*[{"with links": 1.0, "earlier": 3.0}[profile.host]] * 3)

    made = {
        "known_calibration": lambda: of("earlier"),
        "calibration_file": lambda: tmp_path,
        "use_host_kernels": lambda: None,
        "measured": rounds,
        "with_link_messages": lambda calibration, extent: of("with links"),
        "predicted_figures": predicted,
        "over_loopback": lambda cases: [Figures(2.0, 2.0, 2.0) for _ in cases],
        "_linked": lambda cases: [Figures(4.0, 4.0, 4.0) for _ in cases],
    }
    for name, function in made.items():
        monkeypatch.setattr(reality, name, function)
    cases = json.loads(measure_reality().raw)
    assert {len(case["measured"]) for case in cases} == {3}
    assert {case["predicted"]["total_s"] for case in cases} == {1.0}
    assert {case["predicted_before"]["total_s"] for case in cases} == {3.0}
    by_devices = {(case["case"]["devices"], case["measured"][0]["total_s"]) for case in cases}
    assert by_devices == {(1, 2.0), (2, 4.0), (4, 4.0)}


def test_the_raw_figures_are_kept_with_every_repeat():
    table = reality_table([compared("demo-lm", 0.9, 1.0, 1.1)])
    (case,) = json.loads(table.raw)
    assert [run["total_s"] for run in case["measured"]] == [1.0, 1.1]
    assert case["case"]["model"] == "demo-lm" and case["predicted"]["total_s"] == 0.9
    assert table.summary is not None and len(table.rows) == 1
    assert all(len(row) == len(table.columns) for row in table.rows)


def test_an_encoder_has_no_later_tokens():
    (row,) = reality_table([compared("minilm", 0.9, 1.0)]).rows
    assert row[7:9] == ("–", "–")


MIXTURES = {"mixtral", "qwen2_moe", "qwen3_moe", "granitemoe", "granitemoeshared", "olmoe", "gpt_oss"}
"""Of none a model with published weights is so small."""


def test_the_models_are_of_all_text_families_and_vit_from_2_to_360_million_parameters():
    models = [model_of(name) for name in SINGLES]
    sizes = [num_parameters(model) for model in models]
    assert min(sizes) < 3e6 and 3e8 < max(sizes) < 3.6e8
    assert all(model.dtype == "float32" for model in models)
    missing = {family.name for family in FAMILIES} - {model.family for model in models}
    # gemma differs from gemma2 in norms alone, granite from llama in factors, olmo2 in where it has norms;
    # llava needs pictures
    assert missing <= {"gemma", "llava", "granite", "olmo2", *MIXTURES}


def test_what_is_stored_in_8_and_4_bits_is_run_and_predicted_so_and_says_it():
    packed = [case for case in single_cases() if case.bits]
    assert {(case.model, case.bits) for case in packed} == set(product(PACKED, (8, 4)))
    assert {spec_of(case).model.weight_bits for case in packed} == {8.0, 4.0}
    (row,) = reality_table([compared("gpt2", 0.9, 1.0)._replace(case=packed[0])]).rows
    assert row[1] == "gpt2, 8 bits"


KINDS = [Case("vit-base", "single", 1), Case("minilm", "single", 1), Case("gpt2", "megatron", 4, 2e7)]


@pytest.mark.parametrize("case", KINDS, ids=lambda case: case.model)
def test_every_kind_of_case_can_be_planned(case):
    assert prepare(spec_of(case)).spec.dilation == "native"


def test_cases_that_are_run_over_one_network_have_its_links_and_all_strategies_can_be_planned():
    for cases in distributed_cases():
        assert len({(case.devices, case.bit_per_s) for case in cases}) == 1
        for case in cases:
            assert prepare(spec_of(case)).plan.holdings, case
    strategies = {case.strategy for cases in distributed_cases() for case in cases}
    assert strategies == {"megatron", "gpipe", "voltage", "galaxy", "edgeshard", "lime"}
