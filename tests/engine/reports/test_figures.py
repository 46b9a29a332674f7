"""The figures that lists of runs show, on a report whose figures can be added up by hand."""

import pytest

from engine.domain.report import Attribution, Outcome, RequestReport
from engine.reports.figures import listed_figures
from tests.engine.reports.test_compare import report


def test_figures_are_sums_percentiles_and_shares():
    tokens = RequestReport(index=0, arrival_s=0, ttft_s=1, token_s=(1, 2, 4, 8), output_tokens=())
    found = listed_figures(
        report(2.0).model_copy(
            update={"requests": (tokens,), "attribution": Attribution(compute_s=1.5, link_s=0.5)}
        )
    )
    assert (found["token_p50_s"], found["token_p95_s"]) == pytest.approx((2.0, 3.8))
    assert found["link_frac"] == 0.25
    assert found["peak_memory_bytes"] == 70
    assert "energy_j" not in found and "dilation" not in found and "queue_p95_s" not in found


def test_a_run_that_did_not_finish_has_only_its_dilation():
    failed = report().model_copy(update={"outcome": Outcome(kind="failed"), "world": "real", "dilation": 3.0})
    assert listed_figures(failed) == {"dilation": 3.0}
