"""Claims and published values against results, with numbers worked by hand."""

from __future__ import annotations

from typing import Any

import pytest

from engine.domain.errors import SpecError
from engine.experiments.results.claims import verdicts
from engine.experiments.results.published import compare_published
from engine.experiments.results.statements import check_statements
from engine.experiments.results.units import in_unit
from tests.support.experiment_rows import FALLING, METHODS, RATES, experiment_of, rows_of

# Claims ------------------------------------------------------------------------------------------
SIDES = {"a": {"method": "Voltage"}, "b": {"method": "single"}, "side": "below"}

FAST = {"method": "voltage", "rate": 1e8}
BETTER = {"kind": "break_even", "along": "rate", "a": {"method": "voltage"}, "b": {"method": "single"}}

CLAIMS: list[tuple[dict[str, Any], str, str]] = [
    (
        {"kind": "compared", **SIDES, "at": {"rate": 1e8}, "by_frac": 0.52},
        "holds",
        "Voltage against single: -50.0%.",
    ),
    ({"kind": "compared", **SIDES, "at": {"rate": 1e8}, "by_frac": 0.6}, "holds in direction", "-50.0%"),
    ({"kind": "compared", **SIDES}, "does not hold", "-50.0% to +300.0% (3 places)"),
    ({"kind": "compared", **SIDES, "at": {"rate": 5.0}}, "not known", "No point has a value"),
    (
        {"kind": "first", "of": "method", "level": "Voltage", "at": {"rate": [1e8]}},
        "holds",
        "first in 1 of 1",
    ),
    (
        {"kind": "first", "of": "method", "level": "single"},
        "does not hold",
        "first in 2 of 3; elsewhere Voltage",
    ),
    (
        {"kind": "first", "of": "method", "level": "Voltage"},
        "does not hold",
        "first in 1 of 3; elsewhere single",
    ),
    (
        {"kind": "first", "of": "method", "level": "Voltage", "last": True, "at": {"rate": 1e6}},
        "holds",
        "last in 1",
    ),
    (  # single, which is faster in two places, is not named
        {"kind": "first", "of": "method", "level": "Voltage", "at": {"method": ["Voltage"]}},
        "holds",
        "first in 3 of 3",
    ),
    ({"kind": "trend", "along": "rate", "goes": "falls", "at": {"method": "voltage"}}, "holds", "8 s to 1 s"),
    ({"kind": "trend", "along": "rate", "goes": "rises"}, "does not hold", "rises in every step of 0 of 2"),
    ({"kind": "within", "low": 900, "high": 1100, "unit": "ms", "at": FAST}, "holds", "1 s"),
    (
        {"kind": "within", "low": 1.2, "high": 2, "at": FAST},
        "does not hold",
        "1 s, claimed 1.2 s to 2 s",
    ),
    ({"kind": "within", "low": 3, "high": 4, "at": FAST}, "does not hold", "1 s"),
    ({"kind": "within", "low": 0.5, "at": FAST}, "holds", "1 s, claimed at least 500 ms"),
    ({"kind": "within", "low": 1.2, "at": FAST}, "does not hold", "1 s, claimed at least 1.2 s"),
    ({"kind": "within", "high": 0.5, "at": FAST}, "does not hold", "1 s, claimed at most 500 ms"),
    (
        {"kind": "compared", **SIDES, "unpublished": ["rate"]},
        "not known",
        "It depends on what is not published: 1 Mbit/s: Voltage against single: +300.0%.",
    ),
    (
        {"kind": "within", "low": 0.5, "at": {"method": "voltage"}, "unpublished": ["rate"]},
        "holds",
        "100 Mbit/s: 1 s, claimed at least 500 ms.",
    ),
    (
        {"kind": "compared", **SIDES, "at": {"rate": 1e8}, "by_frac": 0.52, "unpublished": ["rate"]},
        "holds",
        "100 Mbit/s: Voltage against single: -50.0%.",
    ),
    ({"kind": "ended", "outcome": "finished"}, "holds", "6 of 6 finished"),
    ({"kind": "ended", "outcome": ["no_plan", "out_of_memory"]}, "does not hold", "6 of 6 finished"),
    ({**BETTER, "low": 3e7, "high": 4e7}, "holds", "at 31.6 Mbit/s"),
    ({**BETTER, "low": 8e7, "high": 1e8}, "holds in direction", "at 31.6 Mbit/s"),
    ({**BETTER, "low": 1e8, "high": 1e8, "tested": True}, "holds", "at 100 Mbit/s"),
    (
        {
            "kind": "break_even",
            "along": "rate",
            "a": {"method": "single"},
            "b": {"method": "voltage"},
            "low": 1e6,
            "high": 1e9,
        },
        "does not hold",
        "at nowhere",
    ),
]


LIKE_LIME = {"kind": "within", "relation": "ratio", "relative_to": {"method": "voltage"}, "unit": "x"}
SLOWER = {**LIKE_LIME, "low": 1.4, "high": 6.5, "at": {"method": ["single", "megatron"]}}
BEST = {**LIKE_LIME, "low": 1.53, "high": 1.87, "best_of": "method", "at": {"method": ["single", "megatron"]}}


@pytest.mark.parametrize(
    ("fields", "others", "verdict", "found"),
    [
        (SLOWER, (1.5, 6.0), "holds", "1.5 to 6, claimed 1.4 to 6.5"),
        (SLOWER, (1.03, 51.4), "holds in direction", "1.03 to 51.4"),
        (SLOWER, (0.717, 5.0), "does not hold", "0.717 to 5"),  # the mean, 2.9, is inside
        (SLOWER, (1.0, 30.0), "does not hold", "1 to 30"),
        (SLOWER, (1.01, 4.0), "does not hold", "1.01 to 4"),  # no effect
        (SLOWER, ("out_of_memory", 4.0), "not known", "4, claimed 1.4 to 6.5; 1 without a value"),
        (SLOWER, ("out_of_memory", 0.9), "does not hold", "0.9, claimed"),
        (BEST, (1.7, 3.7), "holds", "1.7, claimed 1.53 to 1.87"),
        (BEST, (1.0, 1.7), "does not hold", "1, claimed 1.53"),
        (BEST, (1.2, 1.7), "holds in direction", "1.2, claimed 1.53"),
        (BEST, ("out_of_memory", 1.7), "holds", "1.7, claimed 1.53"),
    ],
)
def test_a_range_is_about_every_baseline_and_the_best_baseline_is_the_fastest_that_ran(
    fields: dict[str, Any], others: tuple[float | str, float | str], verdict: str, found: str
) -> None:
    values = dict(zip((("single", 1e6), ("megatron", 1e6)), others, strict=True))
    methods = {**METHODS, "values": [*METHODS["values"], {"value": "megatron"}]}
    experiment = experiment_of(methods, RATES, claims=[{"name": "c", "text": "t", **fields}])
    (judged,) = verdicts(experiment, rows_of("latency_s", {("voltage", 1e6): 1.0, **values}))
    assert (judged.verdict, found in judged.found) == (verdict, True), judged.found


@pytest.mark.parametrize(("fields", "verdict", "found"), CLAIMS)
def test_a_claim_holds_holds_in_direction_or_does_not(
    fields: dict[str, Any], verdict: str, found: str
) -> None:
    claim = {"name": "c", "text": "t", "reason": "because", **fields}
    (judged,) = verdicts(experiment_of(claims=[claim]), rows_of("latency_s", FALLING))
    assert (judged.verdict, judged.reason) == (verdict, "" if verdict == "holds" else "because")
    assert found in judged.found and judged.found.endswith(".")


@pytest.mark.parametrize(
    ("metric", "values", "asked", "verdict", "found"),
    [
        # Voltage is better at both ends, single in the middle: 1 to 2 or 2 to 1 of its 1.41, half way on logs
        ("latency_s", (1.0, 2.0, 1.0), "voltage", "holds", "at 31.6 Mbit/s"),
        ("latency_s", (1.0, 2.0, 1.0), "single", "holds in direction", "at 3.16 Mbit/s"),
        ("tokens_per_s", (2.0, 1.0, 2.0), "voltage", "holds", "at 31.6 Mbit/s"),
        ("tokens_per_s", (2.0, 1.0, 2.0), "single", "holds in direction", "at 3.16 Mbit/s"),
        ("tokens_per_s", (1.0, 1.0, 2.0), "single", "does not hold", "at nowhere"),
    ],
)
def test_a_break_even_is_where_the_asked_one_gets_better_whether_less_or_more_is_better(
    metric: str, values: tuple[float, ...], asked: str, verdict: str, found: str
) -> None:
    rates = (1e6, 1e7, 1e8)
    line = {("voltage", rate): value for rate, value in zip(rates, values, strict=True)}
    rows = rows_of(metric, {**line, **{("single", rate): 2**0.5 for rate in rates}})
    other = {"voltage": "single", "single": "voltage"}[asked]
    sides = {"a": {"method": asked}, "b": {"method": other}, "low": 3e7, "high": 4e7}
    claim = {**BETTER, **sides, "name": "c", "text": "t", "metric": metric}
    (judged,) = verdicts(experiment_of(claims=[claim]), rows)
    assert (judged.verdict, found in judged.found) == (verdict, True), judged.found


def test_a_claim_of_how_runs_end_is_about_every_run() -> None:
    claim = {"kind": "ended", "name": "c", "text": "t", "outcome": "no_plan"}
    rows = rows_of("latency_s", {("voltage", 1e6): "no_plan", ("voltage", 1e8): 1.0})
    (found,) = verdicts(experiment_of(METHODS, RATES, claims=[claim]), rows)
    assert found.verdict == "does not hold", "one of two ended so"
    (found,) = verdicts(experiment_of(METHODS, RATES, claims=[claim]), rows[:1])
    assert found.verdict == "holds"


def test_every_world_with_results_has_its_own_verdict_and_without_any_it_is_not_known() -> None:
    claim = {"kind": "compared", "name": "c", "text": "t", **SIDES}
    experiment = experiment_of(claims=[claim], worlds=["predicted", "emulated"])
    values = {("single", 1e6): 2.0, ("voltage", 1e6): 1.0}
    values |= {("single", 1e6, "emulated"): 1.0, ("voltage", 1e6, "emulated"): 2.0}  # type: ignore[dict-item]
    found = verdicts(experiment, rows_of("latency_s", values))
    assert [(one.world, one.verdict) for one in found] == [
        ("predicted", "holds"),
        ("emulated", "does not hold"),
    ]
    assert [one.verdict for one in verdicts(experiment, [])] == ["not known"]


# Published values --------------------------------------------------------------------------------
def test_published_values_are_compared_in_the_metric_s_unit() -> None:
    published = [
        {"id": "value", "coordinates": {"method": "voltage", "rate": 1e8}, "value": 800, "unit": "ms"},
        {"id": "range", "coordinates": {"method": "voltage"}, "low": 2, "high": 10},
        {"id": "bound", "coordinates": {"method": "single"}, "value": 3, "bound": "at_most"},
        {"id": "outcome", "coordinates": {"method": "single"}, "outcome": "out_of_memory"},
        {"id": "speed", "coordinates": {"method": "voltage", "rate": 1e8}, "value": 100, "unit": "%",
         "relation": "ratio", "relative_to": {"method": "single"}},
        {"id": "nowhere", "coordinates": {"rate": 5e5}, "value": 1.0},
    ]  # fmt: skip
    experiment = experiment_of(METHODS, {**RATES, "values": [5e5, 1e6, 1e7, 1e8]}, published=published)
    found = {row.id: row for row in compare_published(experiment, rows_of("latency_s", FALLING))}
    assert (found["value"].published, found["value"].ours) == (0.8, 1.0)
    assert found["value"].deviation == pytest.approx(0.25)
    assert (found["range"].ours_low, found["range"].ours_high, found["range"].deviation) == (1.0, 8.0, -0.5)
    assert found["bound"].deviation == 0.0
    assert (found["outcome"].agrees, set(found["outcome"].outcomes)) == (False, {"finished"})
    assert (found["speed"].published, found["speed"].ours) == (1.0, 0.5)
    assert (found["nowhere"].ours, found["nowhere"].problem) == (None, "There is no such point.")


def test_a_unit_of_another_kind_is_refused() -> None:
    assert in_unit(3, "GiB", "B") == 3 * 2**30
    with pytest.raises(SpecError, match="the unit MB does not fit a value in s: use one of s, ms"):
        in_unit(1, "MB", "s")


AT_SPEED = {"name": "c", "text": "It is.", "at": {"speed": 1}}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"published": [{"value": 1, "unit": "kg"}]}, "published[0]: the unit kg does not fit a value in s"),
        ({"published": [{"value": 1, "metric": "totals"}]}, "published[0]: metric is totals"),
        (
            {"claims": [AT_SPEED | {"kind": "within", "high": 1, "at": {}, "unit": "GB"}]},
            "claim c: the unit GB does not fit a value in s",
        ),
        ({"claims": [AT_SPEED | {"kind": "ended", "outcome": "finished"}]}, "at: there is no factor speed"),
        (
            {"claims": [AT_SPEED | {"kind": "trend", "along": "rates", "goes": "falls", "at": {}}]},
            "claim c: along: there is no factor rates: there are method, rate, world",
        ),
        (
            {"claims": [AT_SPEED | {"kind": "first", "of": "kind", "level": "voltage", "at": {}}]},
            "claim c: of: there is no factor kind",
        ),
        (
            {
                "claims": [
                    AT_SPEED
                    | {
                        "kind": "compared",
                        "at": {},
                        "side": "below",
                        "a": {"method": "single"},
                        "b": {"m": 1},
                    }
                ]
            },
            "claim c: b: there is no factor m",
        ),
    ],
)
def test_what_is_stated_about_nothing_is_refused_before_anything_is_computed(
    fields: dict[str, Any], words: str
) -> None:
    with pytest.raises(SpecError) as refusal:
        check_statements(experiment_of(METHODS, RATES, **fields))
    assert words in str(refusal.value) and str(refusal.value).startswith("test, ")
    check_statements(experiment_of(METHODS, RATES, published=[{"value": 1, "unit": "ms"}]))
