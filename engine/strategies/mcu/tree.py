"""The reduction tree of Bochem et al. (DATE 2025, section IV): chips in groups of four, one port each.

Ids are cut into consecutive groups; the first of each group leads it, and the leaders form the groups of
the next level, until one is left: the root. A level is a tuple of (member, leader).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

from engine.ops.core import Add
from engine.ops.tensors import Tensor
from engine.program.ctx import Ctx

Level = Sequence[tuple[int, int]]


def split(total: int, parts: int) -> tuple[int, ...]:
    """`total` units over `parts` chips: the first `total % parts` get one more than the others."""
    each, more = divmod(total, parts)
    return tuple(each + (index < more) for index in range(parts))


def tree_levels(ids: Sequence[int], group_size: int) -> tuple[Level, ...]:
    """The levels from the leaves to the root, which is the first of `ids`. No levels for one chip."""
    levels = []
    while len(ids) > 1:
        groups = [ids[first : first + group_size] for first in range(0, len(ids), group_size)]
        levels.append(tuple((member, group[0]) for group in groups for member in group[1:]))
        ids = [group[0] for group in groups]
    return tuple(levels)


def serial_hops(levels: Sequence[Level]) -> int:
    """Messages that follow each other on the way to the root: the largest group's of every level."""
    return sum(max(Counter(leader for _, leader in level).values()) for level in levels)


class TreeNeighbours(NamedTuple):
    """One chip's neighbours in the tree: its leader (None at the root), and its members at each level."""

    leader: int | None
    members: tuple[tuple[int, ...], ...]


def tree_neighbours(levels: Sequence[Level], chip: int) -> TreeNeighbours:
    leaders = [leader for level in levels for member, leader in level if member == chip]
    led = [tuple(member for member, leader in level if leader == chip) for level in levels]
    return TreeNeighbours(leaders[0] if leaders else None, tuple(members for members in led if members))


async def reduce_to_root(
    ctx: Ctx, partial: Tensor | None, neighbours: TreeNeighbours, senders: Collection[int], tag: str
) -> Tensor | None:
    """Add up the partial sums of `senders`: the sum at the root, None elsewhere. Partials are added in the
    order of ids, whichever arrives first.

    A chip without a partial sum (None) is no sender and leads no sender.
    """
    if partial is None:
        return None
    members = [member for level in neighbours.members for member in level if member in senders]
    for handle in [ctx.recv(member, tag) for member in members]:
        partial = await ctx.compute(Add(), partial, await handle)
    if neighbours.leader is None:
        return partial
    ctx.send(partial, neighbours.leader, tag)
    return None


async def broadcast_from_root(ctx: Ctx, x: Tensor | None, neighbours: TreeNeighbours, tag: str) -> Tensor:
    """The root's `x` on every chip, down the same tree; a leader's port sends to one member at a time."""
    if neighbours.leader is not None:
        x = await ctx.recv(neighbours.leader, tag)
    for level in reversed(neighbours.members):
        for member in level:
            await ctx.send(x, member, tag)
    return x
