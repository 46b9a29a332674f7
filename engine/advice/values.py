"""What the advisor says: one assessment per strategy, and what single changes of the cluster would do."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from engine.domain.values import Count, Value
from engine.strategies.planner.choice import WORTH_NAMING

Objective = Literal[
    "first_token_s", "per_token_s", "total_s", "tokens_per_s", "peak_memory_bytes", "energy_j"
]
Resource = Literal["compute", "link", "delay", "load", "staging", "wait"]


class Limit(Value):
    """What most of the critical path's time goes into: the device or link `name`, for `share_frac` of it."""

    resource: Resource
    name: str
    share_frac: float


class Assessment(Value):
    """A strategy's figures by prediction; all None where it has no plan, and `reason` then says why.

    A long answer is not simulated to its end: `simulated_tokens` of it are, and the others are supposed to be
    like the last of them, or like their mean where a method drafts. `total_s`, `energy_j` and `link_bytes`
    (on every link of a path) are of all requests that arrive at once, or of one; `peak_memory_frac` is of the
    device that is fullest, `fullest`; `peak_bytes` has every device's, by rank.

    `basis` says what the rates of the computing boards are, as far as they are uncertain; `fast` and `slow`
    have the figures if all of them are as fast, and as slow, as that allows. `like` names the row before it
    that comes to the same in every figure: the same plan by another name. `best_planner_s` is `total_s` with
    planner=best, where that is less.
    """

    strategy: str
    lossless: bool
    reason: str
    first_token_s: float | None = None
    per_token_s: float | None = None
    total_s: float | None = None
    tokens_per_s: float | None = None
    peak_memory_bytes: float | None = None
    peak_memory_frac: float | None = None
    fullest: str = ""
    energy_j: float | None = None
    link_bytes: float | None = None
    limit: Limit | None = None
    devices: tuple[str, ...] = ()
    peak_bytes: tuple[float, ...] = ()
    simulated_tokens: Count = 0
    basis: str = ""
    fast: dict[Objective, float] = Field(default_factory=dict)
    slow: dict[Objective, float] = Field(default_factory=dict)
    like: str = ""
    best_planner_s: float | None = None

    def figure(self, objective: Objective) -> float | None:
        """The figure that `objective` names; None if this strategy has none."""
        value: float | None = getattr(self, objective)
        return value

    def is_better(self, other: Assessment, objective: Objective) -> bool:
        """Whether this one's figure is better; one without a figure never is. Raises no error."""
        mine, theirs = self.figure(objective), other.figure(objective)
        if mine is None or theirs is None:
            return mine is not None
        return mine > theirs if objective == "tokens_per_s" else mine < theirs


class Change(Value):
    """A change of the cluster, tried by prediction: the best figure before and after, and by which strategy.

    `gain` is how many times better: 2 is half of the time, or twice the tokens per second. `words` name the
    change.
    """

    kind: Literal["rate", "delay", "memory", "speed", "fewer", "more"]
    name: str
    sentence: str
    before: float | None
    after: float
    strategy_before: str
    strategy_after: str
    gain: float | None
    words: str = ""

    @property
    def makes_a_difference(self) -> bool:
        return self.gain is None or not 1 / WORTH_NAMING < self.gain < WORTH_NAMING


class Answer(Value):
    """Whether several boards are better than one, first in a sentence: `alone` and `together` are the figures
    of the best row on one device and of the best on several. `yes` is None where there is nothing to choose.
    """

    yes: bool | None
    sentence: str
    strategy: str = ""
    alone: float | None = None
    together: float | None = None
    gain: float | None = None


class Move(Value):
    """One unit of `giver` for `taker`: the figure then and what that saves, or why there is no such plan."""

    giver: str
    taker: str
    after_s: float | None
    saved_s: float | None
    refusal: str = ""


class Relief(Value):
    """What the figure would be less if the device's computing, its disk or its links needed no time."""

    what: Literal["compute", "load", "link"]
    saved_s: float


class DeviceReason(Value):
    """What binds a device. `take` and `give` are the best moves of one unit to it and from it, `needs_bytes`
    is the memory for one unit more, where only memory prevents it.
    """

    device: str
    binding: Literal["memory", "compute", "load", "link", "idle", "none"]
    sentence: str
    reliefs: tuple[Relief, ...]
    take: Move | None
    give: Move | None
    free_bytes: float
    needs_bytes: float | None


class Why(Value):
    """The constraints of all workers under one plan, for one figure (`objective`, `figure_s`).

    `unit` is what was moved at a time. Without a plan that finishes there are no `devices`, and `sentence`
    says why.
    """

    strategy: str
    objective: Objective
    figure_s: float | None
    unit: str
    devices: tuple[DeviceReason, ...]
    sentence: str
