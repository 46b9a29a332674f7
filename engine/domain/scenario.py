"""Timed changes of links and devices during a run, in virtual seconds."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from engine.domain.cluster import ClusterSpec
from engine.domain.errors import SpecError
from engine.domain.links import Direction
from engine.domain.values import Fraction, Name, NonNegative, Positive, Value


class SetRate(Value):
    """Link `link` gets `bit_per_s` in one direction or both."""

    kind: Literal["set_rate"] = "set_rate"
    at_s: NonNegative
    link: str
    bit_per_s: Positive
    direction: Direction = "both"


class SetDelay(Value):
    """Link `link` gets the one-way delay `delay_s`."""

    kind: Literal["set_delay"] = "set_delay"
    at_s: NonNegative
    link: str
    delay_s: NonNegative
    direction: Direction = "both"


class SetLoss(Value):
    """Link `link` loses the fraction `loss_frac` of its packets."""

    kind: Literal["set_loss"] = "set_loss"
    at_s: NonNegative
    link: str
    loss_frac: Fraction
    direction: Direction = "both"


class SlowDevice(Value):
    """Let all that the device computes take `factor` times as long as drawn, as beside a busy neighbour."""

    kind: Literal["slow_device"] = "slow_device"
    at_s: NonNegative
    device: Name
    factor: Positive


class LinkDown(Value):
    kind: Literal["link_down"] = "link_down"
    at_s: NonNegative
    link: str


class LinkUp(Value):
    kind: Literal["link_up"] = "link_up"
    at_s: NonNegative
    link: str


class DropDevice(Value):
    """The device's process is killed and its links go down."""

    kind: Literal["drop_device"] = "drop_device"
    at_s: NonNegative
    device: Name


class FreezeDevice(Value):
    """The device stops computing and sending, but closes no connection."""

    kind: Literal["freeze_device"] = "freeze_device"
    at_s: NonNegative
    device: Name


class JoinDevice(Value):
    """A device that was dropped, or was absent at the start, joins with empty memory."""

    kind: Literal["join_device"] = "join_device"
    at_s: NonNegative
    device: Name


LinkChange = SetRate | SetDelay | SetLoss | LinkDown | LinkUp
DeviceChange = SlowDevice | DropDevice | FreezeDevice | JoinDevice
Change = Annotated[LinkChange | DeviceChange, Field(discriminator="kind")]
CHANGE: TypeAdapter[Change] = TypeAdapter(Change)
"""Validates a change from plain data."""

LiveCommand = dict[str, Any]
"""A live command to a run; `by` names who gave it.

A change without its time; `{"kind": "stop"}`; or, to a run of an open workload, `ask` (`id`, `text` or
`tokens`, `new_tokens`; `stops` false to go on after a token that ends a text), `withdraw` (`id`; `answered`
true if the answer so far is the whole one), and `end_service`.
"""


class Scenario(Value):
    """Changes in the order of their times."""

    changes: tuple[Change, ...] = ()

    def check(self, cluster: ClusterSpec) -> None:
        """Check that `cluster` has every link and device that a change names; raises `SpecError`."""
        for index, change in enumerate(self.changes):
            try:
                if isinstance(change, DeviceChange):
                    cluster.rank(change.device)
                else:
                    cluster.link_index(change.link)
            except SpecError as error:
                raise SpecError(f"changes[{index}]: {error}") from error
