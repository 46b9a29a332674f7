"""Experiments for the tests of the server: small ones, quick to predict, created or refused."""

from __future__ import annotations

from typing import Any

from tests.support.web import Browser
from webapp.experiments import points, tasks
from webapp.jobs import workers

BASE = {"cluster": "lab-3", "model": "tiny-gpt2", "workload": {"prompt_tokens": 8, "new_tokens": 2}}
STRATEGIES = {"name": "strategy", "path": "strategy", "values": ["single", "voltage"]}
RATES = {"name": "rate", "unit": "bit/s", "path": "cluster.links[*].bit_per_s", "values": [1e7, 1e8]}
FIGURE = {"name": "latency", "kind": "lines", "x": "rate", "metric": "latency_s", "series": "strategy"}
TABLE = {"name": "table", "rows": ["strategy"], "columns": ["rate"], "metric": "latency_s"}
POINTS_WORKER = workers.this_worker("points@here")


def fields(**changes: Any) -> dict[str, Any]:
    """Two strategies at two rates: four points."""
    return {"name": "two-by-two", "base": BASE, "factors": [STRATEGIES, RATES]} | changes


def created(browser: Browser, **changes: Any) -> dict[str, Any]:
    answer = browser.post("/experiments", {"experiment": fields(**changes)})
    assert answer.status_code == 201, answer.content
    return answer.json()


def refused(answer: Any, status: int) -> str:
    """The sentence of a refusal."""
    assert answer.status_code == status, answer.content
    sentence: str = answer.json()["detail"]
    assert sentence.endswith(".") and "\n" not in sentence
    return sentence


def work() -> None:
    """What a planning worker does, without Celery."""
    while taken := points.take(POINTS_WORKER, 10):
        for point in taken:
            tasks.predict_one(point)
