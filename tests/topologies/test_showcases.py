"""Showcases: every method does there what it was invented for, and the claims hold by prediction."""

from __future__ import annotations

from functools import cache

import pytest

from engine.domain.errors import EdgeLoomError, SpecError
from engine.domain.report import RunReport
from engine.domain.showcase import Showcase
from engine.domain.spec import RunSpec
from engine.program.strategy import Strategy
from engine.reports.showcase import verdicts
from engine.runs.predict import predict
from engine.strategies.registry import STRATEGIES
from topologies.showcases import FOLDER, ORDER, parse, showcase, showcases

RUN = """
title = "t"
look_for = "l"
expected = "e"
[run]
cluster = "lab-3"
model = "tiny-gpt2"
strategy = "edgeformer"
params = { t_max = 0.5 }
workload = { prompt_tokens = 4, new_tokens = 1 }
"""
OTHER = """
[[other]]
name = "rival"
title = "r"
"""
CLAIM = """
[[claim]]
sentence = "s"
measure = "latency_s"
other = "rival"
at_least = 1.0
"""


@cache
def predicted(name: str) -> dict[str, RunReport]:
    """Reports of a showcase's runs; "" is its own."""
    found = showcase(name)
    others = {other.name: predict(other.spec) for other in found.others}
    return {"": predict(found.spec), **others}


@pytest.mark.parametrize("name", ORDER)
def test_every_claim_holds_by_prediction(name: str) -> None:
    reports = predicted(name)
    for verdict in verdicts(showcase(name), reports[""], reports):
        assert verdict.holds, f"{verdict.claim.sentence} The ratio is {verdict.ratio}."


def test_every_file_is_offered_and_the_five_papers_methods_have_one() -> None:
    assert {path.stem for path in FOLDER.glob("*.toml")} == set(ORDER)
    methods = {each.spec.strategy for each in showcases()}
    assert methods == {"adaptlink", "lime", "edgeformer", "voltage", "mcu"}


def test_adaptlink_goes_on_with_a_copy_where_a_pipeline_plans_again() -> None:
    reports = predicted("adaptlink")
    assert [recovery.replanned for recovery in reports[""].recoveries] == [False]
    assert [recovery.replanned for recovery in reports["gpipe"].recoveries] == [True]
    assert reports["gpipe"].recoveries[0].reload_s > 0.2


def test_lime_streams_weights_in_its_showcase() -> None:
    report = predicted("lime")[""]
    layers = {holding.slice.layer for holding in report.plan.holdings if holding.home == "offloaded"}
    assert len(layers) >= 2


def test_edgeformer_lends_heads_to_helpers_that_hold_no_weights() -> None:
    report = predicted("edgeformer")[""]
    helpers = [device for device in report.devices if device.name.startswith("helper")]
    assert all(device.flops > 0 for device in helpers)
    assert {holding.device for holding in report.plan.holdings} == {0}


def test_all_weights_are_on_chip_in_the_showcase_of_64_chips() -> None:
    plan = predicted("mcu-64")[""].plan
    assert {holding.home for holding in plan.holdings} == {"resident"}
    assert any(holding.home == "offloaded" for holding in predicted("mcu")["one-chip"].plan.holdings)


@pytest.mark.parametrize("name", ["lime", "edgeformer"])
def test_no_method_without_loss_is_faster(name: str) -> None:
    own = predicted(name)[""]
    times = {chosen.name: _seconds(own.spec, chosen) for chosen in STRATEGIES}
    faster = [method for method, time_s in times.items() if time_s is not None and time_s < own.latency_s]
    assert faster == []


def _seconds(spec: RunSpec, chosen: Strategy) -> float | None:
    """None: no plan, not finished, or not the model's own numbers."""
    update = {"strategy": chosen.name, "params": chosen.lossless_params()}
    try:
        report = predict(spec.model_copy(update=update))
    except EdgeLoomError:
        return None
    lossy = report.plan is None or chosen.is_lossy(report.plan)
    return None if lossy or report.outcome.kind != "finished" else report.latency_s


def test_a_run_beside_it_differs_only_in_what_its_table_says() -> None:
    found: Showcase = parse(RUN + OTHER + "bit_per_s = 5e6\n" + CLAIM, "x")
    (other,) = found.others
    assert {link.bit_per_s for link in other.spec.cluster.links} == {5e6}
    assert other.spec.params == {"t_max": 0.5}
    links = other.spec.cluster.links
    assert other.spec == found.spec.model_copy(
        update={"cluster": found.spec.cluster.model_copy(update={"links": links})}
    )


def test_another_strategy_does_not_inherit_parameters() -> None:
    found = parse(RUN + OTHER + 'strategy = "single"\n' + CLAIM, "x")
    assert (found.others[0].spec.strategy, found.others[0].spec.params) == ("single", {})


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("title = ", "x.toml: no valid TOML"),
        (RUN.replace('model = "tiny-gpt2"', ""), "x.toml, run.model: missing"),
        (RUN.replace("lab-3", "lab-9"), "lab-9: no such cluster"),
        (
            RUN + OTHER + CLAIM.replace("rival", "nobody"),
            r"claims\[0\].other is nobody: expected one of rival",
        ),
        (RUN + OTHER + CLAIM + "[extra]", "unknown key"),
    ],
)
def test_a_wrong_file_is_refused_with_its_place(text: str, sentence: str) -> None:
    with pytest.raises(SpecError, match=sentence):
        parse(text, "x")


def test_unknown_showcases_and_runs_name_the_known_ones() -> None:
    with pytest.raises(SpecError, match="no showcase nothing: there are adaptlink, lime"):
        showcase("nothing")
    with pytest.raises(SpecError, match="has no run nothing beside its own: it has pipeline_offload"):
        showcase("lime").run_called("nothing")
