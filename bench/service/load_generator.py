"""Runs GuideLLM as a process, and its figures beside those of the run's report."""

from __future__ import annotations

import json
import statistics
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from webapp.ops.places import GUIDELLM_VENV, OpsError

SCRIPT = Path(__file__).with_name("guidellm_profiles.py")
PATIENCE_S = 300.0


class Tolerance(NamedTuple):
    """How much later a client may see a first token than the run emitted it, in wall seconds: HTTP, Redis,
    and two
    batches of events of 40 ms each way. And how far times per token and rates may be apart, as fractions.
    """

    on_the_way_s: float = 0.3
    per_token: float = 0.15
    rate: float = 0.25


IDLE = Tolerance()
BATCH_S = 0.08
"""Seconds of a batch: tokens travel in batches of events, so the first and the last may each be late by so
much.
"""

Figures = dict[str, Any]
"""Figures of one strategy of the load generator, as `guidellm_profiles.figures` makes them."""


class Seen(NamedTuple):
    """Wall seconds of one strategy's requests as one side sees them, the medians where nothing else is
    said.
    """

    requests: int
    rate_per_s: float
    first_token_s: float
    first_token_p95_s: float
    per_token_s: float
    request_s: float


def ask(
    target: str,
    key: str,
    model: str,
    prompts: Sequence[str],
    new_tokens: int,
    requests: int,
    profiles: Sequence[Mapping[str, Any]],
) -> list[Figures]:
    """What GuideLLM measures of a server, strategy by strategy: a sweep is several. Raises `OpsError`."""
    asked = {
        "target": target,
        "key": key,
        "model": model,
        "prompts": list(prompts),
        "new_tokens": new_tokens,
        "requests": requests,
        "profiles": list(profiles),
    }
    line = (str(GUIDELLM_VENV / "bin" / "python"), "-P", str(SCRIPT))  # -P: `requests.py` here is no library
    done = subprocess.run(line, input=json.dumps(asked), capture_output=True, text=True, timeout=PATIENCE_S)
    if done.returncode:
        raise OpsError(f"GuideLLM ended with status {done.returncode}: {done.stderr[-2000:]}")
    found: list[list[Figures]] = json.loads(done.stdout)
    return [one for profile in found for one in profile]


def by_client(figures: Figures) -> Seen:
    """The requests of one strategy as GuideLLM saw them."""
    requests = figures["requests"]
    begun, ended = (
        [one["sent_s"] for one in requests],
        [one["sent_s"] + one["request_s"] for one in requests],
    )
    return Seen(
        len(requests),
        len(requests) / (max(ended) - min(begun)),
        statistics.median(one["first_token_s"] for one in requests),
        p95([one["first_token_s"] for one in requests]),
        statistics.median(one["per_token_s"] for one in requests),
        statistics.median(one["request_s"] for one in requests),
    )


def by_run(requests: Sequence[Mapping[str, Any]], dilation: float) -> Seen:
    """The same requests as the run's report has them, in wall seconds."""
    arrivals = [one["arrival_s"] for one in requests]
    ends = [one["arrival_s"] + one["token_s"][-1] for one in requests]
    spans = [(one["token_s"][-1] - one["token_s"][0]) / (len(one["token_s"]) - 1) for one in requests]
    firsts = [one["token_s"][0] for one in requests]
    return Seen(
        len(requests),
        len(requests) / ((max(ends) - min(arrivals)) * dilation),
        statistics.median(firsts) * dilation,
        p95(firsts) * dilation,
        statistics.median(spans) * dilation,
        statistics.median(one["token_s"][-1] for one in requests) * dilation,
    )


def p95(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=20, method="inclusive")[18] if len(values) > 1 else values[0]


def beside_the_report(
    found: Sequence[Figures], requests: Sequence[Mapping[str, Any]], dilation: float
) -> Iterator[tuple[str, Seen, Seen]]:
    """Each strategy's name, what the client saw, and what the report has of the same requests.

    `requests` are the report's, in the order of their arrival, without those of anybody else: every
    strategy began after the last had ended.
    """
    place = 0
    for figures in found:
        count = len(figures["requests"]) + figures["failed"]
        yield figures["strategy"], by_client(figures), by_run(requests[place : place + count], dilation)
        place += count


def disagreements(
    name: str, client: Seen, run: Seen, new_tokens: int, allowed: Tolerance = IDLE
) -> list[str]:
    """Sentences about figures that are further apart than the way between them explains."""
    found = []
    if client.requests != run.requests:
        found.append(f"{name}: {client.requests} requests, and {run.requests} in the report")
    for what, seen_s, reported_s in (
        ("first token", client.first_token_s, run.first_token_s),
        ("first token, 95 %", client.first_token_p95_s, run.first_token_p95_s),
        ("request", client.request_s, run.request_s),
    ):
        if not -0.005 <= seen_s - reported_s <= allowed.on_the_way_s:
            found.append(f"{name}, {what}: {seen_s:.3f} s, and {reported_s:.3f} s in the report")
    slack_s = BATCH_S / (new_tokens - 1)
    if abs(client.per_token_s - run.per_token_s) > allowed.per_token * run.per_token_s + slack_s:
        found.append(
            f"{name}, per token: {client.per_token_s:.4f} s, and {run.per_token_s:.4f} s in the report"
        )
    if abs(client.rate_per_s / run.rate_per_s - 1) > allowed.rate:
        found.append(f"{name}: {client.rate_per_s:.2f} requests/s, and {run.rate_per_s:.2f} in the report")
    return found
