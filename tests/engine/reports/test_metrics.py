"""The table of figures: names, and values on reports whose figures can be added up by hand."""

from __future__ import annotations

import pytest

from engine.domain.report import Attribution, Outcome, Recovery, RequestReport
from engine.domain.scenario import DropDevice, Scenario
from engine.domain.workload import Workload
from engine.reports.metrics import METRICS, listed_figures, metrics_of_a, shown_in, values_of
from tests.engine.reports.test_compare import report

SERVED = {"prompt_tokens": 4, "new_tokens": 5}


def test_no_two_figures_of_one_subject_have_the_same_name() -> None:
    assert len({(metric.of, metric.name) for metric in METRICS}) == len(METRICS)


def test_what_is_usual_in_lists_can_be_chosen_there() -> None:
    assert {one.name for one in shown_in("usual")} <= {one.name for one in shown_in("list")}
    assert all(metric.of == "run" for metric in METRICS if metric.shown)


def test_figures_are_sums_percentiles_and_shares() -> None:
    tokens = RequestReport(index=0, arrival_s=0, ttft_s=1, token_s=(1, 2, 4, 8), output_tokens=())
    parts = {"requests": (tokens,), "attribution": Attribution(compute_s=1.5, link_s=0.5)}
    made = report(2.0).model_copy(update={**parts, "energy_j": 3.0, "edp_j_s": 6.0})
    found = values_of(made, metrics_of_a("run"))
    # between tokens 1, 2 and 4 s: the median is 2 s, and 95 % lie below 2 + 0.9 · 2
    assert (found["token_p50_s"], found["token_p95_s"]) == pytest.approx((2.0, 3.8))
    assert found["link_frac"] == 0.25
    assert (found["flops"], found["busy_s"], found["peak_memory_bytes"]) == (30, 3, 70)
    assert (found["link_bytes"], found["payload_bytes"]) == (100, 90)
    assert (found["energy_j"], found["edp_j_s"]) == (3.0, 6.0)
    assert not {"dilation", "queue_p95_s", "recovery_s", "tokens_lost"} & set(found)
    assert listed_figures(made).keys() == found.keys() & {one.name for one in shown_in("list")}


def test_tokens_are_lost_of_those_that_each_request_asked_for() -> None:
    rows = [{"at_s": 0.0, "prompt_tokens": 4, "new_tokens": count} for count in (2, 5)]
    drop = Scenario(changes=(DropDevice(at_s=1.0, device="b"),))

    def lost(pattern: str, *came: int) -> float | None:
        asked = {"pattern": pattern, "trace": rows} | (SERVED if pattern == "serve" else {})
        if pattern == "sporadic":
            asked = {"pattern": pattern, "requests": 2, **SERVED}
        made = report(2.0)
        spec = made.spec.model_copy(update={"workload": Workload.parse(asked, "test"), "scenario": drop})
        requests = tuple(
            RequestReport(index=i, arrival_s=0, ttft_s=1, token_s=tuple(range(1, 1 + n)), output_tokens=())
            for i, n in enumerate(came)
        )
        made = made.model_copy(update={"spec": spec, "requests": requests})
        return values_of(made, metrics_of_a("run")).get("tokens_lost")

    assert (lost("trace", 2, 5), lost("trace", 2, 1)) == (0, 4)
    assert lost("sporadic", 4, 5) == 1
    assert lost("serve", 2, 1) is None, "nobody knows what people will have asked for"


def test_a_run_has_a_rate_of_tokens_if_any_request_has_one() -> None:
    made = report(2.0)
    none = RequestReport(index=1, arrival_s=0, ttft_s=0, token_s=(), output_tokens=())
    assert values_of(made, metrics_of_a("run"))["tokens_per_s"] == 1
    both = made.model_copy(update={"requests": (*made.requests, none)})
    assert values_of(both, metrics_of_a("run"))["tokens_per_s"] == 1
    neither = made.model_copy(update={"requests": (none,)})
    assert "tokens_per_s" not in values_of(neither, metrics_of_a("run"))


def test_of_a_request_each_later_token_has_the_mean_time() -> None:
    request = RequestReport(index=0, arrival_s=0, ttft_s=1, token_s=(1, 2, 4, 8), output_tokens=())
    assert values_of(request, metrics_of_a("request")) == pytest.approx({"ttft_s": 1, "per_token_s": 7 / 3})


def test_a_recovery_without_a_later_token_has_parts_and_no_sum() -> None:
    lost = Recovery(
        device="b",
        how="killed",
        at_s=1.0,
        detect_s=0.1,
        replanned=True,
        replan_s=0.2,
        reload_s=0.3,
        rebuild_s=None,
    )
    back = lost.model_copy(update={"rebuild_s": 0.4})
    found = values_of(report().model_copy(update={"recoveries": (back, back)}), metrics_of_a("run"))
    assert (found["recovery_s"], found["recovery_reload_s"]) == pytest.approx((2.0, 0.6))
    found = values_of(report().model_copy(update={"recoveries": (back, lost)}), metrics_of_a("run"))
    assert found["recovery_detect_s"] == pytest.approx(0.2)
    assert "recovery_s" not in found and "recovery_rebuild_s" not in found


def test_in_lists_a_run_that_did_not_finish_has_only_its_dilation() -> None:
    failed = report().model_copy(
        update={"outcome": Outcome(kind="failed"), "world": "emulated", "dilation": 3.0}
    )
    assert listed_figures(failed) == {"dilation": 3.0}


def test_changes_are_missed_that_come_after_the_last_token_and_none_where_nothing_was_to_change() -> None:
    def missed(*at_s: float) -> float | None:
        made = report(2.0)
        changes = tuple(DropDevice(at_s=one, device="b") for one in at_s)
        spec = made.spec.model_copy(update={"scenario": Scenario(changes=changes)})
        found = values_of(made.model_copy(update={"spec": spec}), metrics_of_a("run"))
        return found.get("changes_missed")

    assert (missed(1.0, 3.0, 4.0), missed(1.0), missed()) == (2, 0, None)


def test_energy_is_a_figure_of_devices_that_need_some() -> None:
    made = report(2.0).devices[0]
    some, none = (made.model_copy(update={"energy_j": one}) for one in (3.0, 0.0))
    assert values_of(some, metrics_of_a("device"))["energy_j"] == 3.0
    assert "energy_j" not in values_of(none, metrics_of_a("device"))


def test_what_says_how_far_a_run_can_be_trusted_is_a_figure_of_invalid_runs_too() -> None:
    told = ("correct", "valid", "latency_error", "model_error_mean", "dilation", "advised_dilation")
    by_name = {metric.name: metric for metric in metrics_of_a("run")}
    assert all(by_name[name].trust for name in told)
    assert not any(by_name[name].trust for name in ("latency_s", "ttft_s", "tokens_per_s", "energy_j"))
