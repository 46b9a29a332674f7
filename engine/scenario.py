"""Timed changes of a run: what was done live, or is to be done, in virtual seconds."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from engine.cluster import ClusterSpec
from engine.errors import SpecError
from engine.values import Name, NonNegative, Positive, Value


class SetRate(Value):
    """Link `link` gets `bit_per_s`, a→b (`forward`), b→a (`backward`) or `both`."""

    kind: Literal["set_rate"] = "set_rate"
    at_s: NonNegative
    link: str
    bit_per_s: Positive
    direction: Literal["both", "forward", "backward"] = "both"


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


Change = Annotated[SetRate | LinkDown | LinkUp | DropDevice, Field(discriminator="kind")]


class Scenario(Value):
    """Changes in the order of their times."""

    changes: tuple[Change, ...] = ()

    def check(self, cluster: ClusterSpec) -> None:
        """Raises `SpecError` if a change names a link or device that the cluster lacks."""
        for index, change in enumerate(self.changes):
            try:
                if isinstance(change, DropDevice):
                    cluster.rank(change.device)
                else:
                    cluster.link_index(change.link)
            except SpecError as error:
                raise SpecError(f"changes[{index}]: {error}") from error
