"""How long the devices of a real run may take until they are ready: longer for more devices and weights."""

from __future__ import annotations

from engine.domain.plan import Plan
from engine.domain.spec import RunSpec
from engine.ops.sizes import weight_bytes

READY_S = 120.0
"""Wall seconds, unless the caller says otherwise, to which each device and all weights add their share."""

DEVICE_S = 2.0
"""A process imports torch and connects in 1.5 s of one core; all processes share the cores."""

LOADED_BYTES_PER_S = 20e6
"""A tenth of what one core draws or reads."""

SENT_BYTES_PER_S = 2e6
"""A sixth of a link of 100 Mbit/s, over which weights reach boards in pieces, one after the other."""


def ready_limit_s(spec: RunSpec, plan: Plan, base_s: float) -> float:
    """Wall seconds after which a run ends whose devices have not all reached the next state."""
    held_bytes = sum(weight_bytes(spec.model, holding.slice) for holding in plan.holdings)
    rate = SENT_BYTES_PER_S if spec.on_nodes else LOADED_BYTES_PER_S
    return base_s + DEVICE_S * len(spec.cluster.devices) + held_bytes / rate
