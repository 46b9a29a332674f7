"""Load and evict LIME's streamed blocks: all segments share their memory.

Sun et al., "LIME" (arXiv 2512.21835), section IV-A.

Invariant at the start of a step: the first segment's blocks are in memory or being loaded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from engine.domain.plan import Slice
from engine.ops.operation import piece_of
from engine.program.ctx import Ctx, Handle
from engine.strategies.lime.cost import StreamedBlock


class Slots:
    """The slots of a device, through which its offloaded blocks go.

    `bounds` are this device's layers [start, stop) per segment, `blocks` what its stages stream.
    """

    def __init__(self, ctx: Ctx, bounds: Sequence[tuple[int, int]], blocks: Sequence[StreamedBlock]):
        self.ctx = ctx
        self.bounds = bounds
        self.blocks = tuple(blocks)
        self.loads: defaultdict[int, list[Handle]] = defaultdict(list)

    @property
    def front(self) -> StreamedBlock | None:
        """The last streamed block of a stage: once it is computed, the memory is free for the next one."""
        return self.blocks[-1] if self.blocks else None

    async def ready(self, segment: int) -> None:
        """Wait until everything that a stage needs is in memory."""
        for handle in self.loads.pop(segment, ()):
            await handle

    def advance(self, segment: int) -> None:
        """Evict the streamed blocks of `segment` and start to load those of the next segment."""
        self._evict(segment, self.blocks)
        self._load((segment + 1) % len(self.bounds), self.blocks)

    def adapt(self, blocks: Sequence[StreamedBlock]) -> None:
        """Stream `blocks` from now on. Call it only between two steps. Evictions come before loads."""
        before, self.blocks = self.blocks, tuple(blocks)
        others = range(1, len(self.bounds))
        for segment in others:
            self._evict(segment, [block for block in self.blocks if block not in before])
        for segment in others:
            self._load(segment, [block for block in before if block not in self.blocks])

    def _evict(self, segment: int, blocks: Sequence[StreamedBlock]) -> None:
        for block in blocks:
            self.ctx.evict(piece_at(self.bounds[segment], block))

    def _load(self, segment: int, blocks: Sequence[StreamedBlock]) -> None:
        self.loads[segment] += [self.ctx.load(piece_at(self.bounds[segment], block)) for block in blocks]


def piece_at(bounds: tuple[int, int], block: StreamedBlock) -> Slice:
    """The weights of `block` in the stage of layers `bounds`."""
    return piece_of(bounds[0] + block.position, block.part)
