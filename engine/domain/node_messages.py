"""What a node, which is somebody's board, and the server that it has joined say to each other.

Messages are JSON over the WebSocket at `PATH`, which the node opens with its token. It says `NodeHello`,
then `NodeBeat` every `BEAT_S`, and `NodeMeasured` once its machine is calibrated. The server answers the
first with `NodeWelcome`, and whatever it does not accept with `NodeRefused`, after which it hangs up.

With `NodeOpen` it asks for the process of a run's device, by its rank. Until either says `NodeClosed`, what
that process and the run's supervisor say to each other passes as `NodePass`: lines of JSON, cut anywhere.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from engine.domain.errors import SpecError
from engine.domain.values import Name, NonNegative, Positive, Value

PROTOCOL = 3
PATH = "/ws/node/"
BEAT_S = 5.0
SILENT_S = 3 * BEAT_S
"""A node that says nothing for so long counts as gone."""
MOST_CLOCK_S = 300.0
"""A node's clock may be so far from the server's: times of both are on one page."""
LARGEST_BYTES = 1 << 20
"""Of a message: a calibration has less than a tenth of that."""

PASS_CHARS = 200_000
LARGEST_LINE_BYTES = 16 << 20
"""Of what the process of a run says at once: a part of a trace has up to a few megabytes."""
RunName = Annotated[str, StringConstraints(pattern=r"^[0-9a-z-]{1,60}$")]
Rank = Annotated[int, Field(ge=0, le=65535)]
Said = Annotated[str, StringConstraints(max_length=200)]


class NodeHello(Value):
    """Who a node is: versions, and the machine that it runs on."""

    kind: Literal["hello"] = "hello"
    protocol: int
    edgeloom: Said
    torch: Said
    python: Said
    host: Said = Field(description="The name that the machine gives itself.")
    processor: Said
    architecture: Said = Field(description="As uname has it: x86_64, aarch64.")
    cores: int = Field(ge=1, le=65536)
    memory_bytes: Positive
    clock_s: Positive = Field(description="Its clock, in seconds since 1970.")


class NodeBeat(Value):
    """A sign of life. What the machine does not show is None."""

    kind: Literal["beat"] = "beat"
    load_1min: NonNegative
    available_bytes: NonNegative
    temperature_celsius: float | None = Field(ge=-100, le=300, description="Of its hottest sensor.")
    frequency_hz: Positive | None = Field(description="Of its fastest core at this moment.")
    doing: Said = Field(description="What it measures, or empty.")


class NodeMeasured(Value):
    """A node's calibration, as `Calibration.to_json` writes it."""

    kind: Literal["measured"] = "measured"
    calibration: dict[str, Any]


class NodeOpen(Value):
    """Start a process for this device of this run."""

    kind: Literal["open"] = "open"
    run: RunName
    rank: Rank = 0


class NodePass(Value):
    """A part of what the process of a run and its supervisor say to each other."""

    kind: Literal["pass"] = "pass"
    run: RunName
    rank: Rank = 0
    text: Annotated[str, StringConstraints(max_length=PASS_CHARS)]


class NodeClosed(Value):
    """The process of this device has ended, or is to."""

    kind: Literal["closed"] = "closed"
    run: RunName
    rank: Rank = 0
    why: Said = ""


class NodeWelcome(Value):
    """The node has joined, under this name."""

    kind: Literal["welcome"] = "welcome"
    name: Name


class NodeRefused(Value):
    """Why the server hangs up. Calling again would change nothing."""

    kind: Literal["refused"] = "refused"
    sentence: str


NodeMessage = NodeHello | NodeBeat | NodeMeasured | NodePass | NodeClosed
ServerMessage = NodeWelcome | NodeRefused | NodeOpen | NodePass | NodeClosed


def node_message(data: Any) -> NodeMessage:
    """What a node has said, as plain data. Raises `SpecError`, first of all for another protocol."""
    kinds = {
        "hello": NodeHello,
        "beat": NodeBeat,
        "measured": NodeMeasured,
        "pass": NodePass,
        "closed": NodeClosed,
    }
    kind = _kind(data)
    if kind == "hello" and data.get("protocol") != PROTOCOL:
        raise SpecError(
            f"This node speaks version {str(data.get('protocol'))[:20]} of the nodes' protocol, and the "
            f"server version {PROTOCOL}: install the same version of EdgeLoom on both."
        )
    if kind not in kinds:
        raise SpecError(f"A node's message has the kind {kind!r}: expected one of {', '.join(kinds)}.")
    message: NodeMessage = kinds[kind].parse(data, kind)  # type: ignore[attr-defined]
    return message


def server_message(data: Any) -> ServerMessage:
    """What a server has said, as plain data. Raises `SpecError`."""
    kinds = {"refused": NodeRefused, "open": NodeOpen, "pass": NodePass, "closed": NodeClosed}
    kind = _kind(data)
    message: ServerMessage = kinds.get(kind, NodeWelcome).parse(data, kind)  # type: ignore[attr-defined]
    return message


def _kind(data: Any) -> str:
    return str(data.get("kind"))[:20] if isinstance(data, dict) else type(data).__name__
