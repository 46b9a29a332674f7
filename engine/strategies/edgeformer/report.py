"""What EdgeFormer did in a run: where every head was attended, and how the heads to leave out were found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Literal

from engine.domain.cluster import ClusterSpec
from engine.domain.method_report import MethodReport, PlanAt
from engine.domain.model import ModelSpec
from engine.domain.trace import Mark, Span
from engine.domain.units import human_s
from engine.domain.values import Count, Value
from engine.strategies.edgeformer.allocation import PRUNED
from engine.strategies.edgeformer.layout import HeadsLayout
from engine.strategies.edgeformer.params import BlockOrder, Lending, OnMiss

DECISION_OPS = ("features", "importance", "statistics")


class BlockHeads(Value):
    """One block. `device_of` has the rank that attended each head at the end of the run, -1 for a pruned one,
    `scores` its LiScore, None where heads were not compared. `kept` = own heads and `lent` ones.

    Over the whole run `hits` and `misses` count look-ups of heads in the mapping table, `measured` the heads
    whose importance was measured exactly, `moves` the new allocations after a change. Times in seconds:
    `collab_s` is the expected time of the shared attention, `t_max_s` its deadline. By the owner's estimates
    meeting it saves `saving_s` of a pass, and finding out which heads to leave out takes `deciding_s`.
    """

    layer: Count
    owner: str
    device_of: tuple[int, ...]
    scores: tuple[float | None, ...]
    kept: Count
    lent: Count
    pruned: Count
    hits: Count
    misses: Count
    measured: Count
    moves: Count
    collab_s: float
    t_max_s: float | None
    saving_s: float = 0.0
    deciding_s: float = 0.0


class Chosen(Value):
    """The attention of a request as an owner estimated it when it chose its neighbours: alone, and with the
    best of them; 0 where no neighbour would be through with a head before the owner is with all.
    """

    owner: str
    alone_s: float
    lent_s: float


class HeadsReport(MethodReport):
    """What EdgeFormer did in a run: `blocks` in order of their layers, and the rules by which they were
    placed and heads were found.

    `decision_s` is what owners computed to decide, `decision_frac` its share of what they computed before the
    first token. Attention weights by which a measured head is then attended are no part of it.
    """

    kind: Literal["heads"] = "heads"
    blocks: tuple[BlockHeads, ...]
    block_alloc: BlockOrder
    lending: Lending
    on_miss: OnMiss
    decision_s: float
    decision_frac: float
    chosen: tuple[Chosen, ...] = ()

    def lines(self) -> tuple[str, ...]:
        if not self.blocks:
            return ()
        kept, lent, pruned, hits, misses, measured = (
            sum(getattr(block, name) for block in self.blocks)
            for name in ("kept", "lent", "pruned", "hits", "misses", "measured")
        )
        total = kept + pruned
        found = [f"Heads: {kept} of {total} kept, {lent} of them lent to neighbours; {pruned} pruned."]
        found += [f"  {line}" for line in self._rows()]
        found += self._why_not(lent, pruned)
        if not hits + misses:
            why = "in every block all were kept or all pruned" if pruned else "all were kept"
            return (*found, f"No head had to be measured: {why}.")
        return (
            *found,
            f"Importance: {hits} heads were known and {misses} were not; of these {measured} were measured, "
            f"and {misses - measured} had the importance of the nearest known head (on_miss={self.on_miss}).",
            f"Deciding took {_percent(self.decision_frac)} of the owners' computation "
            "before the first token.",
        )

    def _why_not(self, lent: int, pruned: int) -> Iterator[str]:
        """Why no head was lent, and why none was pruned although there is a deadline."""
        for one in self.chosen if not lent else ():
            yield f"{one.owner} lends no heads: " + (
                f"a block's attention takes {human_s(one.alone_s)} there for a request, and "
                f"{human_s(one.lent_s)} with its best neighbours."
                if one.lent_s
                else "it is through with all of them before a neighbour would be with one."
            )
        late = [block for block in self.blocks if block.saving_s or block.deciding_s]
        if pruned or not self.blocks or self.blocks[0].t_max_s is None:
            return
        if not late:
            yield "No head is pruned: all meet the deadline."
            return
        saved, spent = (max(getattr(block, name) for block in late) for name in ("saving_s", "deciding_s"))
        yield (
            f"No head is pruned: that would save {human_s(saved)} of a block, and finding out "
            f"which heads to leave out would take {human_s(spent)}."
        )

    def _rows(self) -> Iterator[str]:
        """One row for consecutive blocks of one owner that are alike."""

        def alike(block: BlockHeads) -> tuple[object, ...]:
            return block.owner, block.kept, block.lent, block.pruned, block.moves

        for (owner, kept, lent, pruned, moves), group in groupby(self.blocks, alike):
            layers = [block.layer for block in group]
            names = f"layer {layers[0]}" if len(layers) == 1 else f"layers {layers[0]} to {layers[-1]}"
            moved = f", moved {moves} times" if moves else ""
            yield f"{names} on {owner}: {kept} kept, {lent} lent, {pruned} pruned{moved}"


def _percent(part: float) -> str:
    return "less than 0.1%" if 0 < part < 0.001 else f"{part:.1%}"


def heads_report(
    cluster: ClusterSpec, model: ModelSpec, plans: Sequence[PlanAt], trace: Sequence[Span | Mark]
) -> HeadsReport:
    """The report of a run with these plans and this trace, which may end early."""
    layout = plans[-1].plan.layout
    assert isinstance(layout, HeadsLayout)
    last: dict[int, Mark] = {}
    moves: Counter[int] = Counter()
    hits: Counter[int] = Counter()
    looked_up: Counter[int] = Counter()
    measured: Counter[int] = Counter()
    for item in trace:
        if not isinstance(item, Mark):
            continue
        if item.name == "heads":
            last[item.facts["layer"]] = item
        elif item.name == "reallocated":
            moves[item.facts["layer"]] += 1
        elif item.name == "decided":
            what, layer = _decision(item.facts["decision"])
            if what == "hits":
                hits[layer] += sum(item.facts["answer"]["hit"])
                looked_up[layer] += model.num_heads
            elif what == "importance":
                measured[layer] += len(item.facts["answer"])
    blocks = [
        _block(cluster, mark, moves[layer], hits[layer], looked_up[layer] - hits[layer], measured[layer])
        for layer, mark in sorted(last.items())
    ]
    owners = {cluster.devices[owner].name for owner, _, _ in layout.blocks}
    spans = [item for item in trace if isinstance(item, Span) and item.kind == "compute"]
    spans = [span for span in spans if span.device in owners]
    first = [span for span in spans if span.token <= 0]
    prefill_s = sum(span.end_s - span.start_s for span in first)
    return HeadsReport(
        blocks=tuple(blocks),
        block_alloc=layout.params.block_alloc,
        lending=layout.params.lending,
        on_miss=layout.params.on_miss,
        decision_s=_deciding_s(model, spans),
        decision_frac=_deciding_s(model, first) / prefill_s if prefill_s else 0.0,
        chosen=tuple(
            Chosen(owner=cluster.devices[rank].name, alone_s=alone_s, lent_s=lent_s)
            for rank, (alone_s, lent_s) in enumerate(zip(layout.alone_s, layout.lent_s, strict=True))
            if alone_s and len(layout.workers) > 1
        ),
    )


def _decision(name: str) -> tuple[str, int]:
    """What `importance.py` named a decision after, and its layer: `hits.v0.L3.r0.t0` → ("hits", 3)."""
    what, *parts = name.split(".")
    layers = [int(part[1:]) for part in parts if part[:1] == "L"]
    return what, layers[0] if layers else -1


def _block(cluster: ClusterSpec, mark: Mark, moves: int, hits: int, misses: int, measured: int) -> BlockHeads:
    facts = mark.facts
    device_of: list[int] = facts["device_of"]
    pruned, own = device_of.count(PRUNED), device_of.count(facts["owner"])
    return BlockHeads(
        layer=facts["layer"],
        owner=cluster.devices[facts["owner"]].name,
        device_of=tuple(device_of),
        scores=tuple(facts["scores"]),
        kept=len(device_of) - pruned,
        lent=len(device_of) - pruned - own,
        pruned=pruned,
        hits=hits,
        misses=misses,
        measured=measured,
        moves=moves,
        collab_s=facts["t_collab_s"],
        t_max_s=facts["t_max_s"],
        saving_s=facts.get("saving_s", 0.0),
        deciding_s=facts.get("deciding_s", 0.0),
    )


def _deciding_s(model: ModelSpec, spans: Sequence[Span]) -> float:
    """Seconds of looking up and measuring. Of the attention weights those of heads that were then left out or
    attended elsewhere: `Weigh` counts 2·E+1 FLOPs for each (2·E+2 with capped scores), `Mix` 2·E for each
    that it uses.
    """
    flops: Counter[str] = Counter()
    total_s = dict.fromkeys((*DECISION_OPS, "weigh"), 0.0)
    for span in spans:
        flops[span.name] += span.flops
        if span.name in total_s:
            total_s[span.name] += span.end_s - span.start_s
    passes = 1 + (model.score_softcap is not None)
    weighed, used = flops["weigh"] / (2 * model.head_dim + passes), flops["mix"] / (2 * model.head_dim)
    lost = 1 - used / weighed if weighed else 0.0
    return sum(total_s[name] for name in DECISION_OPS) + lost * total_s["weigh"]
