"""What a job needs of the worker that takes it, and why a worker cannot have it."""

from __future__ import annotations

from collections.abc import Sequence

from engine.domain.values import Value
from webapp.jobs.announcement import Announcement


class Need(Value):
    """What a job needs of its worker: `memory_bytes` of the host; `cores`, so many that an emulation keeps
    the dilation that it asks for; `model`, the digest of the model directory that the worker must be able to
    get, "" for none; `method`, the code of the method from outside that it must have, likewise. `boards` are
    those that the job has for itself while it goes on.
    """

    memory_bytes: int = 0
    cores: int = 1
    model: str = ""
    model_name: str = ""
    method: str = ""
    boards: tuple[str, ...] = ()


def reason_against(need: Need, worker: Announcement, fleet: Sequence[Announcement]) -> str:
    """Why `worker` leaves a job with this need to others, or "".

    A worker with too few cores takes a run that no other of the fleet has more cores for: the run's verdict
    says then whether the dilation was kept.
    """
    if worker.refused:
        return worker.refused
    if need.memory_bytes > worker.memory_bytes:
        return f"the run needs {_gb(need.memory_bytes)} of memory and it has {_gb(worker.memory_bytes)}"
    if need.model and need.model not in worker.models:
        return f"it cannot get the model {need.model_name} with the digest {need.model[:12]}"
    if need.method and need.method not in worker.methods:
        return f"it lacks the method of {need.method}: install it there, and name it in LOOM_METHODS"
    most = max((one.cores for one in fleet if not one.refused), default=0)
    if worker.cores < min(need.cores, most):
        return (
            f"at its dilation the run needs {need.cores} cores and it has {worker.cores}; "
            f"another worker has {most}"
        )
    return ""


def _gb(number: int) -> str:
    return f"{number / 1e9:.1f} GB"
