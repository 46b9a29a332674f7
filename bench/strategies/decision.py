"""Times EdgeFormer's decisions for one prefill, and the forward pass itself, on one core."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from math import inf
from typing import TYPE_CHECKING, Any

from bench.emulation.clusters import star
from bench.strategies.prefill_decisions import PrefillDecisions
from bench.tables.rows import Table
from engine.domain.units import human_s
from engine.models import catalogue
from engine.ops.core import Block, Embed, Head
from engine.ops.layout import whole_model

if TYPE_CHECKING:
    import torch

CASES = (("demo-lm", 16), ("demo-lm", 64), ("demo-lm", 256), ("tinyllama-42m", 256))
LEARNT = 16
REPEATS = 40
DEVICES = 5


def measure_decision() -> Table:
    """Time the decisions of EdgeFormer: `decision` is features, look-up and allocation of all blocks with a
    table of known heads.
    """
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.inference_mode():
            rows = [_row(name, num_tokens) for name, num_tokens in CASES]
    finally:
        torch.set_num_threads(threads)
    title = (
        f"One prefill on one core, and beside it what EdgeFormer decides for all its blocks over {DEVICES} "
        f"devices: features, look-up among {LEARNT} known inputs, allocation. Exact importance is for heads "
        f"that are not known. Best of {REPEATS}."
    )
    columns = (
        "model",
        "tokens",
        "forward",
        "features",
        "look-up",
        "allocation",
        "decision",
        "exact importance",
    )
    return Table(title, columns, tuple(rows))


def _row(name: str, num_tokens: int) -> tuple[str, ...]:
    import torch

    from engine.models.weights.store import WeightStore
    from engine.ops.torch_kernels import dispatch as arithmetic

    model, weights = catalogue.resolve(name)
    store = WeightStore(model, weights, 0)
    for piece in whole_model(model):
        store.load(piece)
    generator = torch.Generator().manual_seed(0)

    def compute(op: Any, *inputs: torch.Tensor) -> torch.Tensor:
        return arithmetic.run(op, model, store, {}, inputs)

    def prompt() -> torch.Tensor:
        return torch.randint(model.vocab_size, (1, num_tokens), generator=generator)

    def forward(tokens: torch.Tensor) -> list[torch.Tensor]:
        """Inputs of all blocks, and the logits."""
        states = [compute(Embed(0), tokens)]
        for layer in range(model.num_layers):
            states.append(compute(Block(layer), states[-1]))
        return [*states[:-1], compute(Head(), states[-1])]

    decisions = PrefillDecisions(model, star(DEVICES, 10e9, 1e8), num_tokens, compute)
    for _ in range(LEARNT):
        decisions.read(forward(prompt()))
        decisions.learn()
    tokens = prompt()
    decisions.read(forward(tokens))
    *times, exact_s = _best_s(
        lambda: forward(tokens),
        decisions.features,
        decisions.look_up,
        decisions.allocate,
        decisions.importance,
    )
    share = sum(times[1:]) / times[0]
    return (name, str(num_tokens), *map(human_s, times), f"{share:.1%}", human_s(exact_s))


def _best_s(*actions: Callable[[], Sequence[Any] | None]) -> list[float]:
    """The shortest time of each, in seconds; they are timed in turn, so that other load affects all alike."""
    best = [inf] * len(actions)
    for _ in range(REPEATS):
        for index, action in enumerate(actions):
            began_s = time.perf_counter()
            action()
            best[index] = min(best[index], time.perf_counter() - began_s)
    return best
