"""What a run needs of the worker that emulates it, and why a worker cannot have it."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from engine.domain.host_times import HostProfile
from engine.domain.plan import Plan
from engine.domain.scenario import Scenario
from engine.domain.spec import RunSpec
from engine.domain.values import Value
from engine.ops.sizes import model_bytes, weight_bytes
from engine.runs.predict import Prepared, simulate
from engine.worlds.real.dilation import CAUTIOUS, demands
from webapp.fleet.announcement import Announcement

DEVICE_BYTES = 60_000_000
"""What a device's process takes besides weights and caches; it is forked, so torch is shared."""
LOOK_S = 3.0
"""Wall seconds for the prediction that says how many cores a run needs: somebody waits for it."""
SESSION_BYTES = 700_000_000
"""The session, its supervisor and the libraries of the reference."""


class Need(Value):
    """`memory_bytes` of the host; `cores`, so many that the run keeps the dilation that it asks for; `model`,
    the digest of the model directory that the worker must be able to get, "" for none.
    """

    memory_bytes: int = 0
    cores: int = 1
    model: str = ""
    model_name: str = ""


def need_of(spec: RunSpec, plan: Plan, cores: int = 1) -> Need:
    """Weights of all devices, once more for the reference, and a cautious share for every process; `cores` as
    `cores_for` says.
    """
    held = sum(weight_bytes(spec.model, holding.slice) for holding in plan.holdings)
    processes = SESSION_BYTES + DEVICE_BYTES * len(spec.cluster.devices)
    return Need(
        memory_bytes=held + model_bytes(spec.model) + processes,
        cores=cores,
        model=spec.weights.digest,
        model_name=spec.model.name,
    )


def cores_for(prepared: Prepared, profile: HostProfile | None = None) -> int:
    """Cores with which a run keeps the dilation that it asks for, by its prediction without disturbances.

    One where the dilation is chosen for the worker's cores; at native speed, one for each worker of the
    cluster. `profile` has the times of a core, unless the run has them. Of a long run, only the beginning is
    predicted, as much as takes `LOOK_S`.
    """
    spec = prepared.spec
    if spec.dilation == "auto":
        return 1
    if spec.dilation == "native":
        return len(spec.cluster.workers)
    calm = prepared._replace(spec=spec.model_copy(update={"scenario": Scenario()}))
    until_s = time.monotonic() + LOOK_S
    trace, _ = simulate(calm, lambda: time.monotonic() > until_s)
    with_one_core = demands(spec.profile or profile or CAUTIOUS, trace, cores=1)["cores"]
    return max(1, math.ceil(with_one_core / float(spec.dilation)))


def reason_against(need: Need, worker: Announcement, fleet: Sequence[Announcement]) -> str:
    """Why `worker` leaves a run with this need to others, or "".

    A worker with too few cores takes a run that no other of the fleet has more cores for: the run's verdict
    says then whether the dilation was kept.
    """
    if worker.refused:
        return worker.refused
    if need.memory_bytes > worker.memory_bytes:
        return f"the run needs {_gb(need.memory_bytes)} of memory and it has {_gb(worker.memory_bytes)}"
    if need.model and need.model not in worker.models:
        return f"it cannot get the model {need.model_name} with the digest {need.model[:12]}"
    most = max((one.cores for one in fleet if not one.refused), default=0)
    if worker.cores < min(need.cores, most):
        return (
            f"at its dilation the run needs {need.cores} cores and it has {worker.cores}; "
            f"another worker has {most}"
        )
    return ""


def _gb(number: int) -> str:
    return f"{number / 1e9:.1f} GB"
