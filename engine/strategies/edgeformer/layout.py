"""EdgeFormer's layout: who owns which blocks, and how many heads each device has room for."""

from __future__ import annotations

from typing import Literal, NamedTuple

from engine.domain.plan import Layout
from engine.domain.values import Count
from engine.strategies.edgeformer.params import EdgeFormerParams


class OwnedBlocks(NamedTuple):
    """Layers [start, stop) of which device `owner` (rank) has all weights."""

    owner: int
    start: int
    stop: int


class HeadsLayout(Layout):
    """The heads and blocks that devices may compute.

    `own_heads` and `lent_heads` are by rank: how many heads a device can attend at once in a block of its
    own, and in each block of another owner. `lenders` has the ranks that may attend heads for an owner, none
    for other devices. `lossy` says that some run may prune a head.

    Also by rank, of an owner: `weighed_heads` is how many heads' attention weights it can keep from measuring
    until attending, `table_entries` how many heads each of its mapping tables can remember. `same_prompt`
    says that all requests have one prompt, `passes` how many prefills they take. `alone_s` and `lent_s` are
    what the attention of a request is estimated to take an owner alone, and with its best neighbours; 0 where
    nobody had to choose.
    """

    kind: Literal["heads"] = "heads"
    blocks: tuple[OwnedBlocks, ...]
    workers: tuple[Count, ...]
    own_heads: tuple[Count, ...]
    lent_heads: tuple[Count, ...]
    lenders: tuple[tuple[Count, ...], ...]
    weighed_heads: tuple[Count, ...]
    table_entries: tuple[Count, ...]
    same_prompt: bool
    passes: Count = 1
    alone_s: tuple[float, ...] = ()
    lent_s: tuple[float, ...] = ()
    lossy: bool
    params: EdgeFormerParams
