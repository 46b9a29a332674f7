"""Comparisons: only what differs differs, and deltas refer to the baseline."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from engine.domain.errors import SpecError
from engine.domain.host_times import HostProfile, MeasuredRow
from engine.domain.report import (
    Attribution,
    DeviceReport,
    Fidelity,
    LinkReport,
    Outcome,
    RequestReport,
    RunReport,
)
from engine.domain.scenario import LinkDown, Scenario
from engine.domain.spec import RunSpec
from engine.domain.workload import Workload
from engine.reports.compare import Comparison, MetricRow, compare, flatten
from engine.reports.parameters import ParamRow, parameters_of, texts_of
from tests.support.tiny_run import MODEL, PAIR


def report(latency_s: float = 1.0, **spec: Any) -> RunReport:
    values: dict[str, Any] = {"cluster": PAIR, "model": MODEL, "strategy": "gpipe", "params": {}} | spec
    return RunReport(
        spec=RunSpec(**values),
        plan=None,
        world="predicted",
        dilation=1.0,
        latency_s=latency_s,
        tokens_per_s=2 / latency_s,
        requests=(RequestReport(index=0, arrival_s=0, ttft_s=0.5, token_s=(0.5, 0.75), output_tokens=()),),
        devices=(
            DeviceReport(name="a", busy_s=1, wait_s=0, peak_memory_bytes=50, memory_bytes=1e9, flops=10),
            DeviceReport(name="b", busy_s=2, wait_s=0, peak_memory_bytes=70, memory_bytes=1e9, flops=20),
        ),
        links=(
            LinkReport(
                a="a", b="b", direction="forward", bytes=100, payload_bytes=90, busy_s=1, rate_bit_per_s=1e6
            ),
        ),
        attribution=Attribution(compute_s=latency_s),
        scenario=values.get("scenario", Scenario()),
    )


def differing(comparison: Comparison) -> dict[str, tuple[Any, ...]]:
    return {row.path: row.values for row in comparison.params if row.differs}


def test_equal_runs_differ_in_nothing() -> None:
    comparison = compare([report(name="one"), report(name="two")])
    assert differing(comparison) == {}
    assert len(comparison.params) > 40


def test_false_zero_and_empty_are_values_like_any_other() -> None:
    comparison = compare(
        [
            report(params={"trim": False, "ratio": 0, "owner": "", "same": 0, "shares": []}),
            report(params={"trim": True, "ratio": 1, "owner": "b", "same": 0, "shares": [1, 2]}),
        ]
    )
    assert differing(comparison) == {
        "params.trim": (False, True),
        "params.ratio": (0, 1),
        "params.owner": ("", "b"),
        "params.shares": ([], [1, 2]),
    }


def test_false_and_zero_are_not_the_same() -> None:
    comparison = compare([report(params={"x": False}), report(params={"x": 0})])
    assert differing(comparison) == {"params.x": (False, 0)}


def test_a_field_that_only_one_run_has_differs_even_if_it_is_none() -> None:
    comparison = compare([report(params={"x": None, "y": 1}), report(params={"y": 1})])
    assert differing(comparison) == {"params.x": (None, None)}


def test_devices_and_links_are_matched_by_name_not_by_place() -> None:
    first = report()
    cluster = first.spec.cluster
    turned = cluster.model_copy(update={"devices": cluster.devices[::-1]})
    assert differing(compare([first, report(cluster=turned)])) == {}
    faster = cluster.model_copy(update={"links": (cluster.links[0].model_copy(update={"bit_per_s": 2e6}),)})
    found = differing(compare([first, report(cluster=faster)]))
    assert found == {"cluster.links[a--b].bit_per_s": (1e6, 2e6)}


def test_live_changes_are_part_of_what_was_asked() -> None:
    scenario = Scenario(changes=(LinkDown(at_s=1.0, link="a--b"),))
    paths = set(differing(compare([report(), report(scenario=scenario)])))
    assert {"scenario.changes[0].kind", "scenario.changes[0].at_s", "scenario.changes[0].link"} <= paths


def test_of_a_hosts_profile_only_its_name_counts() -> None:
    def profile(host: str, seconds: float) -> HostProfile:
        return HostProfile(
            host=host,
            products=(MeasuredRow(rows=1, s_per_flop=seconds),),
            op_overhead_s=seconds,
            elementwise_s_per_element=seconds,
            memory_byte_per_s=1e9,
        )

    one, same, other = (report(profile=profile(*args)) for args in (("x", 1e-9), ("x", 2e-9), ("y", 1e-9)))
    assert differing(compare([one, same])) == {}
    assert differing(compare([one, other])) == {"profile": ("x", "y")}


def test_list_items_with_equal_labels_do_not_swallow_each_other() -> None:
    flat = flatten({"x": [{"name": "n", "v": 1}, {"name": "n", "v": 2}]})
    assert flat == {"x[0].name": "n", "x[0].v": 1, "x[1].name": "n", "x[1].v": 2}


def test_empty_collections_stay_visible() -> None:
    assert flatten({"a": {}, "b": [], "c": {"d": [[]]}}) == {"a": {}, "b": [], "c.d": [[]]}


def test_deltas_are_fractions_of_the_chosen_baseline() -> None:
    reports = [report(1.0), report(2.0), report(0.5)]
    by_name = {row.name: row for row in compare(reports).metrics}
    assert by_name["latency_s"].deltas == (0.0, 1.0, -0.5)
    assert by_name["latency_s"].better == "lower" and by_name["latency_s"].unit == "s"
    assert by_name["tokens_per_s"].better == "higher"
    other = {row.name: row for row in compare(reports, baseline=1).metrics}
    assert other["latency_s"].deltas == (-0.5, 0.0, -0.75)


def test_a_delta_to_nothing_is_undefined_and_of_nothing_to_nothing_is_zero() -> None:
    rows = {row.name: row for row in compare([report(), report()]).metrics}
    assert rows["wait_s"].deltas == (0.0, 0.0)
    waited = report().model_copy(update={"attribution": Attribution(wait_s=1.0)})
    rows = {row.name: row for row in compare([report(), waited]).metrics}
    assert rows["wait_s"].deltas == (0.0, None)


def test_a_run_that_ended_early_has_no_latency_to_compare() -> None:
    lost = report(0.1).model_copy(update={"outcome": Outcome(kind="peer_lost")})
    row = compare([report(), lost]).metrics[0]
    assert row.values == (1.0, None) and row.deltas == (0.0, None)


def test_sums_and_maxima_are_over_all_devices_and_links() -> None:
    values = {row.name: row.values[0] for row in compare([report(), report()]).metrics}
    assert (values["flops"], values["busy_s"]) == (30, 3)
    assert (values["peak_memory_bytes"], values["link_bytes"]) == (70, 100)


def test_series_are_seconds_per_token() -> None:
    assert compare([report(), report()]).series[0].token_s == (0.5, 0.25)


@pytest.mark.parametrize("number", [0, 1, 51])
def test_two_to_fifty_runs_are_compared(number: int) -> None:
    with pytest.raises(SpecError, match=f"Got {number} runs to compare, expected 2 to 50"):
        compare([report()] * number)


@pytest.mark.parametrize("baseline", [-1, 2])
def test_the_baseline_is_one_of_the_runs(baseline: int) -> None:
    with pytest.raises(SpecError, match=f"baseline is {baseline}, expected 0 to 1"):
        compare([report(), report()], baseline)


def test_a_comparison_is_json() -> None:
    assert json.loads(compare([report(), report()]).model_dump_json())["baseline"] == 0


def test_what_makes_figures_incomparable_is_said_of_every_run_but_the_baseline() -> None:
    """64 tokens against 48 took longer, which says nothing about the method."""
    base = report(workload=Workload(prompt_tokens=4, new_tokens=64))
    other = report(
        workload=Workload(prompt_tokens=4, new_tokens=48),
        model=MODEL.model_copy(update={"dtype": "bfloat16"}),
        seed=7,
    ).model_copy(update={"fidelity": Fidelity(valid=False), "world": "emulated"})
    same = report(workload=Workload(prompt_tokens=4, new_tokens=64))
    first, second, third = compare([other, base, same], 1).runs
    assert second.cautions == third.cautions == ()
    assert [(one.kind, one.sentence, one.decides) for one in first.cautions] == [
        ("fidelity", "The times of this run are not valid: see its report.", True),
        ("numbers", "bfloat16 here, float32 in the baseline.", True),
        ("workload", "48 new tokens here, 64 in the baseline.", True),
        ("world", "This run is emulated, the baseline predicted.", False),
        ("seed", "Seed 7 here, 0 in the baseline.", False),
    ]


def test_a_prompt_and_a_number_of_prompt_tokens_are_not_compared_as_sizes() -> None:
    base = report(workload=Workload(prompt_tokens=5, new_tokens=4))
    other = report(workload=Workload(prompt="a text", new_tokens=4))
    (caution,) = compare([base, other], 0).runs[1].cautions
    assert caution.sentence == "The workload differs from the baseline's."


def test_an_invalid_baseline_and_an_unfinished_run_are_cautions_and_another_text_is_another_workload() -> (
    None
):
    base = report(workload=Workload(prompt="a", new_tokens=4)).model_copy(
        update={"fidelity": Fidelity(valid=False)}
    )
    other = report(workload=Workload(prompt="b", new_tokens=4)).model_copy(
        update={"outcome": Outcome(kind="out_of_memory")}
    )
    found = compare([base, other]).runs[1].cautions
    assert [(one.kind, one.sentence) for one in found] == [
        ("outcome", "This run ran out of memory."),
        ("baseline_fidelity", "The times of the baseline are not valid: see its report."),
        ("workload", "The workload differs from the baseline's."),
    ]


def test_two_invalid_runs_are_two_cautions_and_that_of_the_baseline_names_it() -> None:
    invalid = {"fidelity": Fidelity(valid=False)}
    first = report()
    base = first.model_copy(update=invalid | {"spec": first.spec.model_copy(update={"name": "first try"})})
    found = compare([base, report().model_copy(update=invalid)]).runs[1].cautions
    assert [(one.kind, one.sentence) for one in found] == [
        ("fidelity", "The times of this run are not valid: see its report."),
        ("baseline_fidelity", "The times of the baseline, first try, are not valid: see its report."),
    ]


# Groups of repeats --------------------------------------------------------------------------------
def groups(second: Sequence[float], **more: Any) -> tuple[Comparison, MetricRow]:
    """Latencies 1, 2 and 3 s of one strategy, with three seeds, beside those given of another one."""
    first = [report(s, seed=seed) for seed, s in enumerate((1.0, 2.0, 3.0))]
    others = [report(s, strategy="voltage", seed=seed, **more) for seed, s in enumerate(second)]
    comparison = compare([*first, *others], 0, grouped=None)
    return comparison, next(row for row in comparison.metrics if row.name == "latency_s")


def test_a_group_of_repeats_is_a_column_named_by_what_tells_it_from_others() -> None:
    comparison, _ = groups([4.0, 5.0, 6.0])
    assert comparison.grouped and comparison.has_repeats
    assert [(one.label, one.is_base, one.runs) for one in comparison.columns] == [
        ("gpipe", True, (0, 1, 2)),
        ("voltage", False, (3, 4, 5)),
    ]
    assert comparison.columns[1].cautions == (), "repeats differ in the seed: that is what they are for"


def test_the_mean_is_set_against_the_mean_of_the_baseline_s_group() -> None:
    _, row = groups([19.0, 20.0, 21.0])  # means 2 and 20, each ± 4.303/√3 = 2.484
    base, cell = row.cells
    assert cell.average is not None and cell.average.margin == pytest.approx(2.484, abs=1e-3)
    assert (cell.average.mean, cell.delta, cell.verdict) == (20, 9, "worse")
    assert (base.delta, base.verdict) == (None, None)


@pytest.mark.parametrize(
    ("second", "verdict"),
    [
        ([5.0, 6.0, 7.0], "unclear"),  # means 2 and 6: 4 is less than 2 · 2.484
        ([6.0, 7.0, 8.0], "worse"),  # 5 is more
        ([2.0, 1.0, 3.0], "same"),
    ],
)
def test_no_difference_within_the_intervals_is_better_or_worse(second: list[float], verdict: str) -> None:
    assert groups(second)[1].cells[1].verdict == verdict


def measured(latency_s: float, error: float, limit: float | None = 0.05, **spec: Any) -> RunReport:
    """An emulated run whose latency is `error` off its prediction, as a fraction."""
    fidelity = Fidelity(valid=True, latency_error=error, latency_limit=limit)
    return report(latency_s, **spec).model_copy(update={"world": "emulated", "fidelity": fidelity})


@pytest.mark.parametrize(
    ("second", "verdict"),
    [
        (measured(1.02, 0.02), "unclear"),  # the same once more
        (measured(1.02, 0.02, seed=1), "unclear"),
        (measured(1.02, 0.015, strategy="voltage"), "unclear"),  # 0.01 + 0.015 is more than 0.02
        (measured(0.98, 0.005, strategy="voltage"), "better"),  # 0.01 + 0.005 is less
        (measured(0.98, 0.5, limit=None, strategy="voltage"), "better"),  # its prediction is not that good
    ],
)
def test_no_difference_that_runs_of_the_same_may_have_is_better_or_worse(
    second: RunReport, verdict: str
) -> None:
    rows = {row.name: row for row in compare([measured(1.0, -0.01), second]).metrics}
    assert rows["latency_s"].cells[1].verdict == verdict
    assert rows["link_bytes"].cells[1].verdict == "same"


def test_what_no_time_changes_is_judged_exactly() -> None:
    more = measured(1.0, 0.5, strategy="voltage")
    links = tuple(link.model_copy(update={"bytes": 101}) for link in more.links)
    rows = compare([measured(1.0, 0.5), more.model_copy(update={"links": links})]).metrics
    assert next(row for row in rows if row.name == "link_bytes").cells[1].verdict == "worse"


def test_nothing_is_judged_that_was_asked_for_something_else() -> None:
    comparison, row = groups([19.0, 20.0, 21.0], workload=Workload(prompt_tokens=4, new_tokens=48))
    assert row.cells[1].verdict is None and row.cells[1].delta == 9
    assert [one.kind for one in comparison.columns[1].cautions] == ["workload"]


def test_the_table_begins_with_groups_only_if_there_are_several_and_some_have_repeats() -> None:
    strategies, seeds = [report(), report(strategy="voltage")], [report(), report(seed=1)]
    assert not compare(strategies, grouped=None).grouped and not compare(seeds, grouped=None).grouped
    assert [one.runs for one in compare(seeds, grouped=True).columns] == [(0, 1)]


def test_the_same_field_of_several_links_with_the_same_values_is_one_parameter() -> None:
    rows = [
        ParamRow(path=f"cluster.links[{link}].bit_per_s", values=values, differs=True)
        for link, values in (("a--hub", (1e7, 1e8)), ("b--hub", (1e7, 1e8)), ("c--hub", (1e8, 1e7)))
    ]
    both, other = parameters_of(rows)
    assert (both.title, both.told(1)) == ("rate of 2 links", "rate of links 100 Mbit/s")
    assert other.title == "rate of links" and parameters_of(rows[1:])[0].title == rows[1].path


def test_values_that_read_alike_have_texts_of_their_own() -> None:
    assert texts_of("a.bit_per_s", (100.1e6, 100.2e6)) == ("100.1 Mbit/s", "100.2 Mbit/s")
    assert texts_of("a.b", (None, "–", "x")) == ("–", '"–"', '"x"')
    assert texts_of("a.b", (True, "true", False, 0)) == ("true", '"true"', "false", "0")


def test_a_prediction_is_no_repeat_of_a_measurement_and_words_of_a_cluster_change_nothing() -> None:
    measured = report().model_copy(update={"world": "emulated"})
    told = report(cluster=PAIR.model_copy(update={"description": "at home"}), seed=3)
    comparison = compare([report(), measured, told], grouped=True)
    assert [one.runs for one in comparison.columns] == [(0, 2), (1,)]
