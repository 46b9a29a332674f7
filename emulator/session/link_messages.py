"""What a message costs beside its link: between two devices in namespaces, as in runs over shaped links."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from emulator.calibration.crowd import (
    crowd_spec,
    measured_hop_s,
    measured_token_s,
    pipeline_specs,
    with_message_work,
    with_wakeup,
)
from emulator.calibration.link_work import link_byte_s
from emulator.calibration.runtime import (
    Sent,
    messages,
    over_loopback,
    resumes,
    run_native,
    shares_a_core,
    talking,
    with_messages,
)
from emulator.calibration.shapes import EXTENTS, Extent
from emulator.network.probe import probe
from emulator.session.calls import call
from engine.domain.calibration import Calibration
from engine.domain.cluster import DeviceSpec
from engine.runs.host_kernels import use_host_kernels

RATE_BIT_PER_S = 1e9
"""The rate of the link, fast enough not to hide what the runtime costs."""

LOOPBACK_BIT_PER_S = 1e12


def with_link_messages(
    found: Calibration, extent: Extent, call_isolated: Callable[..., Any] = call
) -> Calibration:
    """`found` with the costs of messages over a link, where this machine can emulate one. `call_isolated`
    calls a function in namespaces of its own.

    Over loopback the copies of a message's bytes take time; over a link they happen while it carries them.
    """
    if not all(item.ok for item in probe().items if item.needed):
        runtime = over_loopback(found.profile.runtime, extent.prompt_rows)
        profile = found.profile.model_copy(update={"runtime": runtime})
        crowd_s = measured_token_s(crowd_spec(LOOPBACK_BIT_PER_S))
        profile = with_message_work(profile, LOOPBACK_BIT_PER_S, crowd_s)
    else:
        over = LinkCosts(*call_isolated(over_a_link, extent.name))
        sent = [Sent(*item) for item in over.sent]
        runtime = with_messages(found.profile.runtime, sent, over.resumed, shares_a_core())
        runtime = runtime.model_copy(
            update={"link_byte_s": max(0.0, over.link_byte_s - 2 * runtime.byte_s)}  # the rest is in `byte_s`
        )
        profile = found.profile.model_copy(update={"runtime": runtime})
        profile = with_wakeup(profile, over.few_s, over.many_s)
        profile = with_message_work(profile, RATE_BIT_PER_S, over.crowd_s)
    device: DeviceSpec = found.device.model_copy(
        update={
            "message_overhead_s": float(f"{runtime.send_s:.3g}"),
            "receive_overhead_s": float(f"{runtime.receive_s:.3g}"),
            "byte_overhead_s": float(f"{runtime.byte_s:.3g}"),
        }
    )
    return Calibration(profile=profile, device=device)


class LinkCosts(NamedTuple):
    """What was measured over a link: messages without the time of it, `resumes` by run, the seconds per token
    of the crowd, those per hop of a pipeline of few devices and of one of many, and the work of the cores per
    byte.
    """

    sent: list[Any]
    resumed: list[Any]
    crowd_s: float
    few_s: float
    many_s: float
    link_byte_s: float


def over_a_link(extent_name: str) -> LinkCosts:
    """Measure messages over a shaped link; called in namespaces of its own."""
    from emulator.network.mininet_network import MininetNetwork

    use_host_kernels()
    extent = EXTENTS[extent_name]
    specs = talking(extent.prompt_rows, RATE_BIT_PER_S)
    few, many = pipeline_specs(RATE_BIT_PER_S)
    with tempfile.TemporaryDirectory() as directory:
        drawn = Path(directory)  # all runs have one model
        with MininetNetwork(specs[0].cluster, 1.0) as network:
            runs = [run_native(spec, network, drawn) for spec in specs]
        with MininetNetwork(few.cluster, 1.0) as network:
            few_s = measured_hop_s(few, network, drawn)
            byte_s = link_byte_s(network)
        with MininetNetwork(many.cluster, 1.0) as network:
            many_s = measured_hop_s(many, network, drawn)
            crowd_s = measured_token_s(crowd_spec(RATE_BIT_PER_S), network, drawn)
    return LinkCosts(
        [item for run in runs for item in messages(run, RATE_BIT_PER_S)],
        [resumes(run) for run in runs],
        crowd_s,
        few_s,
        many_s,
        byte_s,
    )
