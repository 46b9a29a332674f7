"""Experiments have the points that one writes down by hand; mistakes are refused in one sentence."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import Any

import pytest

import topologies
from engine.domain.errors import SpecError
from engine.domain.experiment import MAX_POINTS, Experiment
from engine.domain.scenario import SetRate
from engine.domain.spec import RunSpec, spec_digest
from engine.experiments.design.expand import Point, expand
from engine.experiments.design.files import dump_toml, parse_toml
from engine.experiments.design.sources import Sources
from engine.models.catalogue import resolve
from topologies.traces import scenario_of

SOURCES = Sources(cluster=topologies.load, preset=topologies.preset)
BASE = {"cluster": "lab-3", "model": "gpt2", "strategy": "single"}
RATE = {
    "name": "rate",
    "unit": "bit/s",
    "path": "cluster.links[*].bit_per_s",
    "values": [1e6, 2e6],
}
STRATEGY = {"name": "strategy", "path": "strategy", "values": ["single", "voltage"]}


def experiment(**fields: Any) -> Experiment:
    made: Experiment = Experiment.parse({"name": "test", "base": BASE, **fields}, "test")
    return made


def points(**fields: Any) -> tuple[Point, ...]:
    return expand(experiment(**fields), SOURCES)


def spec_with(path: str, value: Any, **base: Any) -> RunSpec:
    factor = {"name": "x", "path": path, "values": [{"label": "it", "value": value}]}
    (point,) = expand(experiment(base={**BASE, **base}, factors=[factor]), SOURCES)
    assert point.spec is not None
    return point.spec


def test_the_bits_of_the_weights_are_of_the_base_or_a_factor() -> None:
    assert spec_with("model.weight_bits", 4, weight_bits=8).model.weight_bits == 4.0
    (eight,) = points(base={**BASE, "weight_bits": 8})
    assert eight.spec is not None and eight.spec.model.weight_bits == 8.0
    with pytest.raises(SpecError, match="weight_bits is 5: expected 8 or 4"):
        points(base={**BASE, "weight_bits": 5})


def test_a_base_in_whole_numbers_has_points_in_whole_numbers() -> None:
    base = {**BASE, "weight_bits": 8, "activation_bits": 8}
    made = points(
        base=base,
        factors=[
            RATE | {"values": [1e6]},
            {"name": "model", "path": "model", "values": ["gpt2", "tiny-gpt2"]},
        ],
    )
    assert [point.spec and point.spec.model.activation_bits for point in made] == [8, 8]
    for wrong, sentence in (
        ({"weight_bits": None}, "set weight_bits = 8"),
        ({"activation_bits": 4}, "expected 8"),
    ):
        with pytest.raises(SpecError, match=sentence):
            points(base=base | wrong)


def test_the_grid_has_every_combination_and_the_last_factor_changes_fastest() -> None:
    made = points(factors=[STRATEGY, RATE])
    assert [tuple(point.coordinates.values()) for point in made] == [
        ("single", 1e6),
        ("single", 2e6),
        ("voltage", 1e6),
        ("voltage", 2e6),
    ]
    for point in made:
        assert point.spec is not None
        assert point.spec.strategy == point.coordinates["strategy"]
        assert {link.bit_per_s for link in point.spec.cluster.links} == {point.coordinates["rate"]}


def test_zipped_factors_go_side_by_side() -> None:
    made = points(factors=[STRATEGY, RATE], zipped=[["strategy", "rate"]])
    assert [tuple(point.coordinates.values()) for point in made] == [("single", 1e6), ("voltage", 2e6)]


def test_conditions_leave_out_cells_and_explicit_points_are_added() -> None:
    made = points(
        factors=[STRATEGY, RATE],
        where=["strategy == 'single' or rate > 1.5e6"],
        points=[{"strategy": "voltage", "rate": 5e6}, {"strategy": "single", "rate": 1e6}],
    )
    cells = [tuple(point.coordinates.values()) for point in made]
    assert cells == [("single", 1e6), ("single", 2e6), ("voltage", 2e6), ("voltage", 5e6)]


def test_without_the_grid_only_the_explicit_points_are_left() -> None:
    made = points(factors=[STRATEGY, RATE], grid=False, points=[{"strategy": "single", "rate": 3e6}])
    assert [point.coordinates for point in made] == [{"strategy": "single", "rate": 3e6}]


def test_every_cell_is_repeated_with_every_seed() -> None:
    made = points(factors=[STRATEGY], seeds=[0, 7])
    assert [(point.coordinates["strategy"], point.spec and point.spec.seed) for point in made] == [
        ("single", 0),
        ("single", 7),
        ("voltage", 0),
        ("voltage", 7),
    ]


def test_a_level_may_set_several_paths_and_has_its_label_as_coordinate() -> None:
    level = {"label": "trimmed", "set": {"strategy": "voltage", "params.causal_trim": True}}
    (point,) = points(factors=[{"name": "method", "values": [level]}])
    assert point.coordinates == {"method": "trimmed"} and point.spec is not None
    assert (point.spec.strategy, point.spec.params) == ("voltage", {"causal_trim": True})


def test_the_first_devices_stay_with_the_links_among_them() -> None:
    cluster = spec_with("cluster.num_devices", 2).cluster
    assert [device.name for device in cluster.devices] == ["desk", "shelf"]
    assert [link.name for link in cluster.links] == ["desk--hub", "shelf--hub"]


def test_workers_after_the_first_become_terminals() -> None:
    cluster = spec_with("cluster.num_workers", 1).cluster
    assert [device.role for device in cluster.devices] == ["worker", "terminal", "terminal"]


def test_copies_of_a_device_have_its_links() -> None:
    cluster = spec_with("cluster.copies[shelf]", 2).cluster
    assert [device.name for device in cluster.devices] == ["desk", "shelf-1", "shelf-2", "window"]
    assert [link.name for link in cluster.links] == [
        "desk--hub",
        "shelf-1--hub",
        "shelf-2--hub",
        "window--hub",
    ]


def test_a_preset_replaces_all_but_the_name_of_a_device() -> None:
    cluster = spec_with("cluster.devices[shelf].preset", "raspberry-pi-4").cluster
    assert cluster.devices[1].name == "shelf"
    assert cluster.devices[1].flop_per_s == topologies.preset("raspberry-pi-4").flop_per_s
    assert cluster.devices[2] == topologies.load("lab-3").devices[2]


def test_one_link_is_found_by_either_order_of_its_ends() -> None:
    cluster = spec_with("cluster.links[hub--shelf].delay_s", 0.5).cluster
    assert [link.delay_s for link in cluster.links] == [0.2e-3, 0.5, 0.2e-3]


def test_a_named_scenario_of_no_source_and_an_unknown_cluster_are_problems_of_their_cells() -> None:
    factor = {"name": "cluster", "path": "cluster", "values": ["lab-3", "nowhere"]}
    good, bad = points(factors=[factor])
    assert good.spec is not None and good.problem == ""
    assert bad.spec is None and "nowhere" in bad.problem and bad.digest == ""


DROP = {"kind": "drop_device", "at_s": 0.5, "device": "shelf"}


def test_a_time_as_a_factor_takes_the_place_of_the_other_time_of_its_change() -> None:
    for field, value in (("at_frac", 0.25), ("after_token", 3)):
        spec = spec_with(f"scenario.changes[0].{field}", value, scenario={"changes": [DROP]})
        (change,) = spec.scenario.changes
        assert change.is_relative and getattr(change, field) == value and change.at_s == 0


def test_two_factors_may_not_set_two_times_of_one_change() -> None:
    times = [
        {"name": name, "path": f"scenario.changes[0].{name}", "values": [0.1, 0.2]}
        for name in ("at_s", "at_frac")
    ]
    with pytest.raises(SpecError, match="at_s and at_frac both set"):
        points(base={**BASE, "scenario": {"changes": [DROP]}}, factors=times)


def test_a_curve_of_a_links_rate_is_a_value_of_the_factor_scenario() -> None:
    factor = {"name": "curve", "path": "scenario", "values": ["none", "walk@hub--shelf"]}
    sources = SOURCES._replace(scenario=scenario_of)
    calm, walk = expand(experiment(factors=[factor]), sources)
    assert calm.spec is not None and calm.spec.scenario.changes == ()
    assert walk.spec is not None
    assert {change.link for change in walk.spec.scenario.changes if isinstance(change, SetRate)} == {
        "hub--shelf"
    }


def test_an_encoder_gets_no_new_tokens_unless_they_are_given() -> None:
    assert spec_with("model", "bert-base").workload.new_tokens == 0
    assert spec_with("model", "gpt2").workload.new_tokens == 16


def test_the_hash_is_that_of_what_is_run_and_not_of_how_it_is_written() -> None:
    spec = spec_with("strategy", "voltage")
    same = spec_with("params", {"causal_trim": False}, strategy="voltage")
    assert spec_digest(same) == spec_digest(spec.model_copy(update={"name": "another name"}))
    other = spec.model_copy(update={"seed": 1})
    assert spec_digest(other) != spec_digest(spec)
    whole = spec.model_copy(update={"params": {"x": 1}})
    assert spec_digest(whole) == spec_digest(spec.model_copy(update={"params": {"x": 1.0}}))


def test_a_model_counts_by_what_is_in_its_files_wherever_they_are(tmp_path: Path) -> None:
    own = Path(resolve("demo-lm")[1].directory)
    for name in ("here", "there", "changed"):
        shutil.copytree(own, tmp_path / name)
    changed = tmp_path / "changed" / "model.safetensors"
    content = bytearray(changed.read_bytes())
    content[-1] ^= 1
    changed.write_bytes(content)
    named = {
        name: spec_with("strategy", "single", model="demo-lm", weights=str(tmp_path / name))
        for name in ("here", "there", "changed")
    }
    assert (
        spec_digest(named["here"])
        == spec_digest(named["there"])
        == spec_digest(spec_with("strategy", "single", model="demo-lm"))
    )
    assert spec_digest(named["changed"]) != spec_digest(named["here"])


REFUSED = [
    ({"factors": [{**RATE, "path": "cluster.link[*].bit_per_s"}]}, "nearest is cluster.links[*].bit_per_s"),
    ({"factors": [{**RATE, "path": "params.causaltrim"}]}, "nearest is params.causal_trim"),
    ({"factors": [{**RATE, "path": "seed"}]}, "give `seeds`"),
    ({"factors": [{**RATE, "unit": "Mbit/s"}]}, "is in bit/s: write its values in bit/s"),
    (
        {"factors": [{**RATE, "values": ["fast"]}]},
        'values[0] is "fast", and cluster.links[*].bit_per_s takes',
    ),
    ({"factors": [{**RATE, "values": [1e6, True]}]}, "values[1] is true, and cluster.links[*].bit_per_s"),
    ({"factors": [RATE, {**RATE, "name": "other"}]}, "the factors rate and other both set"),
    ({"factors": [RATE], "where": ["rates > 1"]}, "there is no factor rates: there are rate"),
    ({"factors": [RATE], "where": ["rate > 5e6"]}, "no point meets every condition"),
    ({"base": BASE | {"likely_acceptance": 0.5}}, "likely_acceptance is given, and no point drafts tokens"),
    ({"factors": [STRATEGY], "base": {"cluster": "lab-3"}}, "no point can be run: model is missing"),
    ({"factors": [{"name": "n", "path": "cluster.num_devices", "values": [9]}]}, "has 3 devices, so not 9"),
]


@pytest.mark.parametrize(("fields", "words"), REFUSED)
def test_a_mistake_is_refused_in_one_sentence(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(SpecError) as refusal:
        points(**fields)
    assert words in str(refusal.value)
    assert str(refusal.value).endswith(".") and "\n" not in str(refusal.value)


REFUSED_VALUES = [
    ({"factors": [RATE, RATE]}, "factors: rate is there twice"),
    ({"factors": [STRATEGY, RATE], "zipped": [["rate", "speed"]]}, "there is no factor speed"),
    (
        {"factors": [STRATEGY, {**RATE, "values": [1]}], "zipped": [["rate", "strategy"]]},
        "need as many values",
    ),
    ({"factors": [RATE], "points": [{}]}, "points[0]: rate is missing"),
    ({"factors": [{**RATE, "values": [1, 1.0]}]}, "has the coordinate 1.0 of an earlier one"),
    ({"factors": [{"name": "x", "values": [1]}]}, "x changes nothing"),
    ({"factors": [{**RATE, "values": []}]}, "factors[0].values: expected at least 1 value, got none"),
    ({"factors": [{**RATE, "values": [1e6, math.nan]}]}, "factors[0].values[1]: nan is no finite number"),
    ({"factors": [RATE], "base": {"dilation": -math.inf}}, "base.dilation: -inf is no finite number"),
    ({"factors": [{**RATE, "values": [10**400]}]}, "factors[0].values[0]: the limit of whole numbers"),
    ({"points": [{"rate": math.nan}], "factors": [RATE]}, "points[0].rate: nan is no finite number"),
    ({"factors": [STRATEGY, RATE], "zipped": [["rate", "rate"]]}, "rate is in two groups or twice in one"),
    (
        {"factors": [STRATEGY, RATE], "zipped": [["strategy", "rate"], ["rate", "strategy"]]},
        "zipped[1]: rate is in two groups or twice in one",
    ),
    ({"factors": [{**RATE, "name": "world"}]}, "cannot be called world"),
    ({"base": {"seed": 3}}, "an experiment has seeds beside base"),
    ({"base": {"clusters": "x"}}, "clusters: unknown key"),
    ({"base": {"dilation": "nodes"}}, 'give "nodes" among the worlds'),
    (
        {"factors": [{"name": "d", "path": "dilation", "values": [2, "nodes"]}]},
        "d: values[1]: dilation is nodes",
    ),
    (
        {"factors": [{"name": "d", "values": [{"label": "x", "set": {"dilation": "nodes"}}]}]},
        "d: values[0]: dilation is nodes",
    ),
    ({"grid": False}, "nothing would run"),
]


@pytest.mark.parametrize(("fields", "words"), REFUSED_VALUES)
def test_a_value_that_contradicts_itself_is_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(SpecError) as refusal:
        experiment(**fields)
    assert words in str(refusal.value)


def test_a_grid_above_the_limit_is_refused_by_arithmetic_before_a_point_is_made() -> None:
    wide = [{**RATE, "name": name, "values": list(range(1, 101))} for name in ("a", "b", "c")]
    with pytest.raises(SpecError, match=r"100 a × 100 b × 100 c × 1 seeds are 1,000,000 points.*10,000"):
        experiment(factors=wide)
    assert MAX_POINTS == 10_000


def test_the_file_in_the_documentation_is_an_experiment() -> None:
    text = (Path(__file__).parents[3] / "docs/guides/experiments.md").read_text(encoding="utf-8")
    written = parse_toml(text.split("```toml")[1].split("```")[0], "docs/guides/experiments.md")
    made = expand(written, SOURCES)
    assert len(made) == 3 * (3 * 3 - 1) and all(point.spec is not None for point in made)
    assert parse_toml(dump_toml(written), "again") == written
