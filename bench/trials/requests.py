"""The run that everybody asks for, in trials and under load."""

from __future__ import annotations

import topologies
from webapp.runs.requests import RunRequest


def request_of_all() -> RunRequest:
    """A small run on lab-3: two layers, four heads, random weights."""
    return RunRequest.parse(
        {
            "cluster": topologies.load("lab-3").model_dump(mode="json"),
            "model": "tiny-gpt2",
            "strategy": "voltage",
            "workload": {"prompt_tokens": 8, "new_tokens": 4},
        },
        "trial",
    )
