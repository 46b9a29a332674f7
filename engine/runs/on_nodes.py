"""What a run on boards needs of its spec. Pure."""

from __future__ import annotations

from collections import Counter

from engine.domain.errors import SpecError
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
    node, uses = Counter(bound.values()).most_common(1)[0]
    if uses > 1:
        raise _refusal(
            "cluster", f"{uses} devices are bound to the board {node}: bind one device to a board."
        )
    if spec.method is not None:
        raise _refusal("strategy", f"{spec.strategy} is not part of EdgeLoom, and boards get no code.")
    if spec.model.draft is not None:
        raise _refusal(
            "draft_model", f"{spec.model.draft.name} drafts tokens, which no board does yet: leave it out."
        )
    if spec.scenario.changes:
        raise _refusal(
            "scenario",
            "changes an emulation: a run on boards takes no changes, so leave it empty.",
        )


def _refusal(field: str, words: str) -> SpecError:
    return SpecError(f"{field}: {words}", [(field, words)])
