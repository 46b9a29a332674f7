"""The experiment files of the papers: they can be expanded, and state the published figures as they are."""

from __future__ import annotations

import pytest

import topologies
from engine.domain.errors import SpecError
from engine.domain.experiment import Experiment
from engine.domain.presented import Published
from engine.experiments.design.expand import expand
from engine.experiments.design.files import dump_toml, parse_toml
from engine.experiments.design.sources import Sources
from engine.reproductions.coverage import problems, rule_of
from engine.reproductions.figures import figures
from engine.reproductions.shipped import experiment, experiments, figure_ids, shown_metrics

NAMES = [one.name for one in experiments()]
SCALE = {"ms": 1, "mJ": 1, "s": 1, "GB": 1, "%": 1, "x": 1, "": 1, "tokens/s": 1}
PER_UNIT = {
    "mcu_tp.pr16s.linear": 16,
    "mcu_tp.ar8s.super": 8,
    "mcu_tp.ar16s.super": 16,
    "mcu_tp.ar32s.super": 32,
    "lime.tab5.lime.bursty.latency": 4,
}
"""Published per chip, compared as a speed-up; and in a burst per request, compared per token of all four."""


def test_every_published_figure_has_one_place() -> None:
    assert problems(figure_id for one in experiments() for figure_id in figure_ids(one)) == ()


@pytest.mark.parametrize("name", NAMES)
def test_an_experiment_states_its_assumptions_and_survives_a_round_trip(name: str) -> None:
    one = experiment(name)
    assert one.title and one.description and one.assumptions
    assert parse_toml(dump_toml(one), name) == one


def as_published(value: Published) -> object:
    """The figure that `value` states: itself, or its baseline in the note's "2.8 of 5.21 s" too."""
    if value.low is not None:
        return value.low, value.high
    return value.outcome or value.value


@pytest.mark.parametrize("name", NAMES)
def test_values_are_those_of_the_file_of_figures(name: str) -> None:
    for value in experiment(name).published:
        figure = figures()[value.id].value
        assert value.unit in SCALE
        if " of " in value.note:
            part, _, rest = value.note.partition(" of ")
            assert float(part) == figure
            figure = float(part) / float(rest.split()[0])
        if value.id in PER_UNIT:
            figure = PER_UNIT[value.id] * figures()[value.id].value
        assert as_published(value) == pytest.approx(figure, rel=1e-4), value.id


def test_an_unknown_reproduction_names_the_known_ones() -> None:
    with pytest.raises(SpecError, match=r"no reproduction figure-9: there are voltage-fig4, .*mcu-blocks"):
        experiment("figure-9")


def test_limits_of_lime_are_those_of_the_claims() -> None:
    """Section V-C: 40 s per token, and 15 s in a burst, divided by its five requests."""
    claims = {claim.name: claim for claim in experiment("lime-settings").claims}
    for name, figure in (("tpi-llm-1", "lime.vc.oot.sporadic"), ("tpi-llm-bursty", "lime.vc.oot.bursty")):
        requests = 5 if name.endswith("bursty") else 1
        assert claims[name].model_dump()["low"] == requests * float(str(figures()[figure].value))


def test_rates_of_table_4_and_of_lime_are_inputs() -> None:
    def rates(one: Experiment, factor: str) -> set[float]:
        found = one.factor(factor)
        assert found is not None
        inner = [value for level in found.values for value in level.set.values()]
        return {
            float(v) for v in inner + [level.value for level in found.values] if isinstance(v, float | int)
        }

    of_blocks = {
        1e6 * float(str(figures()[f"edgeformer.t4.L{layer}.rb"].value)) for layer in (4, 8, 12, 16, 20)
    }
    assert of_blocks <= rates(experiment("edgeformer-table4"), "block")
    setup = {1e6 * float(str(figures()[f"lime.setup.bandwidth.{one}"].value)) for one in ("low", "high")}
    assert setup == rates(experiment("lime-environments"), "rate")


def test_lime_sends_one_request_at_a_time_or_as_many_as_there_are_devices() -> None:
    points = expand(experiment("lime-environments"), Sources(topologies.load, topologies.preset))
    for point in points:
        assert point.spec is not None
        expected = len(point.spec.cluster.devices) if "bursty" in str(point.coordinates["testbed"]) else 1
        assert point.spec.workload.requests == expected
    assert figures()["lime.setup.microbatch.sporadic"].value == 1
    assert figures()["lime.setup.microbatch.bursty"].value == "number of devices"


def test_the_uplink_of_the_cloud_is_the_published_one() -> None:
    link = topologies.load("papers/adaptlink-cloud").links[0]
    assert link.bit_per_s == 1e6 * float(str(figures()["adaptlink.cloud.bandwidth"].value))


def test_a_row_keeps_the_metrics_that_its_experiment_shows() -> None:
    kept = shown_metrics(experiment("edgeformer-fig5"))
    assert {"method.decision_frac", "peak_memory_bytes[device-2]", "latency_s"} <= kept
    assert "method.blocks.0.pruned" not in kept


def test_inputs_are_under_a_rule() -> None:
    for one in ("lime.setup.bandwidth.low", "adaptlink.cloud.bandwidth", "edgeformer.t4.L8.rb"):
        rule = rule_of(one)
        assert rule is not None and rule.reason == "inputs of the experiment files"
