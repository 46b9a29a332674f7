"""Worlds have one name each; what was stored with another one is read as that."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from engine.domain.experiment import Experiment
from engine.domain.report import RunReport
from engine.domain.stored import read_report, to_document
from engine.domain.world import MEASURED, WORLDS
from engine.experiments.results.rows import Result, Row
from engine.reports.fold import fold
from tests.support.small_cases import GPT2, spec_of, star


def experiment(world: str) -> dict[str, Any]:
    at = {"rate": 1, "world": world}
    where = [f'world == "{world}"', f"world in ['{world}', \"emulated\"]"]
    shown = {"name": "one", "worlds": [world, "emulated"], "where": where, "relative_to": at}
    return {
        "name": "old",
        "factors": [{"name": "rate", "paths": ["seed"], "values": [{"value": 1}, {"value": 2}]}],
        "worlds": [world, "emulated"],
        "figures": [{**shown, "x": "rate"}],
        "tables": [{**shown, "rows": ["rate"]}],
        "published": [{"coordinates": at, "value": 1.0}],
        "claims": [
            {
                "kind": "compared",
                "name": "one",
                "text": "",
                "a": at,
                "b": at,
                "side": "below",
                "at": {"world": [world, "emulated"]},
            }
        ],
    }


def test_an_experiment_is_read_by_the_former_name_wherever_it_may_stand() -> None:
    before, now = (Experiment.model_validate(experiment(world)) for world in ("simulated", "predicted"))
    assert before == now
    assert "simulated" not in before.model_dump_json()


def test_a_name_that_only_contains_the_former_one_stays() -> None:
    kept = {"name": "one", "x": "rate", "where": ('"simulated 2" != "world"', 'strategy == "simulated"')}
    found = Experiment.model_validate({"name": "one", "figures": [kept]})
    assert found.figures[0].where == kept["where"]


def test_results_are_found_by_their_digest_under_the_present_name() -> None:
    line = '{"digest": "d", "world": "simulated", "outcome": "finished", "code_version": "c"}'
    assert Result.model_validate_json(line).key == ("d", "predicted")
    row = Row.model_validate_json('{"coordinates": {}, "seed": 0, ' + line[1:])
    assert (row.place["world"], row.code_version) == ("predicted", "c")


@pytest.mark.parametrize(
    ("before", "dilation", "now"),
    [
        ("simulated", "auto", "predicted"),
        ("real", "auto", "emulated"),
        ("real", 4.0, "emulated"),
        ("real", "native", "native"),
    ],
)
def test_a_report_of_version_4_says_whether_a_real_run_was_paced(before, dilation, now) -> None:
    spec = spec_of("gpipe", GPT2, star((1e9, 1e9))).model_copy(update={"dilation": dilation})
    report = fold(spec, None, [], world=now)
    old = {**to_document(report), "schema": 4, "world": before}
    assert read_report(old, "the report").needed() == report


def test_there_is_one_list() -> None:
    (names,) = {get_args(field.annotation) for field in [RunReport.model_fields["world"]]}
    assert names == WORLDS
    assert set(MEASURED) < set(WORLDS)
    with pytest.raises(ValueError, match="native speed where"):
        Experiment.model_validate({"name": "one", "worlds": ["native"]})
