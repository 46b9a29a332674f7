"""What the processes of a real run take of their machine, and whether it has that. Pure."""

from __future__ import annotations

import math
from typing import NamedTuple

from engine.domain.errors import HostError
from engine.domain.plan import Plan
from engine.domain.spec import RunSpec
from engine.domain.units import human
from engine.ops.sizes import num_parameters, weight_bytes

SESSION_BYTES = 700_000_000
"""The session, its supervisor and the libraries of the reference."""
DEVICE_BYTES = 60_000_000
"""What a device's process takes besides weights and caches, cautiously; it is forked, so torch is shared."""
LEAST_SESSION_BYTES, LEAST_DEVICE_BYTES = 400_000_000, 20_000_000
"""What they take at least: torch and transformers 400 MB, each of 256 devices 21 MB as measured."""
DEVICE_START_S = 0.5
"""Core seconds that the start of a device's process takes, besides its weights: 128 of them took 37 s on two
cores beside a service that was asked for pages (docs/results/server.md).
"""
PROCESSES = 12
"""Processes and threads of a device: its own, up to ten threads, and the shell that holds its namespace."""


class Most(NamedTuple):
    """What all processes of one run may take together. Their start may keep `cores` busy for `start_s`."""

    memory_bytes: float = math.inf
    processes: float = math.inf
    start_s: float = math.inf
    cores: int = 1


def weights_bytes(spec: RunSpec, plan: Plan) -> int:
    """The weights of all devices, and once more for the reference."""
    held = sum(weight_bytes(spec.model, holding.slice) for holding in plan.holdings)
    return held + num_parameters(spec.model) * spec.model.element_bytes


def check_holds(spec: RunSpec, plan: Plan, most: Most) -> None:
    """Check that the machine can hold the run before anything of it is started. Raises `HostError` with the
    arithmetic.
    """
    devices, weights = len(spec.cluster.devices), weights_bytes(spec, plan)
    needed, threads = LEAST_SESSION_BYTES + LEAST_DEVICE_BYTES * devices + weights, PROCESSES * devices
    if needed > most.memory_bytes:
        raise HostError(
            f"This run needs at least {human(needed, 'B')} of memory: {devices} devices of "
            f"{human(LEAST_DEVICE_BYTES, 'B')} each, {human(weights, 'B')} of weights with the reference's, "
            f"and {human(LEAST_SESSION_BYTES, 'B')} for the session. One emulation may have "
            f"{human(most.memory_bytes, 'B')} here: take fewer devices or a smaller model, or set "
            "LOOM_RUN_MEMORY_GB."
        )
    if threads > most.processes:
        raise HostError(
            f"This run may need {threads:,} processes and threads, {PROCESSES} for each of {devices}"
            f" devices; one emulation may have {most.processes:,.0f} here: take at most "
            f"{int(most.processes // PROCESSES)} devices."
        )
    start_s = devices * DEVICE_START_S / most.cores
    if start_s > most.start_s:
        raise HostError(
            f"The start of this run would keep all {most.cores} cores busy for {start_s:.0f} s: {devices} "
            f"devices × {DEVICE_START_S:g} s of a core each / {most.cores}. One emulation may do so for "
            f"{most.start_s:g} s here, since nothing else is answered meanwhile: take at most "
            f"{int(most.start_s * most.cores / DEVICE_START_S)} devices, or set LOOM_RUN_START_S."
        )


NO_LIMIT = Most()
