"""Checks that all devices together computed all of each layer: a prediction of less would be too fast.

Row-heads of attention and row-columns of the feed-forward part add up over devices and steps. When the source
gets a result, they are at least those of all steps so far: more, where a method computes something twice. In
the last layer one row of each sequence is enough where the answer is read from one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from engine.domain.errors import WrongProgram
from engine.domain.model import ModelSpec
from engine.ops.ledger import Ledger
from engine.ops.operation import Share
from engine.program.strategy import Step

Entries = dict[tuple[int, tuple[str, int], int], tuple[int, int]]
"""Rows and bytes by device, name of a whole cache or a part and whether it is on disk, and layer."""
HALF_A_ROW = 0.5
"""Shares of rows are fractions, which need not add up to whole numbers."""


class Worker(Protocol):
    name: str
    ledger: Ledger

    def work_so_far(self) -> list[Share]:
        """What it has computed of each layer."""


class WorkDone:
    """The sums over all devices of a simulated world, from its start on.

    A request gets `new_tokens`, or its own number of `tokens`. `rows` are those of each layer, `last_rows`
    those of the last one. `caches`: whether each sequence under way has a KV cache; a method without one
    computes all rows again. `seen`: what devices had in the KV cache of each at its last check, and what of
    it they had used then: several results may come of one pass. `left`: what each device, by its rank, had
    when it released one.
    """

    def __init__(
        self, model: ModelSpec, new_tokens: int, tokens: Mapping[int, int], devices: Sequence[Worker]
    ):
        self.model, self.devices = model, devices
        self.new_tokens, self.tokens = new_tokens, tokens
        self.rows = self.last_rows = 0
        self.caches: dict[str, bool] = {}
        self.seen: dict[str, tuple[Entries, Entries]] = {}
        self.released_caches: set[str] = set()
        self.left: dict[str, dict[int, Entries]] = {}
        self.knows_all = not model.vision

    def released(self, cache: str, device: Worker) -> None:
        """Take note that `device` needs a KV cache no more, and of what it has in it: each drops its own
        after its last step, before the source has the results of that.
        """
        name = cache.partition("/")[0]
        self.released_caches.add(name)
        rank = self.devices.index(device)
        self.left.setdefault(name, {}).setdefault(rank, {}).update(self._parts_of(name, rank, device))

    def check(self, step: Step, source: str) -> None:
        """Check at the result of `step` that each layer saw all rows, and has all in its KV cache if it has
        one. Most steps are counted only: what one leaves out is missing ever after. Raises `WrongProgram`.
        """
        for one in step.each if self.knows_all else ():
            last = self.tokens.get(one.requests[0], self.new_tokens)
            self._check_one(one, source, step.index + 1 >= last)

    def _check_one(self, step: Step, source: str, is_last: bool) -> None:
        """`check` the rows of one sequence, or of a batch at one position."""
        released = step.cache in self.released_caches
        if (not step.start and not released) or step.cache not in self.caches:  # else rows are on their way
            has_rows = any(rows for rows, _ in (self._whole(step) or self._parts(step)).values())
            if has_rows or not released:
                self.caches[step.cache] = has_rows
        cached = self.caches.get(step.cache)
        rows = step.start + step.rows if cached is False else step.rows
        self.rows += step.batch * rows
        answered = len(step.answered)
        self.last_rows += step.batch * rows if self.model.answer_row is None else answered
        on_their_way = released and (is_last or not step.start)
        if on_their_way:  # what devices left before is no part of a later result
            left = self.left.get(step.cache, {}).values()
            self.seen[step.cache] = {key: entry for one in left for key, entry in one.items()}, {}
        if is_last or not step.index & (step.index - 1):
            at = f"at request {step.requests[0]}, token {step.index}"
            self._check_layers(source, at)
            if cached and not on_their_way and not self._is_recomputed(step):
                self._check_caches(step, source, at)
        if is_last:
            self.caches.pop(step.cache, None)
            self.seen.pop(step.cache, None)
            self.left.pop(step.cache, None)

    def _check_layers(self, source: str, at: str) -> None:
        units = self.model.num_heads, self.model.intermediate_size * self.model.hidden_size
        work = [device.work_so_far() for device in self.devices]
        for layer in range(self.model.num_layers):
            rows = self.last_rows if layer == self.model.num_layers - 1 else self.rows
            for part, unit in enumerate(units):
                done = [layers[layer][part] / unit for layers in work]
                if sum(done) < rows - HALF_A_ROW:
                    name = ("attention", "feed-forward part")[part]
                    raise WrongProgram(
                        f"{source} got a result {at}, but of the {name} of layer {layer} {sum(done):g} of "
                        f"{rows} rows were computed so far: {self._each(done)}.",
                        source,
                    )

    def _check_caches(self, step: Step, source: str, at: str) -> None:
        """Check that the devices which have used the KV cache since its last check have all rows of it: no
        layer read what others have kept.
        """
        model = self.model
        row_bytes = 2 * step.batch * model.num_kv_heads * model.head_dim * model.element_bytes
        expected = step.start + step.rows
        least = (expected - HALF_A_ROW) * row_bytes
        before, used = self.seen.get(step.cache, (Entries(), Entries())) if step.start else ({}, {})
        now = self._whole(step)
        have = self._bytes_of(_changed(now, before) or used)
        if min(map(sum, have)) < least:
            now |= self._parts(step)
            have = self._bytes_of(_changed(now, before) or used)
        self.seen[step.cache] = now, _changed(now, before) or used
        for layer, sizes in enumerate(have):
            if sum(sizes) < least:
                rows = [size / row_bytes for size in sizes]
                raise WrongProgram(
                    f"{source} got a result {at}, but the KV cache {step.cache} of layer {layer} has "
                    f"{sum(rows):g} of {expected} rows: {self._each(rows)}.",
                    source,
                )

    def _bytes_of(self, used: Entries) -> list[list[int]]:
        """Bytes by layer and device."""
        have = [[0] * len(self.devices) for _ in range(self.model.num_layers)]
        for (rank, _, layer), (_, size) in used.items():
            have[layer][rank] += size
        return have

    def _is_recomputed(self, step: Step) -> bool:
        """Whether a device keeps the step's token ids, from which it computes the oldest rows anew each time:
        the KV cache then has the newest rows only.
        """
        return any((step.cache, -1) in device.ledger.cached for device in self.devices)

    def _whole(self, step: Step) -> Entries:
        """What devices have in memory of the KV cache of the step, where it is in one piece."""
        cache, layers = step.cache, range(self.model.num_layers)
        return {
            (rank, (cache, 0), layer): kept[cache, layer]
            for rank, kept in enumerate(device.ledger.cached for device in self.devices)
            for layer in layers
            if (cache, layer) in kept
        }

    def _parts(self, step: Step) -> Entries:
        """What each device has of it in parts by heads, and on disk; one that has nothing, what it had left:
        the others may have some results to come.
        """
        found: Entries = {}
        left = self.left.get(step.cache, {})
        for rank, device in enumerate(self.devices):
            found |= self._parts_of(step.cache, rank, device) or left.get(rank, {})
        return found

    def _parts_of(self, cache: str, rank: int, device: Worker) -> Entries:
        return {
            (rank, (name, is_dropped), layer): entry
            for is_dropped, kept in enumerate((device.ledger.cached, device.ledger.dropped))
            for (name, layer), entry in kept.items()
            if layer >= 0 and name.partition("/")[0] == cache
        }

    def _each(self, rows: Sequence[float]) -> str:
        return ", ".join(f"{device.name} {one:g}" for device, one in zip(self.devices, rows, strict=True))


def _changed(now: Entries, before: Entries) -> Entries:
    """Who computes with a cache makes its entry anew."""
    return {key: entry for key, entry in now.items() if before.get(key) is not entry}
