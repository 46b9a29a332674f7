"""What a run on boards needs of its spec. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from engine.domain.errors import SpecError
from engine.domain.host_times import HostProfile
from engine.domain.scenario import (
    Change,
    DropDevice,
    FreezeDevice,
    JoinDevice,
    LinkDown,
    LinkUp,
    SetDelay,
    SetJitter,
    SetLoss,
    SetRate,
    SlowDevice,
)
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark, Span
from engine.worlds.real.dilation import demands

MOST_PLAYED = 16
"""How many devices a server plays in one run on boards. All compute on its cores, as fast as drawn."""


def on_nodes(spec: RunSpec) -> RunSpec:
    """The run on the boards that its devices are bound to."""
    return spec.model_copy(update={"dilation": "nodes"})


def check_on_nodes(spec: RunSpec, are_reached: bool = True) -> None:
    """Check that the devices of a run can be boards, which `are_reached` from here. Raises `SpecError`."""
    if not are_reached:
        raise _refusal(
            "dilation",
            "is nodes, and boards are reached through the server that they have joined: start such a run on "
            "its page New run.",
        )
    played = played_by_server(spec)
    if len(played) == len(spec.cluster.devices):
        raise _refusal(
            "cluster",
            "has no device that is bound to a board: draw it with boards of the palette, or emulate it.",
        )
    if len(played) > MOST_PLAYED:
        raise _refusal(
            "cluster",
            f"has {len(played)} devices without a board, and the server plays at most {MOST_PLAYED}: bind "
            "more of them to boards, or emulate the cluster.",
        )
    if played and not spec.slows_links:
        raise _refusal(
            "board_links",
            f"is given, and {played[0]} is no board but played by the server as it and its links are drawn: "
            "leave it out.",
        )
    if spec.method is not None:
        raise _refusal("strategy", f"{spec.strategy} is not part of EdgeLoom, and boards get no code.")
    if spec.model.draft is not None:
        raise _refusal(
            "draft_model", f"{spec.model.draft.name} drafts tokens, which no board does yet: leave it out."
        )
    for change in spec.scenario.changes:
        if why := why_not_on_nodes(change, spec):
            raise _refusal("scenario", why)


def played_by_server(spec: RunSpec) -> list[str]:
    """The devices of a run on boards that are none: the server plays them, as they are drawn."""
    return [device.name for device in spec.cluster.devices if spec.on_nodes and not device.node]


WHAT = {
    "operation": "one operation",
    "device": "what one of them computes",
    "cores": "what they compute at the same time, on the cores there are,",
}
"""What may be too fast for this machine, by the rules of a dilation."""


def check_keeps_up(
    spec: RunSpec, trace: Sequence[Span | Mark], host: HostProfile, cores: int | None = None
) -> None:
    """Check that this machine, which has the times of `host`, computes for the devices that it plays as fast
    as they are drawn. `trace` is the run's prediction. Raises `SpecError`.
    """
    played = played_by_server(spec)
    own = [one for one in trace if isinstance(one, Span) and one.kind == "compute" and one.device in played]
    needed = demands(spec, spec.profile or host, own, cores)
    rule = max(WHAT, key=lambda rule: needed[rule])
    if needed[rule] > 1:
        raise _refusal(
            "cluster",
            f"the server cannot play {', '.join(played)} as fast as drawn: {WHAT[rule]} would have to take "
            f"{needed[rule]:.3g} times as long; draw slower devices, bind them to boards, or emulate the "
            "cluster, which slows all down alike.",
        )


def why_not_on_nodes(change: Change, spec: RunSpec) -> str:
    """Why boards cannot make a change, as a sentence; empty if they can."""
    match change:
        case DropDevice():
            return ""
        case SlowDevice() if change.device in played_by_server(spec):
            return ""
        case SetRate() | SetDelay():
            if spec.slows_links:
                return ""
            return (
                f"{change.link} is what the network gives in this run: to change links, let them be as drawn."
            )
        case SetLoss() | SetJitter() | LinkDown() | LinkUp():
            return (
                f"{change.link} joins boards, whose messages are slowed down and never lost: change its rate "
                "or its delay, or drop a device."
            )
        case JoinDevice():
            return f"{change.device} does not come back into a run on boards once it has left."
        case FreezeDevice() if change.device in played_by_server(spec):
            return f"{change.device} is played by the server: slow it, or drop it."
        case _:
            return (
                f"{change.device} is a board, which computes as fast as it is: change a link, or drop the "
                "device."
            )


def _refusal(field: str, words: str) -> SpecError:
    return SpecError(f"{field}: {words}", [(field, words)])
