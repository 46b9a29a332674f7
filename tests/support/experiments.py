"""Experiments for the tests of the server: small ones, quick to predict."""

from __future__ import annotations

from typing import Any

BASE = {"cluster": "lab-3", "model": "tiny-gpt2", "workload": {"prompt_tokens": 8, "new_tokens": 2}}
STRATEGIES = {"name": "strategy", "path": "strategy", "values": ["single", "voltage"]}
RATES = {"name": "rate", "unit": "bit/s", "path": "cluster.links[*].bit_per_s", "values": [1e7, 1e8]}


def fields(**changes: Any) -> dict[str, Any]:
    """Two strategies at two rates: four points."""
    return {"name": "two-by-two", "base": BASE, "factors": [STRATEGIES, RATES]} | changes
