"""EdgeFormer's parameters. Defaults are the paper's where it gives them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from engine.domain.values import Count, Fraction, NonNegative, Positive
from engine.program.strategy import DivisibleParams
from engine.strategies.edgeformer.allocation import Check, Fill
from engine.strategies.edgeformer.costs import CostModel, DeadlineMode

BlockOrder = Literal["balanced", "proportional", "even", "eta", "fastest"]
Lending = Literal["best", "paper"]
Prune = Literal["if_faster", "paper"]
OnMiss = Literal["by_cost", "exact", "nearest"]
Scoring = Literal["var", "paper", "var_minus_entropy"]


class EdgeFormerParams(DivisibleParams):
    """The paper gives T_max = 3.0 without saying whether per block or per pass: see `t_max_mode`."""

    units = ("layers", "lent_heads")
    settings = ("helpers",)

    t_max_mode: DeadlineMode = Field(
        default="ratio",
        description="Deadline of a block's attention: when the share t_max of the heads can be through on "
        "the undisturbed cluster (ratio), t_max seconds for a whole pass (forward_s) or for each block "
        "(block_s), or none: then no head is ever pruned for time.",
    )
    t_max: Positive = Field(
        default=0.88,
        description="The deadline's value; 0.88 keeps the share of heads of the paper's Table 4.",
    )
    prune: Prune = Field(
        default="if_faster",
        description="Heads that miss the deadline go where that makes the pass faster by its own prediction, "
        "deciding included (if_faster), or whatever it costs, as printed (paper).",
    )
    cost_model: CostModel = Field(
        default="corrected",
        description="What a head is supposed to cost: FLOPs and bytes (corrected), the formulas as printed "
        "(paper), or as the devices' own compute model prices it (device).",
    )
    block_alloc: BlockOrder = Field(
        default="balanced",
        description="Who owns how many blocks: shares by FLOP/s, or the optimum of Eq. 2 with the moves "
        "between owners where that is faster (balanced); shares by FLOP/s (proportional); equal ones (even, "
        "the paper's experiments); filled by FLOP/s per block of capacity (eta, the paper's rule) or fastest "
        "first.",
    )
    importance: Scoring = Field(
        default="var",
        description="Importance of a head: variance of its attention matrix, variance plus entropy as "
        "printed (paper), or variance minus entropy.",
    )
    importance_weight: Fraction = Field(
        default=0.8,
        description="λ: weight of importance against latency in the LiScore, by which heads are pruned.",
    )
    zeta: NonNegative = Field(default=0.6, description="Weight of the token-wise features in a distance.")
    tau: float = Field(default=0.6, description="Distance up to which a known head's importance is reused.")
    on_miss: OnMiss = Field(
        default="by_cost",
        description="A head that the table does not know: measure it where it may be one of those to prune "
        "(exact), take the nearest known head (nearest), or measure as long as that takes less "
        "time than pruning saves (by_cost).",
    )
    expected_hits: Fraction = Field(
        default=0.3,
        description="Share of heads that a prediction supposes known for a new prompt; measured on held-out "
        "text. Where all requests have one prompt, it supposes all.",
    )
    sep_norm: Literal["unit", "literal"] = Field(
        default="unit", description="Whether mean queries and keys are scaled to length 1 before comparing."
    )
    fill: Fill = Field(
        default="balance",
        description="Next head to the device that is through first (balance), or fill the cheapest (bands).",
    )
    check: Check = Field(
        default="makespan", description="Deadline against the makespan, or as printed, which counts twice."
    )
    min_keep: Count = Field(default=0, description="Heads that are kept whatever the deadline, on the owner.")
    prune_below: float | None = Field(
        default=None, description="Prune heads whose raw importance is lower; empty: none."
    )
    lending: Lending = Field(
        default="best",
        description="Who attends heads for an owner: the neighbours with which a request is fastest, often "
        "none (best), or all neighbours, as printed (paper).",
    )
    bandwidth: Literal["measured", "announced"] = Field(
        default="measured",
        description="Rates in the cost of a lent head: the links' announced ones, corrected by how long the "
        "run's own transfers take (measured), or alone (announced).",
    )
    scheduling: Literal["dynamic", "static"] = Field(
        default="dynamic",
        description="static: a fixed even split of the heads over all devices (the ablation w/o DS).",
    )
    on_change: Literal["reallocate", "prune"] = Field(
        default="reallocate",
        description="What a changed network does to heads with caches: assign anew and move K and V, or "
        "only prune on the slowest device.",
    )
