"""What a message costs beside its link: between two devices in namespaces, as in runs over shaped links."""

from __future__ import annotations

from typing import Any

from emulator.calibration.runtime import (
    PROMPT_ROWS,
    Sent,
    messages,
    resumes,
    run_native,
    talking,
    with_messages,
)
from emulator.network.probe import probe
from emulator.session.calls import call
from engine.domain.calibration import Calibration
from engine.domain.cluster import DeviceSpec
from engine.domain.host_times import HostProfile
from engine.runs.host_kernels import use_host_kernels

RATE_BIT_PER_S = 1e9
"""Fast enough that the link does not hide what the runtime costs."""


def with_link_messages(found: Calibration) -> Calibration:
    """`found` with the costs of messages over a link, where this machine can emulate one.

    Over loopback the copies of a message's bytes take time; over a link they happen while it carries them.
    """
    if not all(item.ok for item in probe().items if item.needed):
        return found
    sent, resumed = call(over_a_link)
    runtime = with_messages(found.profile.runtime, [Sent(*item) for item in sent], resumed)
    profile: HostProfile = found.profile.model_copy(update={"runtime": runtime})
    device: DeviceSpec = found.device.model_copy(
        update={
            "message_overhead_s": float(f"{runtime.send_s:.3g}"),
            "receive_overhead_s": float(f"{runtime.receive_s:.3g}"),
            "byte_overhead_s": float(f"{runtime.byte_s:.3g}"),
        }
    )
    return Calibration(profile=profile, device=device)


def over_a_link() -> list[Any]:
    """Called in namespaces of its own: messages without the time of their link, and `resumes` by run."""
    from emulator.network.mininet_network import MininetNetwork

    use_host_kernels()
    specs = talking(PROMPT_ROWS, RATE_BIT_PER_S)
    with MininetNetwork(specs[0].cluster, 1.0) as network:
        runs = [run_native(spec, network) for spec in specs]
    return [
        [item for run in runs for item in messages(run, RATE_BIT_PER_S)],
        [resumes(run) for run in runs],
    ]
