"""AdaptLink's layout: the roles of all devices, as its program runs them and the page draws them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from engine.domain.plan import Layout
from engine.domain.values import Count, Fraction, NonNegative, Value
from engine.strategies.adaptlink.roles import ColumnShard, HeadShare, Roles

FfnPartition = Literal["columns", "summa"]
CommMode = Literal["exact", "eq5", "none"]


class PredictedStep(Value):
    """Seconds of all layers of one step: by the paper's equation 5, with messages of full size, and if the
    primary computed everything.
    """

    eq5: NonNegative
    exact: NonNegative
    primary_alone: NonNegative


class PredictedSides(Value):
    """Seconds that each device spends on one split part, by rank: see `PredictedStep`."""

    eq5: dict[int, NonNegative]
    exact: dict[int, NonNegative]


class Predicted(Value):
    """What the planner expects of one step: of a token, or of an encoder's prompt."""

    step_s: PredictedStep
    sides_s: PredictedSides


class SharesLayout(Layout):
    """The columns and heads that each device computes, and those that it has copies of.

    `rooms_bytes` is the memory that workers could spend on further copies, by rank, the preferred first; a
    copy takes `column_bytes` for each column, of all split layers together, and `rest_bytes` besides.
    `comm_mode` is the rule that chose them (plans of earlier versions know equation 5 only).
    `shards` are in columns and begin with the primary's; `shares` has them in blocks of the grid, by rank.
    `backups` has the copies of a secondary's columns, by its rank; `coverage` is the fraction of all
    secondaries' columns that have one.
    """

    kind: Literal["shares"] = "shares"
    partition: FfnPartition
    comm_mode: CommMode = "eq5"
    primary: Count
    grid: Count
    split_layers: tuple[Count, ...]
    shares: dict[int, tuple[Count, ...]]
    shards: tuple[ColumnShard, ...]
    heads: tuple[HeadShare, ...]
    backups: dict[int, tuple[ColumnShard, ...]]
    coverage: Fraction
    rooms_bytes: dict[int, NonNegative] = Field(default_factory=dict)
    column_bytes: NonNegative = 0.0
    rest_bytes: NonNegative = 0.0
    epoch: Count = 0
    workers: tuple[Count, ...]
    predicted: Predicted

    @property
    def roles(self) -> Roles:
        """The same roles as the planner's value."""
        return Roles(
            primary=self.primary,
            grid=self.grid,
            num_split=len(self.split_layers),
            shards=self.shards,
            heads=self.heads,
            backups=self.backups,
        )

    @property
    def servers(self) -> tuple[int, ...]:
        """Ranks that the primary may call: secondaries, backups, and devices with room for new copies."""
        devices = [shard.device for shard in self.shards[1:]]
        devices += [share.device for share in self.heads]
        devices += [piece.device for pieces in self.backups.values() for piece in pieces]
        return tuple(dict.fromkeys([*devices, *self.rooms_bytes]))
