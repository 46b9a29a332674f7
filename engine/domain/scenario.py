"""Timed changes of links and devices during a run: in virtual seconds, or after a part of the run."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, model_validator

from engine.domain.cluster import ClusterSpec
from engine.domain.errors import SpecError
from engine.domain.links import Direction
from engine.domain.values import Fraction, Name, NonNegative, Positive, Value

TIMES = ("at_s", "at_frac", "after_token")
"""The fields that say when a change comes: one of them is given."""


class Timed(Value):
    """A change at `at_s`; or at the part `at_frac` of the run, or halfway between its token number
    `after_token` and the next, both by the prediction of the run without changes (`engine/runs/moments.py`).
    """

    at_s: NonNegative
    at_frac: Fraction | None = Field(default=None, exclude_if=lambda value: value is None)
    after_token: int | None = Field(default=None, ge=1, exclude_if=lambda value: value is None)

    @model_validator(mode="before")
    @classmethod
    def _one_time(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        given = [name for name in TIMES[1:] if data.get(name) is not None]
        if not given:
            return data
        if len(given) > 1 or data.get("at_s"):
            raise ValueError(f"gives two times: give one of {', '.join(TIMES)}")
        return {**data, "at_s": 0.0}

    @property
    def is_relative(self) -> bool:
        """Whether `at_s` is not known yet."""
        return self.at_frac is not None or self.after_token is not None


class SetRate(Timed):
    """Give link `link` the rate `bit_per_s` in one direction or both."""

    kind: Literal["set_rate"] = "set_rate"
    link: str
    bit_per_s: Positive
    direction: Direction = "both"


class SetDelay(Timed):
    """Give link `link` the one-way delay `delay_s`."""

    kind: Literal["set_delay"] = "set_delay"
    link: str
    delay_s: NonNegative
    direction: Direction = "both"


class SetLoss(Timed):
    """Let link `link` lose the fraction `loss_frac` of its packets."""

    kind: Literal["set_loss"] = "set_loss"
    link: str
    loss_frac: Fraction
    direction: Direction = "both"


class SetJitter(Timed):
    """Let packets on link `link` be up to `jitter_s` sooner or later, at random, in both directions."""

    kind: Literal["set_jitter"] = "set_jitter"
    link: str
    jitter_s: NonNegative


class SlowDevice(Timed):
    """Let all that the device computes take `factor` times as long as drawn, as beside a busy neighbour."""

    kind: Literal["slow_device"] = "slow_device"
    device: Name
    factor: Positive


class LinkDown(Timed):
    kind: Literal["link_down"] = "link_down"
    link: str


class LinkUp(Timed):
    kind: Literal["link_up"] = "link_up"
    link: str


class DropDevice(Timed):
    """Kill the device's process, and take its links down."""

    kind: Literal["drop_device"] = "drop_device"
    device: Name


class FreezeDevice(Timed):
    """Let the device stop computing and sending without closing a connection."""

    kind: Literal["freeze_device"] = "freeze_device"
    device: Name


class JoinDevice(Timed):
    """Let a device join with empty memory that was dropped, or was absent at the start."""

    kind: Literal["join_device"] = "join_device"
    device: Name


LinkChange = SetRate | SetDelay | SetLoss | SetJitter | LinkDown | LinkUp
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
    """Changes in the order of their times, where these are known."""

    changes: tuple[Change, ...] = ()

    @property
    def is_relative(self) -> bool:
        """Whether the time of some change is not known before the run without changes is predicted."""
        return any(change.is_relative for change in self.changes)

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
