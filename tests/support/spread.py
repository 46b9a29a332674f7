"""Parameters under which methods divide also what one device would compute sooner, without loss."""

from typing import Any

from engine.program.strategy import Strategy

ON_ONE_DEVICE = frozenset({"single", "edge_only", "cloud_only"})
"""Methods that never divide a model."""
SMALL_SHARE = {"beta": 3e-4}
"""Of 400 MB: less than any tiny model needs."""
OWN: dict[str, dict[str, Any]] = {
    "adaptlink": SMALL_SHARE,
    "speculative": {"verify_device": "d1"},
    "edgeformer": {"t_max_mode": "none", "scheduling": "static", "block_alloc": "even"},
}


def spread_params(chosen: Strategy) -> dict[str, Any]:
    """Planners that look for the shortest request leave devices out; the papers' rules do not."""
    by_rule = {"planner": "paper"} if "planner" in chosen.Params.model_fields else {}
    return chosen.lossless_params() | by_rule | OWN.get(chosen.name, {})
