"""Run the sliding window of one device: load weights shortly before their use, evict them right after.

The memory scheduler of Li et al., "TPI-LLM" (arXiv:2410.00531): a block is released as soon as it is
computed, before its all-reduce, and each release makes room for the next load, across the end of a token.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.domain.plan import Slice
from engine.ops.operation import Op
from engine.ops.tensors import Tensor
from engine.program.ctx import Ctx, Handle
from engine.program.strategy import Step
from engine.strategies.tpi_llm.plan import SlidingWindowLayout, blocks_of, streaming_at


class WeightWindow:
    """Blocks in the order of computation, step after step; `streaming[i]` are those that stream in step i.

    A use is one block in one step. Up to the use `ahead` every streaming block has its place in the window
    and every other block is there or on its way: the disk loads in this order.
    """

    def __init__(self, ctx: Ctx, size: int, blocks: Sequence[Slice], streaming: Sequence[frozenset[int]]):
        self.ctx = ctx
        self.size = size
        self.blocks = blocks
        self.streaming = streaming
        self.use = self.ahead = 0
        self.placed: set[int] = set()
        self.loading: dict[int, Handle] = {}

    def begin(self, rows: int) -> None:
        """A step begins, after which the cache has `rows` rows: blocks that stream from now on make room."""
        step = self.use // len(self.blocks)
        streaming = sorted(self.streaming[step])
        for block in streaming[self.size :]:
            if self.ctx.holds(self.blocks[block]):
                self.ctx.evict(self.blocks[block])
        self._look_ahead()
        if step and self.streaming[step] != self.streaming[step - 1]:
            self.ctx.mark("unpinned", rows=rows, pinned=len(self.blocks) - len(streaming))

    async def compute(self, op: Op, x: Tensor) -> Tensor:
        """`op` of the next block, as soon as its weights are there."""
        step, block = divmod(self.use, len(self.blocks))
        if block in self.loading:
            await self.loading.pop(block)
        y = await self.ctx.compute(op, x)
        self.use += 1
        if block in self.streaming[step]:
            self.placed.discard(block)
            self.ctx.evict(self.blocks[block])
            self._look_ahead()
        return y

    async def settle(self) -> None:
        """Wait for what was loaded ahead: the next request finds the window full."""
        for handle in self.loading.values():
            await handle

    def _look_ahead(self) -> None:
        """Continue with the loads, into the step after the last one, until the window is full."""
        while self.ahead < (len(self.streaming) + 1) * len(self.blocks):
            step, block = divmod(self.ahead, len(self.blocks))
            if block in self.streaming[min(step, len(self.streaming) - 1)]:
                if len(self.placed) == self.size:
                    return
                self.placed.add(block)
            if not self.ctx.holds(self.blocks[block]):
                self.loading[block] = self.ctx.load(self.blocks[block])
            self.ahead += 1


def window_of(ctx: Ctx, layout: SlidingWindowLayout, steps: Sequence[Step]) -> WeightWindow:
    """The window of this device in `steps`, as planned."""
    streams = layout.streams[ctx.rank]
    streaming = [streaming_at(streams, step.start + step.rows) for step in steps]
    return WeightWindow(ctx, layout.window, blocks_of(layout, ctx.rank, ctx.model.num_layers), streaming)
