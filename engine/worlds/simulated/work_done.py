"""Checks that all devices together computed all of each layer: a prediction of less would be too fast.

Row-heads of attention and row-columns of the feed-forward part add up over devices and steps. When the source
gets a result, they are at least those of all steps so far: more, where a method computes something twice. In
the last layer one row of each sequence is enough where the answer is read from one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from engine.domain.errors import WrongProgram
from engine.domain.model import ModelSpec
from engine.ops.ledger import Ledger
from engine.ops.operation import Share
from engine.program.strategy import Step

HALF_A_ROW = 0.5
"""Shares of rows are fractions, which need not add up to whole numbers."""


class Worker(Protocol):
    name: str
    ledger: Ledger

    def work_so_far(self) -> list[Share]:
        """What it has computed of each layer."""


class WorkDone:
    """The sums over all devices of a simulated world, from its start on.

    `rows` are those of each layer, `last_rows` those of the last one. `caches`: whether each sequence under
    way has a KV cache; a method without one computes all rows again.
    """

    def __init__(self, model: ModelSpec, devices: Sequence[Worker]):
        self.model, self.devices = model, devices
        self.rows = self.last_rows = 0
        self.caches: dict[str, bool] = {}
        self.released_caches: set[str] = set()
        self.knows_all = not model.vision

    def released(self, cache: str) -> None:
        """Take note that a device needs a KV cache no more: each drops its own after its last step, also
        before the source has the result.
        """
        name = cache.partition("/")[0]
        self.released_caches.add(name)
        self.caches.pop(name, None)

    def check(self, step: Step, source: str, is_last: bool) -> None:
        """Check at the result of `step` that each layer saw all rows, and has all in its KV cache if it has
        one. Most steps are counted only: what one leaves out is missing ever after. Raises `WrongProgram`.
        """
        for one in step.each if self.knows_all else ():
            self._check_one(one, source, is_last)

    def _check_one(self, step: Step, source: str, is_last: bool) -> None:
        """`check` the rows of one sequence, or of a batch at one position."""
        if not step.start and step.cache not in self.released_caches:  # else rows are on their way
            self.caches[step.cache] = any(map(any, self._cached_whole(step) or self._cached(step)))
        cached = self.caches.get(step.cache)
        rows = step.start + step.rows if cached is False else step.rows
        self.rows += step.batch * rows
        answered = len(step.answered)
        self.last_rows += step.batch * rows if self.model.answer_row is None else answered
        if not is_last and step.index & (step.index - 1):
            return
        at = f"at request {step.requests[0]}, token {step.index}"
        self._check_layers(source, at)
        if cached and step.cache not in self.released_caches and not self._is_recomputed(step):
            self._check_caches(step, source, at)

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
        model = self.model
        row_bytes = 2 * step.batch * model.num_kv_heads * model.head_dim * model.element_bytes
        expected = step.start + step.rows
        whole = self._cached_whole(step)
        least = (expected - HALF_A_ROW) * row_bytes
        if whole and min(map(sum, whole)) >= least:
            return
        for layer, sizes in enumerate(self._cached(step)):
            if sum(sizes) < least:
                have = [size / row_bytes for size in sizes]
                raise WrongProgram(
                    f"{source} got a result {at}, but the KV cache {step.cache} of layer {layer} has "
                    f"{sum(have):g} of {expected} rows: {self._each(have)}.",
                    source,
                )

    def _is_recomputed(self, step: Step) -> bool:
        """Whether a device keeps the step's token ids, from which it computes the oldest rows anew each time:
        the KV cache then has the newest rows only.
        """
        return any((step.cache, -1) in device.ledger.cached for device in self.devices)

    def _cached_whole(self, step: Step) -> list[list[int]]:
        """Bytes of the step's KV cache by layer and device; empty if no device has it in one piece."""
        layers, nothing = range(self.model.num_layers), (0, 0)
        found = [
            [device.ledger.cached.get((step.cache, layer), nothing)[1] for device in self.devices]
            for layer in layers
        ]
        return found if any(map(any, found)) else []

    def _cached(self, step: Step) -> list[list[int]]:
        """Bytes of the step's KV cache by layer and device, with its parts by heads."""
        found = [[0] * len(self.devices) for _ in range(self.model.num_layers)]
        for rank, device in enumerate(self.devices):
            for kept in (device.ledger.cached, device.ledger.dropped):
                for (cache, layer), (_, size) in kept.items():
                    if layer >= 0 and cache.partition("/")[0] == step.cache:
                        found[layer][rank] += size
        return found

    def _each(self, rows: Sequence[float]) -> str:
        return ", ".join(f"{device.name} {one:g}" for device, one in zip(self.devices, rows, strict=True))
