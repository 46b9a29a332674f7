"""What a message costs beside its link: between two devices in namespaces, as in runs over shaped links."""

from __future__ import annotations

from typing import Any

from emulator.calibration.runtime import (
    MODELS,
    PROMPT_ROWS,
    Sent,
    messages,
    run_native,
    spec_of,
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
    sent = [Sent(*item) for item in call(over_a_link)]
    runtime = with_messages(found.profile.runtime, sent)
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
    """Called in namespaces of its own: the messages of pipelines, without the time of their link."""
    from emulator.network.mininet_network import MininetNetwork

    use_host_kernels()
    specs = [spec_of(MODELS[-1], 2, "gpipe", rows, RATE_BIT_PER_S) for rows in PROMPT_ROWS]
    with MininetNetwork(specs[0].cluster, 1.0) as network:
        return [item for spec in specs for item in messages(run_native(spec, network), RATE_BIT_PER_S)]
