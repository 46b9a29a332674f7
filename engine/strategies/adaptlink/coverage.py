"""Coverage: who serves which columns in AdaptLink, who has a copy of them, and who makes a new one.

Hu et al., "AdaptLink" (AAAI 2025 workshop), section "Stability Assurance Mechanism": every sub-block of a
secondary is on a backup device, too. The paper stops there; here coverage is a state of the run. When a
backup has taken over, or has failed itself, its columns have no copy any more: devices with memory to spare
then load one from their disks, in the background.
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.strategies.adaptlink.layout import SharesLayout
from engine.strategies.adaptlink.roles import ColumnShard

Range = tuple[int, int]


class Coverage:
    """What the primary knows. Its methods change this object and nothing else.

    `serving` has the present pieces of each planned shard, in the order of their columns. `copies` are
    complete, `loading` are being made. `rooms_bytes` is memory to spare, by rank, in the order of preference.
    """

    def __init__(self, layout: SharesLayout):
        others = layout.shards[1:]
        self.serving: dict[ColumnShard, tuple[ColumnShard, ...]] = {shard: (shard,) for shard in others}
        self.copies = {piece for pieces in layout.backups.values() for piece in pieces}
        self.loading: set[ColumnShard] = set()
        self.rooms_bytes = dict(layout.rooms_bytes)
        self.column_bytes, self.rest_bytes = layout.column_bytes, layout.rest_bytes
        self.width = layout.shards[-1].stop // layout.grid if layout.grid else 1
        self.with_heads = {share.device for share in layout.heads}
        self.failed: frozenset[int] = frozenset()
        self.epoch = layout.epoch

    @property
    def pieces(self) -> tuple[ColumnShard, ...]:
        """All pieces that others than the primary serve."""
        return tuple(piece for pieces in self.serving.values() for piece in pieces)

    def gaps(self, piece: ColumnShard, copies: Iterable[ColumnShard]) -> list[Range]:
        """The columns of `piece` of which no other device has one of `copies`."""
        gaps, at = [], piece.start
        for copy in sorted(copies, key=lambda one: (one.start, -one.stop)):
            if copy.device == piece.device or copy.stop <= at or copy.start >= piece.stop:
                continue
            if copy.start > at:
                gaps.append((at, copy.start))
            at = copy.stop
        return [*gaps, (at, piece.stop)] if at < piece.stop else gaps

    def uncovered(self) -> list[Range]:
        """Columns that no device could take over at once."""
        return sorted(gap for piece in self.pieces for gap in self.gaps(piece, self.copies))

    def fraction(self) -> float:
        """Share of the secondaries' columns that have a copy; 1 if no secondary has any."""
        columns = sum(piece.stop - piece.start for piece in self.pieces)
        missing = sum(stop - start for start, stop in self.uncovered())
        return 1 - missing / columns if columns else 1.0

    def lose(self, failed: frozenset[int]) -> bool:
        """Forget the copies of devices that have failed; whether there were any."""
        new, self.failed = failed - self.failed, self.failed | failed
        lost = {copy for copy in self.copies | self.loading if copy.device in new}
        self.copies -= lost
        self.loading -= lost
        for rank in new:
            self.rooms_bytes.pop(rank, None)
        return bool(lost)

    def replacement(self, piece: ColumnShard) -> tuple[ColumnShard, ...] | None:
        """The copies that together are exactly `piece`; None if there are none, or if its device has heads,
        whose KV cache nobody else has.
        """
        if piece.device in self.with_heads:
            return None
        found, at = [], piece.start
        for copy in sorted(self.copies, key=lambda one: (one.start, -one.stop)):
            if copy.start == at and copy.stop <= piece.stop and copy.device != piece.device:
                found.append(copy)
                at = copy.stop
        return tuple(found) if at == piece.stop else None

    def promote(self, shard: ColumnShard, failed: int) -> tuple[ColumnShard, ...] | None:
        """Let copies serve the columns of `shard` that device `failed` served; None if they are not complete.
        The copies then serve, so they are none any more.
        """
        pieces: list[ColumnShard] = []
        for piece in self.serving[shard]:
            new = self.replacement(piece) if piece.device == failed else (piece,)
            if new is None:
                return None
            pieces += new
        promoted = tuple(piece for piece in pieces if piece not in self.serving[shard])
        self.serving[shard] = tuple(pieces)
        self.copies -= set(promoted)
        self.epoch += 1
        return promoted

    def wanted(self) -> list[ColumnShard]:
        """Copies to make now, and their devices: the first with room for a whole gap, else several. They
        count as loading from then on.
        """
        wanted = []
        for piece in self.pieces:
            for start, stop in self.gaps(piece, self.copies | self.loading):
                wanted += self._placed(piece, start, stop)
        self.loading |= set(wanted)
        return wanted

    def _placed(self, piece: ColumnShard, start: int, stop: int) -> list[ColumnShard]:
        rooms = {rank: room for rank, room in self.rooms_bytes.items() if rank != piece.device}
        need = (stop - start) * self.column_bytes + self.rest_bytes
        whole = [rank for rank, room in rooms.items() if room >= need][:1]
        placed = []
        for rank in whole or rooms:
            blocks = int((rooms[rank] - self.rest_bytes) // (self.column_bytes * self.width))
            end = stop if whole else min(stop, start + max(0, blocks) * self.width)
            if end > start:
                placed.append(ColumnShard(rank, start, end))
                self.rooms_bytes[rank] -= (end - start) * self.column_bytes + self.rest_bytes
                start = end
        return placed

    def arrived(self, copy: ColumnShard) -> bool:
        """Take note that `copy` is complete; False if it is not wanted any more."""
        if copy not in self.loading:
            return False
        self.loading.discard(copy)
        self.copies.add(copy)
        self.epoch += 1
        return True

    def stopped(self, copy: ColumnShard) -> None:
        """Take note that `copy` was not completed: it may be made later."""
        if copy in self.loading:
            self.loading.discard(copy)
            self.rooms_bytes[copy.device] += (copy.stop - copy.start) * self.column_bytes + self.rest_bytes
