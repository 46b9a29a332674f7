"""AdaptLink: a primary holds as many layers as fit; secondaries compute parts of the last layers.

Hu et al., "AdaptLink: A Heterogeneity-Aware Adaptive Framework for Distributed MLLM Inference" (AAAI 2025
workshop), sections "Dynamic Allocation Strategy" and "Stability Assurance Mechanism". Layers are split from
the last one towards the first, as few as the primary's memory requires. A secondary has some columns of every
split feed-forward part, a backup has a copy of them. If moving all feed-forward parts is not enough,
attention heads move too, in whole KV groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import Field

from engine.domain.by_hand import PlanByHand, Unit
from engine.domain.cluster import ClusterSpec
from engine.domain.errors import PlanError, SpecError
from engine.domain.method_report import MethodReport, PlanAt
from engine.domain.model import ModelSpec
from engine.domain.plan import Placement, Plan
from engine.domain.trace import Mark, Span
from engine.domain.values import Count, Fraction
from engine.domain.workload import Workload
from engine.ops.tensors import Tensor
from engine.program.ctx import Ctx
from engine.program.strategy import DivisibleParams, Done, Overlapping, Step
from engine.strategies.adaptlink.by_hand import of_roles, roles_by_hand
from engine.strategies.adaptlink.choice import Wishes, chosen_roles
from engine.strategies.adaptlink.join import SWAP_MARGIN, roles_with
from engine.strategies.adaptlink.layout import CommMode, FfnPartition, SharesLayout
from engine.strategies.adaptlink.plan import plan_of_roles
from engine.strategies.adaptlink.report import SharesReport, shares_report
from engine.strategies.adaptlink.roles import MemoryBudget, spare_of
from engine.strategies.adaptlink.serve import PartialSumClient, serve_partial_sums
from engine.strategies.adaptlink.shares import grid_size
from engine.strategies.shared.demand import demand_of
from engine.strategies.shared.ends import embed, end_holdings, end_work, finish, tag, wanted_rows
from engine.strategies.shared.shares import named_worker


class AdaptLinkParams(DivisibleParams):
    units = ("columns",)
    settings = ("split_layers", "backups")
    beta: Fraction = Field(default=0.9, gt=0, description="Fraction of a device's memory that may be used.")
    grid: Count = Field(
        default=0,
        description="Blocks that columns are dealt out in; it must divide the model's widths. "
        "0: the largest up to 64.",
    )
    comm_mode: CommMode = Field(
        default="exact",
        description="What decides roles, shares and split layers. exact: the shortest predicted request, "
        "messages of full size counted. eq5: the paper's equation 5, as printed. none: nothing is split.",
    )
    split: Literal["if_needed", "if_faster"] = Field(
        default="if_needed",
        description="A primary that holds the model computes it alone (if_needed, as in the paper), or it "
        "is split where that is predicted to be faster (if_faster); eq5 is as printed.",
    )
    primary_share: Fraction | None = Field(
        default=None,
        description="Primary's share p of a split feed-forward part; empty: what comm_mode finds best.",
    )
    max_secondaries: Count = Field(default=0, description="At most so many secondaries; 0: any number.")
    backups: Literal["auto", "none"] = Field(
        default="auto", description="Copies of the secondaries' columns on devices that are inactive."
    )
    partition: FfnPartition = Field(
        default="columns",
        description="Split parts by columns, or in 2D blocks with SUMMA's broadcasts (then without backups).",
    )
    offload_attention: Literal["auto", "none"] = Field(
        default="auto",
        description="auto: attention heads move, too, if moving all feed-forward parts is not enough.",
    )
    swap_margin: Fraction = Field(
        default=SWAP_MARGIN,
        gt=0,
        description="A device that joins replaces a secondary if it takes less than this fraction of "
        "its time.",
    )
    replan_on_join: bool = Field(
        default=False, description="Plan anew when a device joins, instead of keeping all shares."
    )
    primary: str = Field(
        default="",
        description="The primary; empty: the one of the shortest predicted request, or with eq5 the fastest "
        "of the workers with most memory.",
    )


class AdaptLink(Overlapping[AdaptLinkParams, SharesLayout]):
    name = "adaptlink"
    title = "AdaptLink"
    paper = "Hu et al., AdaptLink, AAAI 2025 workshop"
    is_baseline = False
    summary = "A primary has what fits; columns of the last layers go to secondaries, copies to backups."
    rule = (
        "Its estimate, by which it chooses a primary and shares, leaves moved heads out: a faster device, "
        "or more memory, can be slower."
    )
    Params = AdaptLinkParams
    Layout = SharesLayout
    Report = SharesReport

    def plan(
        self, cluster: ClusterSpec, model: ModelSpec, workload: Workload, params: AdaptLinkParams
    ) -> Plan[SharesLayout]:
        if model.num_experts and params.partition == "summa":
            raise PlanError(
                f"{self.name}: partition=summa cuts the matrices of one feed-forward part in blocks, and "
                f"{model.name} has {model.num_experts} experts in each layer: choose partition=columns."
            )
        room = self._room(cluster, model, workload, params)
        wishes = Wishes(
            mode=params.comm_mode,
            grid=_grid(model, params.grid),
            share=params.primary_share,
            primary=named_worker(cluster, params.primary, "parameters of adaptlink, primary"),
            max_secondaries=params.max_secondaries,
            heads=params.offload_attention == "auto",
            backups=params.backups == "auto" and params.partition == "columns",
            if_faster=params.split == "if_faster",
        )
        roles = (
            chosen_roles(room, wishes) if params.plan is None else roles_by_hand(room, params.plan, wishes)
        )
        spare = spare_of(room, roles) if wishes.backups else None
        return plan_of_roles(
            cluster, model, room.demand, room.ends, roles, params.partition, wishes.mode, spare
        )

    def replan(
        self,
        plan: Plan[SharesLayout],
        cluster: ClusterSpec,
        model: ModelSpec,
        workload: Workload,
        params: AdaptLinkParams,
    ) -> Plan[SharesLayout]:
        """The plan after a change of devices: one that joins gets a shard of the present layout; after a
        failure all is planned again.
        """
        known = set(plan.layout.workers)
        joined = set(cluster.workers) - known
        if params.replan_on_join or params.partition == "summa" or not joined or known - set(cluster.workers):
            return super().replan(plan, cluster, model, workload, params)
        room = self._room(cluster, model, workload, params)
        roles = plan.layout.roles
        for rank in sorted(joined):
            roles = roles_with(room, roles, rank, params.swap_margin)
        try:
            return plan_of_roles(
                cluster,
                model,
                room.demand,
                room.ends,
                roles,
                comm_mode=plan.layout.comm_mode,
                spare=spare_of(room, roles) if params.backups == "auto" else None,
            )
        except PlanError:  # the prompt now includes the tokens so far, so its pass needs more memory
            return super().replan(plan, cluster, model, workload, params)

    def _room(
        self, cluster: ClusterSpec, model: ModelSpec, workload: Workload, params: AdaptLinkParams
    ) -> MemoryBudget:
        demand = demand_of(model, workload, self.batches_bursts)
        ends = Placement(
            strategy=self.name, holdings=end_holdings(cluster, model), work=end_work(cluster, model)
        )
        return MemoryBudget(cluster, model, demand, ends, params.beta)

    def partners(self, cluster: ClusterSpec, plan: Plan[SharesLayout]) -> frozenset[tuple[int, int]]:
        """The primary calls backups, and devices with room for copies, only after a failure."""
        primary, servers = plan.layout.primary, plan.layout.servers
        return frozenset(pair for rank in servers for pair in ((primary, rank), (rank, primary)))

    def by_hand(self, cluster: ClusterSpec, model: ModelSpec, plan: Plan[SharesLayout]) -> PlanByHand:
        return of_roles(cluster, plan.layout.roles)

    def hand_steps(self, model: ModelSpec, params: AdaptLinkParams) -> Mapping[Unit, int]:
        return {"columns": model.intermediate_size // _grid(model, params.grid)}

    def summarise(
        self,
        cluster: ClusterSpec,
        model: ModelSpec,
        plans: Sequence[PlanAt],
        trace: Sequence[Span | Mark],
    ) -> MethodReport:
        return shares_report(cluster, model, plans, trace)

    def continuous(self, plan: Plan[SharesLayout]) -> bool:
        """Whether tokens overlap. Devices answer the primary for a whole wave of requests; its steps run one
        after the other.
        """
        return True

    def why_not_ragged(self, plan: Plan[SharesLayout]) -> str | None:
        return (
            "adaptlink takes up a step again after a failure, which is written for a batch at one position."
        )

    async def forward_all(
        self,
        ctx: Ctx,
        plan: Plan[SharesLayout],
        steps: Sequence[Step],
        tokens: Sequence[Tensor | None],
        done: Done,
    ) -> None:
        primary, source = plan.layout.primary, ctx.cluster.source_rank
        if ctx.rank == primary:
            await _lead(ctx, plan.layout, steps, tokens, done)
            return
        serves = ctx.rank in plan.layout.servers
        program = ctx.spawn(serve_partial_sums(ctx, plan.layout, steps)) if serves else None
        if ctx.rank == source:
            await _feed(ctx, steps, tokens, primary, done)
        if program is not None:
            await program


async def _lead(
    ctx: Ctx, layout: SharesLayout, steps: Sequence[Step], tokens: Sequence[Tensor | None], done: Done
) -> None:
    """The primary's program for a wave of requests."""
    source, client = ctx.cluster.source_rank, PartialSumClient(ctx, layout, steps)
    for number, step in enumerate(steps):
        ctx.at(step.requests[0], step.index)
        if ctx.rank == source:
            x = await embed(ctx, step, tokens[number])
        else:
            x = await ctx.recv(source, tag(step, "input"))
        x = await client.layers(number, x)
        if ctx.rank == source:
            done(step, await finish(ctx, step, x))
        else:
            ctx.send(wanted_rows(step, x), source, tag(step, "output"))
    client.end()


async def _feed(
    ctx: Ctx, steps: Sequence[Step], tokens: Sequence[Tensor | None], primary: int, done: Done
) -> None:
    """The program of a source that is not the primary: embed, and compute results from the last rows."""
    for number, step in enumerate(steps):
        ctx.at(step.requests[0], step.index)
        ctx.send(await embed(ctx, step, tokens[number]), primary, tag(step, "input"))
        done(step, await finish(ctx, step, await ctx.recv(primary, tag(step, "output"))))


def _grid(model: ModelSpec, grid: int) -> int:
    """Blocks per side of the grid that weights are cut into. Raises `SpecError` for one that does not divide
    the model's widths.
    """
    if not grid:
        return grid_size(model)
    if model.hidden_size % grid or model.intermediate_size % grid:
        raise SpecError(
            f"parameters of adaptlink, grid: {grid} does not divide {model.hidden_size} and "
            f"{model.intermediate_size}, the widths of {model.name}: choose a common divisor."
        )
    return grid
