"""What a run on boards needs of its spec. Pure."""

from __future__ import annotations

from engine.domain.errors import SpecError
from engine.domain.scenario import (
    Change,
    DropDevice,
    JoinDevice,
    LinkDown,
    LinkUp,
    SetDelay,
    SetJitter,
    SetLoss,
    SetRate,
)
from engine.domain.spec import RunSpec


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
    bound = {device.name: device.node for device in spec.cluster.devices}
    drawn = [name for name, node in bound.items() if not node]
    if drawn:
        raise _refusal(
            "cluster",
            f"{drawn[0]}{f' and {len(drawn) - 1} more are' if len(drawn) > 1 else ' is'} bound to no board: "
            "a run on boards needs one for each device, so draw it with boards of the palette.",
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


def why_not_on_nodes(change: Change, spec: RunSpec) -> str:
    """Why boards cannot make a change, as a sentence; empty if they can."""
    match change:
        case DropDevice():
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
            return f"{change.device} is a board: one that has left does not come back into the run."
        case _:
            return (
                f"{change.device} is a board, which computes as fast as it is: change a link, or drop the "
                "device."
            )


def _refusal(field: str, words: str) -> SpecError:
    return SpecError(f"{field}: {words}", [(field, words)])
