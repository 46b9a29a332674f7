"""Percentiles, goodput and the queue over time, on requests that can be worked out by hand."""

import numpy as np
import pytest

from engine.domain.report import RequestReport
from engine.domain.workload import Workload
from engine.reports.fold import idle_times
from engine.reports.load import load_report, percentiles, waiting_over_time


def request(index, arrival_s, queue_s, tokens_s):
    return RequestReport(
        index=index,
        arrival_s=arrival_s,
        ttft_s=tokens_s[0],
        token_s=tuple(tokens_s),
        output_tokens=(),
        queue_s=queue_s,
        answered_s=tokens_s[-1],
    )


# Three requests: the second waits for the first (0-3), the third comes to an idle cluster at 10.
REQUESTS = (
    request(0, 0.0, 0.0, [1.0, 2.0, 3.0]),
    request(1, 1.0, 2.0, [3.0, 4.0, 5.0]),
    request(2, 10.0, 0.0, [1.0, 1.5, 2.0]),
)


def test_figures_of_three_requests():
    load = load_report(Workload(prompt_tokens=1), REQUESTS, 12.0)
    assert (load.arrived, load.answered, load.answered_per_s) == (3, 3, 0.25)
    assert (load.longest_queue, load.mean_queue) == (1, pytest.approx(2 / 12))
    assert load.first_token_s.mean == pytest.approx(5 / 3)
    assert (load.queue_s.p50, load.per_token_s.p50, load.answer_s.p50) == (0.0, 1.0, 3.0)


@pytest.mark.parametrize(
    ("first_s", "each_s", "within"), [(None, None, 3), (1.0, None, 2), (3.0, 0.9, 1), (0.5, None, 0)]
)
def test_goodput_counts_requests_that_keep_every_objective(first_s, each_s, within):
    workload = Workload(prompt_tokens=1, slo_first_token_s=first_s, slo_per_token_s=each_s)
    load = load_report(workload, REQUESTS, 12.0)
    assert (load.within_objectives, load.goodput_per_s) == (within, pytest.approx(within / 12))


def test_a_request_without_an_answer_waits_and_is_not_within_an_objective():
    lost = RequestReport(index=3, arrival_s=11.0, ttft_s=0.0, token_s=(), output_tokens=())
    load = load_report(Workload(prompt_tokens=1), (*REQUESTS, lost), 12.0)
    assert (load.arrived, load.answered, load.within_objectives) == (4, 3, 3)
    assert waiting_over_time((*REQUESTS, lost))[-1] == (11.0, 1)


def test_the_queue_over_time_steps_at_arrivals_and_beginnings():
    assert waiting_over_time(REQUESTS) == [(0.0, 0), (1.0, 1), (3.0, 0), (10.0, 0)]


def test_the_cluster_is_idle_between_an_answer_and_the_next_arrival():
    assert idle_times(REQUESTS) == ((6.0, 10.0),)
    assert idle_times(reversed(REQUESTS)) == ((6.0, 10.0),)
    unanswered = REQUESTS[1].model_copy(update={"answered_s": None})
    assert idle_times((REQUESTS[0], unanswered, REQUESTS[2])) == ()


def test_the_cluster_is_not_idle_while_a_longer_request_outlasts_a_later_one():
    # the first is answered at 8, the second within it at 3, so that only the time from 8 to 10 is idle
    within = (request(0, 0.0, 0.0, [4.0, 8.0]), request(1, 1.0, 0.0, [1.0, 2.0]), REQUESTS[2])
    assert idle_times(within) == ((8.0, 10.0),)


def test_a_request_waits_until_it_is_cancelled_and_no_longer():
    given_up = RequestReport(
        index=3, arrival_s=4.0, ttft_s=0.0, token_s=(), output_tokens=(), cancelled_s=3.0
    )
    every = (*REQUESTS, given_up)
    assert waiting_over_time(every) == [(0.0, 0), (1.0, 1), (3.0, 0), (4.0, 1), (7.0, 0), (10.0, 0)]
    assert load_report(Workload(prompt_tokens=1), every, 12.0).mean_queue == pytest.approx((2 + 3) / 12)


def test_a_request_that_is_cancelled_while_in_work_waited_until_its_work_began():
    given_up = RequestReport(
        index=3, arrival_s=4.0, ttft_s=0.0, token_s=(), output_tokens=(), queue_s=1.0, cancelled_s=3.0
    )
    assert waiting_over_time((given_up,)) == [(4.0, 1), (5.0, 0)]


@pytest.mark.parametrize("count", [1, 2, 7, 100])
def test_percentiles_are_those_of_numpy(count):
    values = np.random.default_rng(count).exponential(size=count)
    found = percentiles(list(values))
    expected = [values.mean(), *np.percentile(values, [50, 95, 99])]
    assert [found.mean, found.p50, found.p95, found.p99] == pytest.approx(expected)
