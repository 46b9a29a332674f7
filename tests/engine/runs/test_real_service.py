"""An open workload on real devices over loopback: asked, cancelled, a device lost, ended, and proven."""

import json

import pytest

from engine.domain.report import RunReport

TRIES = 8


@pytest.fixture(scope="module")
def service(tmp_path_factory, in_a_copy):
    """A busy host may let a whole batch pass before it cancels a request: then it is played again."""
    result = tmp_path_factory.mktemp("service") / "result.json"
    for _ in range(TRIES):
        in_a_copy("asked_service", result)
        found = json.loads(result.read_text())
        report = RunReport.model_validate(found["report"])
        if not report.requests[1].token_s and report.recoveries:
            break
    return found["said"], report


@pytest.fixture(scope="module")
def said(service):
    return service[0]


@pytest.fixture(scope="module")
def report(service):
    return service[1]


def test_every_token_is_proven_also_those_of_a_request_that_went_on_after_a_device_was_lost(report):
    assert report.outcome.kind == "finished"
    assert report.correctness.ok, report.correctness
    assert report.recoveries
    lengths = [len(request.token_s) for request in report.requests]
    assert lengths[:3] == [30, 0, 4]
    assert 3 <= lengths[3] < 30
    assert [len(row.tokens) for row in report.spec.workload.trace] == [3, 4, 2]
    assert [row.new_tokens for row in report.spec.workload.trace] == [30, 4, lengths[3]]


def test_a_cancelled_request_leaves_the_queue_and_an_unanswered_one_is_cut_at_the_end(report):
    answered = [request.answered_s is not None for request in report.requests]
    assert answered == [True, False, True, False]
    cancelled = [request.cancelled_s is not None for request in report.requests]
    assert cancelled == [False, True, False, True]
    assert report.requests[1].queue_s is None


def test_every_process_says_where_it_listens_what_it_holds_to_whom_it_talks_and_what_it_has_used(said):
    assert said.keys() == {"d0", "d1", "d2"}
    for lines in said.values():
        assert "listens on 127." in lines[0]
        assert "slices of the weights" in lines[1]
        assert lines[2].startswith("It has opened connections to d")
    assert said["d0"][-1].startswith("Program finished: ")
    assert not any("Program" in line for line in said["d2"])  # it was killed


def test_the_prediction_plays_the_same_requests(report):
    """They are asked when they were asked in the run, which a busy machine makes longer, not shorter."""
    assert report.predictions.with_all_changes_known is not None
    last_asked_s = report.spec.workload.trace[-1].at_s
    assert last_asked_s < report.predictions.with_all_changes_known.latency_s < 1.5 * report.latency_s
