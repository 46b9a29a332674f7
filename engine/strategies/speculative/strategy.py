"""Speculative decoding over a link: the source drafts tokens, a stronger device verifies several in one pass.

Li et al., "SLED: A Speculative LLM Decoding Framework for Efficient Edge Serving" (SEC 2025), section III: an
edge device drafts with a small model, a server verifies all drafts in one pass of the large one; only tokens
travel. Leviathan et al., "Fast Inference from Transformers via Speculative Decoding" (ICML 2023),
Algorithm 1: the server accepts drafted tokens up to the first that is not its own, and gives the next one
itself, so that tokens are those of the large model alone. SLED's early verification of uncertain drafts and
its batches of several boards are not part of this method.

With `draft_layers` the model's own first layers draft, and the others verify (`rounds.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from engine.domain.cluster import ClusterSpec
from engine.domain.errors import PlanError
from engine.domain.method_report import PlanAt
from engine.domain.model import ModelSpec
from engine.domain.plan import Placement, Plan
from engine.domain.trace import Mark, Span
from engine.domain.workload import Workload
from engine.ops.core import Block
from engine.ops.tensors import Tensor
from engine.program.ctx import Ctx
from engine.program.strategy import Done, Overlapping, Params, Step
from engine.strategies.shared.demand import Demand, SizedOp, demand_of, hidden
from engine.strategies.shared.shares import named_worker, op_s
from engine.strategies.shared.verify import DraftReport, drafts_of
from engine.strategies.speculative.layout import SpeculativeLayout
from engine.strategies.speculative.placement import by_draft_model, by_first_layers
from engine.strategies.speculative.rounds import MOST_UNSEEN, UNSEEN, DraftModel, FirstLayers


class SpeculativeParams(Params):
    draft_length: int = Field(
        default=4,
        ge=1,
        le=64,
        description="Tokens that are drafted for each verification, fewer where fewer are left.",
    )
    draft_layers: int = Field(
        default=0,
        ge=0,
        description="First layers of the model that draft in place of a draft model, and the other layers "
        "verify; 0: the draft model drafts.",
    )
    verify_device: str = Field(
        default="",
        description="Worker that verifies; empty: the fastest of those with room.",
    )


class Speculative(Overlapping[SpeculativeParams, SpeculativeLayout]):
    name = "speculative"
    title = "Speculative decoding"
    paper = "Leviathan et al., ICML 2023; Li et al., SLED, SEC 2025; Elhoushi et al., LayerSkip, ACL 2024"
    summary = (
        "The source drafts tokens with a small model, or with the model's first layers; another device "
        "verifies several in one pass."
    )
    rule = (
        "The fastest worker with room verifies, whatever its link: a better device can be slower to reach, "
        "and a faster draft model may guess less."
    )
    drafts = True
    needs_cache = "it verifies drafts on the KV cache of what is accepted."
    batches_bursts = False
    Params = SpeculativeParams
    Layout = SpeculativeLayout
    Report = DraftReport

    def supports(self, cluster: ClusterSpec, model: ModelSpec) -> str | None:
        if cluster.source_rank not in cluster.workers:
            return f"tokens are drafted on the source, and {cluster.source} computes no layers."
        if not (model.causal and model.has_head) or model.vision is not None:
            return f"it drafts the next tokens of a text, which {model.name} does not generate."
        return None

    def plan(
        self, cluster: ClusterSpec, model: ModelSpec, workload: Workload, params: SpeculativeParams
    ) -> Plan[SpeculativeLayout]:
        demand = demand_of(model, workload, self.batches_bursts)
        if not demand.generates:
            raise PlanError("speculative: workload.new_tokens is 0, and it drafts new tokens: ask for some.")
        _check_draft(model, demand, params.draft_layers)
        named = named_worker(cluster, params.verify_device, f"parameters of {self.name}, verify_device")
        passed = SizedOp(
            Block(0, "plan"), (hidden(model, 1, params.draft_length + 1),), demand.longest.cached_rows
        )

        def order(rank: int) -> tuple[float, bool, int]:
            return op_s(cluster.devices[rank], model, passed), rank != cluster.source_rank, rank

        def placed(rank: int) -> Placement:
            if params.draft_layers:
                layers = params.draft_layers
                return by_first_layers(self.name, cluster, model, demand, rank, params.draft_length, layers)
            unseen = MOST_UNSEEN + workload.is_open
            return by_draft_model(self.name, cluster, model, demand, rank, params.draft_length, unseen)

        refusals = []
        for rank in sorted(cluster.workers, key=order) if named is None else [named]:
            try:
                placement = placed(rank)
            except PlanError as error:
                refusals.append(error)
                continue
            return placement.with_layout(
                SpeculativeLayout(
                    draft_device=cluster.source_rank,
                    verify_device=rank,
                    draft_length=params.draft_length,
                    draft_layers=params.draft_layers,
                )
            )
        raise refusals[0]

    def continuous(self, plan: Plan[SpeculativeLayout]) -> bool:
        return True

    def why_not_ragged(self, plan: Plan[SpeculativeLayout]) -> str | None:
        return "speculative verifies several rows of one sequence at a time."

    def summarise(
        self,
        cluster: ClusterSpec,
        model: ModelSpec,
        plans: Sequence[PlanAt],
        trace: Sequence[Span | Mark],
    ) -> DraftReport | None:
        return drafts_of(trace)

    async def forward_all(
        self,
        ctx: Ctx,
        plan: Plan[SpeculativeLayout],
        steps: Sequence[Step],
        tokens: Sequence[Tensor | None],
        done: Done,
    ) -> None:
        if ctx.rank not in (plan.layout.draft_device, plan.layout.verify_device):
            return
        numbers: dict[str, list[int]] = {}
        for number, step in enumerate(steps):
            numbers.setdefault(step.cache, []).append(number)
        unseen = ctx.memory.get(UNSEEN)
        if unseen and all(steps[of_one[0]].phase == "prefill" for of_one in numbers.values()):
            unseen.clear()  # of requests that have ended
        kind = FirstLayers if plan.layout.draft_layers else DraftModel
        rounds = [kind(ctx, plan, steps, tokens, done, of_one).run() for of_one in numbers.values()]
        begun = [ctx.spawn(others) for others in rounds[1:]]
        await rounds[0]
        for handle in begun:
            await handle


def _check_draft(model: ModelSpec, demand: Demand, draft_layers: int) -> None:
    """Check that something drafts and has the positions. Raises `PlanError`."""
    if draft_layers >= model.num_layers:
        raise PlanError(
            f"speculative: draft_layers is {draft_layers}, and {model.name} has {model.num_layers} layers, "
            "one of which must be left to verify: choose fewer."
        )
    draft = model.draft
    if draft_layers and draft is not None:
        raise PlanError(
            f"speculative: draft_layers is {draft_layers}, and {model.name} has the draft model "
            f"{draft.name}: only one can draft. Leave the draft model out, or set draft_layers=0."
        )
    if draft_layers:
        return
    if draft is None:
        raise PlanError(
            f"speculative: {model.name} has no draft model: choose one (--draft-model), or let its first "
            "layers draft (--set draft_layers=N)."
        )
    if draft.max_positions < demand.longest.cached_rows:
        raise PlanError(
            f"speculative: the draft model {draft.name} has {draft.max_positions} positions, and prompt "
            f"and answer need {demand.longest.cached_rows}: shorten them, or choose another draft model."
        )
