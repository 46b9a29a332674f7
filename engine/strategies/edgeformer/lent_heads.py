"""Measure how long the heads that an owner lends in one block take to come back."""

from __future__ import annotations

from collections import Counter

from engine.domain.errors import PeerFailed
from engine.ops.tensors import Tensor
from engine.program.ctx import Ctx, Handle
from engine.program.strategy import Step
from engine.strategies.edgeformer.allocation import PRUNED, HeadAllocation
from engine.strategies.edgeformer.conditions import learn_transfers
from engine.strategies.edgeformer.costs import AttentionRows
from engine.strategies.edgeformer.lending import round_trips
from engine.strategies.edgeformer.state import OwnerState
from engine.strategies.edgeformer.transfers import Observed, Transfer


class LentHeads:
    """The messages of one block. Only a prefill's are measured: a token's are so short that their fixed costs
    hide the rate of the links.
    """

    def __init__(
        self, ctx: Ctx, state: OwnerState, layer: int, rows: AttentionRows, allocation: HeadAllocation
    ):
        self.ctx, self.state, self.layer, self.rows = ctx, state, layer, rows
        self.counts = Counter(rank for rank in allocation.device_of if rank != PRUNED)
        self.cluster, self.began_s = ctx.cluster_now, ctx.now_s
        self.measures = state.params.bandwidth == "measured" and rows.new > 1
        self.arrived_s: dict[int, float] = {}

    def arrival(self, rank: int, reply: Handle) -> Handle:
        """A handle for the contexts from `rank`, None if it has failed, that notes when they arrive."""
        return self.ctx.spawn(self._note(rank, reply))

    async def _note(self, rank: int, reply: Handle) -> Tensor:
        try:
            contexts = await reply
        except PeerFailed:
            return None
        if self.measures:
            self.arrived_s[rank] = self.ctx.now_s
        return contexts

    def learn(self, step: Step) -> None:
        """Pass on how much longer the transfers took than the announced rates say, where these say most of
        it.
        """
        ctx, found = self.ctx, []
        trips = round_trips(self.cluster, ctx.model, ctx.rank, self.counts, self.rows)
        telling = {rank: trip for rank, trip in trips.items() if trip.links_s > trip.fixed_s}
        if not telling.keys() & self.arrived_s.keys():
            return
        for rank, trip in sorted(telling.items()):
            took_s = self.arrived_s.get(rank, 0.0) - self.began_s - trip.fixed_s - trip.rest_s
            if took_s > 0:
                found.append(Transfer(rank, took_s / trip.links_s))
        name = f"transfers.v{self.state.version}.L{self.layer}.r{step.requests[0]}.t{step.index}"
        answer = ctx.decide(name, Observed(found))
        learn_transfers(ctx, self.state, [Transfer(int(rank), ratio) for rank, ratio in answer])
