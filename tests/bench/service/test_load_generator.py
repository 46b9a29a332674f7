"""What a load generator saw beside the run's report: the same requests, and how far their figures may
differ.
"""

from typing import Any

import pytest

from bench.service.load_generator import (
    Seen,
    Tolerance,
    beside_the_report,
    by_client,
    by_run,
    disagreements,
)

ON_THE_WAY_S = Tolerance().on_the_way_s
DILATION = 2.0


def sent(sent_s: float, first_s: float, per_token_s: float) -> dict[str, Any]:
    """An answer of three tokens."""
    whole_s = first_s + 2 * per_token_s
    return {"sent_s": sent_s, "first_token_s": first_s, "per_token_s": per_token_s, "request_s": whole_s}


def reported(arrival_s: float, *token_s: float) -> dict[str, Any]:
    return {"arrival_s": arrival_s, "token_s": token_s}


def test_both_sides_are_in_wall_seconds() -> None:
    client = by_client({"requests": [sent(100.0, 0.3, 0.1), sent(101.0, 0.5, 0.2)]})
    assert client == pytest.approx(Seen(2, 2 / 1.9, 0.4, 0.49, 0.15, 0.7))
    run = by_run([reported(7.0, 0.1, 0.2, 0.3), reported(7.5, 0.2, 0.25, 0.3)], DILATION)
    assert run == pytest.approx(Seen(2, 2 / 1.6, 0.3, 0.39, 0.15, 0.6))


def test_every_strategy_has_the_requests_that_came_after_those_of_the_strategies_before() -> None:
    found = [
        {"strategy": "synchronous", "failed": 1, "requests": [sent(100.0, 0.3, 0.1)]},
        {"strategy": "poisson", "failed": 0, "requests": [sent(200.0, 0.3, 0.1)]},
    ]
    requests = [reported(1.0, 0.1, 0.2, 0.3), reported(2.0, 0.1, 0.2, 0.3), reported(50.0, 0.4, 0.5, 0.6)]
    pairs = list(beside_the_report(found, requests, DILATION))
    assert [(name, client.requests, run.requests) for name, client, run in pairs] == [
        ("synchronous", 1, 2),
        ("poisson", 1, 1),
    ]
    assert pairs[1][2].first_token_s == pytest.approx(0.8)


RUN = Seen(10, 2.0, 0.4, 0.8, 0.05, 1.15)


@pytest.mark.parametrize(
    ("changed", "about"),
    [
        ({}, []),
        ({"first_token_s": 0.4 + ON_THE_WAY_S - 0.01, "request_s": 1.4, "rate_per_s": 1.7}, []),
        ({"requests": 9}, ["9 requests, and 10 in the report"]),
        ({"first_token_s": 0.38}, ["first token: 0.380 s, and 0.400 s"]),
        ({"first_token_s": 0.4 + ON_THE_WAY_S + 0.01}, ["first token: 0.710 s, and 0.400 s"]),
        ({"first_token_p95_s": 1.2}, ["first token, 95 %: 1.200 s, and 0.800 s"]),
        ({"per_token_s": 0.03}, ["per token: 0.0300 s, and 0.0500 s"]),
        ({"request_s": 0.9}, ["request: 0.900 s, and 1.150 s"]),
        ({"rate_per_s": 3.0}, ["3.00 requests/s, and 2.00"]),
    ],
)
def test_figures_further_apart_than_the_way_between_them_are_named(
    changed: dict[str, Any], about: list[str]
) -> None:
    client = RUN._replace(**({"first_token_s": 0.45, "first_token_p95_s": 0.9, "request_s": 1.2} | changed))
    found = disagreements("poisson", client, RUN, 16)
    assert len(found) == len(about)
    assert all(words in sentence for words, sentence in zip(about, found, strict=True))


def test_more_is_allowed_where_the_machine_is_busy() -> None:
    late = {"first_token_s": 2.4, "first_token_p95_s": 2.8, "request_s": 3.1}
    client = RUN._replace(**late)._replace(rate_per_s=1.2, per_token_s=0.07)
    assert len(disagreements("poisson", client, RUN, 16)) == 5
    assert disagreements("poisson", client, RUN, 16, Tolerance(2.5, 0.5, 0.5)) == []
