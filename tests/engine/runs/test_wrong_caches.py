"""A program whose KV caches lack rows, or have those of others, ends in a sentence in the simulated world."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from engine.domain.spec import RunSpec
from engine.domain.workload import Workload
from engine.ops.core import Block
from engine.ops.kv_cache import DropRows, PutRows, TakeRows
from engine.ops.ragged import Piece, Ragged
from engine.ops.tensors import Tensor
from engine.program.ctx import Ctx
from engine.program.strategy import Step, Strategy
from engine.runs.predict import predict
from engine.strategies import disaggregated
from engine.strategies.registry import strategy
from engine.strategies.shared.ends import caches_of, embed, finish, pass_on_device, tag
from tests.engine.runs.test_wrong_programs import LAYERS, MODEL, PROMPT, WEIGHTS
from tests.support.small_cases import star

Forward = Callable[[Ctx, Any, Step, Tensor | None], Awaitable[Tensor | None]]


def on(device: Callable[[Step], int]) -> Forward:
    """Each step whole on the device that `device` names, whatever rows it has."""

    async def forward(ctx: Ctx, plan: Any, step: Step, tokens: Tensor | None) -> Tensor | None:
        async def run(x: Tensor) -> Tensor:
            for layer in range(LAYERS):
                x = await ctx.compute(Block(layer, caches_of(step)), x)
            return x

        return await pass_on_device(ctx, step, tokens, device(step), run)

    return forward


def alone(before: Callable[[Ctx, Step], Awaitable[None]]) -> Forward:
    """All on the source; `before` each step something happens to the caches."""

    async def forward(ctx: Ctx, plan: Any, step: Step, tokens: Tensor | None) -> Tensor | None:
        if ctx.rank:
            return None
        await before(ctx, step)
        x = await embed(ctx, step, tokens)
        for layer in range(LAYERS):
            x = await ctx.compute(Block(layer, caches_of(step)), x)
        return await finish(ctx, step, x)

    return forward


async def forgets(ctx: Ctx, step: Step) -> None:
    if step.index == 2:
        ctx.release(step.cache)


async def drops_the_newest_row(ctx: Ctx, step: Step) -> None:
    for layer in range(LAYERS if step.index else 0):
        await ctx.compute(DropRows(layer, step.start - 1, step.start, step.batch, step.cache))


async def drops_half_of_one_layer(ctx: Ctx, step: Step) -> None:
    if step.index == 1:
        await ctx.compute(DropRows(1, PROMPT // 2, PROMPT, step.batch, step.cache))


def ragged(how: Callable[[Sequence[Piece]], tuple[Piece, ...]]) -> Forward:
    """All on the source, with wrong pieces where rows are of several requests."""

    async def forward(ctx: Ctx, plan: Any, step: Step, tokens: Tensor | None) -> Tensor | None:
        if ctx.rank:
            return None
        x, cache = await embed(ctx, step, tokens), caches_of(step)
        if isinstance(cache, Ragged):
            cache = Ragged(how(cache.pieces))
        for layer in range(LAYERS):
            x = await ctx.compute(Block(layer, cache), x)
        return await finish(ctx, step, x)

    return forward


def moved(rows: Callable[[int], int]) -> Forward:
    """Prompts on d0, tokens on d1, which gets of layer l only the last `rows(l)` rows of the prompt."""

    async def forward(ctx: Ctx, plan: Any, step: Step, tokens: Tensor | None) -> Tensor | None:
        result = await on(lambda step: int(step.index > 0))(ctx, plan, step, tokens)
        for layer in range(LAYERS) if step.index == 0 else ():
            kept, name = rows(layer), tag(step, "kv", layer)
            if ctx.rank == 0 and kept:
                take = TakeRows(layer, PROMPT - kept, PROMPT, step.batch, step.cache)
                ctx.send(await ctx.compute(take), 1, name)
            elif ctx.rank == 1 and kept:
                await ctx.compute(PutRows(layer, step.cache), await ctx.recv(0, name))
        return result

    return forward


def all_of_one(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    return (Piece(pieces[0].cache, pieces[0].start, sum(one.rows for one in pieces)),)


def swapped(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    first, *between, last = pieces
    return (last._replace(rows=first.rows), *between, first._replace(rows=last.rows))


def begun_anew(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    return tuple(one._replace(start=0) for one in pieces)


ONE = Workload(prompt_tokens=PROMPT, new_tokens=6)
TWO = Workload.parse(
    {
        "pattern": "trace",
        "trace": [{"at_s": at_s, "prompt_tokens": 8, "new_tokens": 6} for at_s in (0.0, 1e-5)],
        "max_batch": 2,
        "scheduler": "continuous",
    },
    "test",
)

WRONG: dict[str, tuple[Forward, Workload, str]] = {
    "tokens on a device without the prompt": (
        on(lambda step: int(step.index > 0)),
        ONE,
        r"token 1, but the KV cache r0 of layer 0 has 1 of 9 rows: d0 0, d1 1",
    ),
    "every other token on another device": (
        on(lambda step: step.index % 2),
        ONE,
        r"has 1 of 9 rows: d0 0, d1 1",
    ),
    "half of the prompt came over": (
        moved(lambda layer: PROMPT // 2),
        ONE,
        r"layer 0 has 5 of 9 rows: d0 0, d1 5",
    ),
    "a layer did not come over": (
        moved(lambda layer: PROMPT * (layer != 2)),
        ONE,
        r"layer 2 has 1 of 9 rows",
    ),
    "a row did not come over": (moved(lambda layer: PROMPT - (layer == 1)), ONE, r"layer 1 has 8 of 9 rows"),
    "a cache is released too early": (
        alone(forgets),
        ONE,
        r"token 2, but the KV cache r0 of layer 0 has 1 of 10",
    ),
    "the newest row is dropped": (alone(drops_the_newest_row), ONE, r"has 8 of 9 rows"),
    "half of a layer is dropped": (alone(drops_half_of_one_layer), ONE, r"layer 1 has 5 of 9 rows"),
    "all rows in the cache of one": (ragged(all_of_one), TWO, r"cache r\d"),
    "the caches of others": (ragged(swapped), TWO, r"cache r\d"),
    "each step begins anew": (ragged(begun_anew), TWO, r"adds rows 0:\d+ to the KV cache r\d, which has \d+"),
}


def predicted(forward: Forward, workload: Workload, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Both devices have all weights where one sequence is in a step; else the source has."""
    name = "disaggregated" if workload is ONE else "single"
    monkeypatch.setattr(type(strategy(name)), "forward", staticmethod(forward))
    monkeypatch.setattr(type(strategy(name)), "forward_all", Strategy.forward_all)
    cluster = star((1e8, 1e8))
    return predict(
        RunSpec(cluster=cluster, model=MODEL, weights=WEIGHTS, strategy=name, workload=workload)
    ).outcome


@pytest.mark.parametrize("name", WRONG)
def test_a_cache_without_the_rows_it_should_have_is_refused(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    forward, workload, said = WRONG[name]
    outcome = predicted(forward, workload, monkeypatch)
    assert outcome.kind == "failed", name
    assert re.search(said, outcome.sentence), outcome.sentence


@pytest.mark.parametrize("workload", [ONE, TWO])
def test_right_caches_finish(workload: Workload, monkeypatch: pytest.MonkeyPatch) -> None:
    assert predicted(ragged(tuple), workload, monkeypatch).kind == "finished"


def test_rows_that_came_over_finish(monkeypatch: pytest.MonkeyPatch) -> None:
    assert predicted(moved(lambda layer: PROMPT), ONE, monkeypatch).kind == "finished"


@pytest.mark.parametrize("scheduler", ["fcfs", "disaggregated"])
def test_a_method_that_forgets_to_send_rows_is_refused(
    scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(ctx: Ctx, step: Step, first: int) -> None:
        for layer in range(LAYERS):
            await ctx.recv(first, tag(step, "kv", layer))

    monkeypatch.setattr(disaggregated, "_take_over", nothing)
    rows = [{"at_s": at_s, "prompt_tokens": 8, "new_tokens": 6} for at_s in (0.0, 1e-5)]
    given = {"pattern": "trace", "trace": rows, "scheduler": scheduler}
    spec = RunSpec(
        cluster=star((1e8, 1e8)),
        model=MODEL,
        weights=WEIGHTS,
        strategy="disaggregated",
        workload=Workload.parse(given, "test"),
    )
    assert re.search(r"layer 0 has 1 of 9 rows", predict(spec).outcome.sentence)
