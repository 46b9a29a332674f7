"""What a message costs beside its link: between two devices in namespaces, as in runs over shaped links."""

from __future__ import annotations

from typing import Any

from emulator.calibration.crowd import crowd_spec, measured_token_s, with_message_work
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
from engine.runs.host_kernels import use_host_kernels

RATE_BIT_PER_S = 1e9
"""Fast enough that the link does not hide what the runtime costs."""

LOOPBACK_BIT_PER_S = 1e12


def with_link_messages(found: Calibration) -> Calibration:
    """`found` with the costs of messages over a link, where this machine can emulate one.

    Over loopback the copies of a message's bytes take time; over a link they happen while it carries them.
    """
    if not all(item.ok for item in probe().items if item.needed):
        profile = with_message_work(found.profile, LOOPBACK_BIT_PER_S, measured_token_s(LOOPBACK_BIT_PER_S))
        return found.model_copy(update={"profile": profile})
    sent, resumed, crowd_s = call(over_a_link)
    runtime = with_messages(found.profile.runtime, [Sent(*item) for item in sent], resumed)
    profile = found.profile.model_copy(update={"runtime": runtime})
    profile = with_message_work(profile, RATE_BIT_PER_S, crowd_s)
    device: DeviceSpec = found.device.model_copy(
        update={
            "message_overhead_s": float(f"{runtime.send_s:.3g}"),
            "receive_overhead_s": float(f"{runtime.receive_s:.3g}"),
            "byte_overhead_s": float(f"{runtime.byte_s:.3g}"),
        }
    )
    return Calibration(profile=profile, device=device)


def over_a_link() -> list[Any]:
    """Called in namespaces of its own: messages without the time of their link, `resumes` by run, and the
    seconds per token of the crowd.
    """
    from emulator.network.mininet_network import MininetNetwork

    use_host_kernels()
    specs = talking(PROMPT_ROWS, RATE_BIT_PER_S)
    with MininetNetwork(specs[0].cluster, 1.0) as network:
        runs = [run_native(spec, network) for spec in specs]
    with MininetNetwork(crowd_spec(RATE_BIT_PER_S).cluster, 1.0) as network:
        crowd_s = measured_token_s(RATE_BIT_PER_S, network)
    return [
        [item for run in runs for item in messages(run, RATE_BIT_PER_S)],
        [resumes(run) for run in runs],
        crowd_s,
    ]
