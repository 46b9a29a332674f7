"""A program that torch would refuse, or that leaves work out, ends in a sentence in the simulated world."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from bench.fuzz.draw import draw_spec
from engine.domain.errors import PlanError, SpecError
from engine.domain.spec import RunSpec
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.ops.core import Add, Attention, Block, Embed, FeedForward, Head, Residual
from engine.ops.tensors import Tensor, concat, narrow, reshape, take, zeros
from engine.ops.tokens import Greedy
from engine.program.ctx import Ctx
from engine.program.strategy import Step, Strategy
from engine.runs.predict import predict
from engine.strategies.registry import STRATEGIES, strategy
from tests.support.small_cases import star

SMALL, WEIGHTS = catalogue.resolve("tiny-gpt2", "random")
MODEL = SMALL.model_copy(update={"num_layers": 3})
HEADS, COLUMNS, LAYERS, WIDE = (
    MODEL.num_heads,
    MODEL.intermediate_size,
    MODEL.num_layers,
    MODEL.hidden_size,
)
PROMPT = 8

Layer = Callable[[Ctx, Step, int, Tensor], Awaitable[Tensor]]
Program = Callable[[Ctx, Any, Step, Tensor], Awaitable[Tensor]]


async def whole(ctx: Ctx, step: Step, layer: int, x: Tensor) -> Tensor:
    return await ctx.compute(Block(layer, step.cache), x)


def program(at: Layer = whole, only: int = 1, layers: int = LAYERS) -> Program:
    """Embed, all layers, head: with `at` in place of layer `only`."""

    async def forward(ctx: Ctx, plan: Any, step: Step, tokens: Tensor) -> Tensor:
        x = await ctx.compute(Embed(step.start), tokens)
        for layer in range(layers):
            x = await (at if layer == only else whole)(ctx, step, layer, x)
        return await ctx.compute(Head(), x)

    return forward


def manipulated(how: Callable[[Tensor], Tensor]) -> Layer:
    """A layer whose input goes through `how` before."""

    async def layer(ctx: Ctx, step: Step, number: int, x: Tensor) -> Tensor:
        return await whole(ctx, step, number, how(x))

    return layer


def parts(heads: range, columns: range, attended: Callable[[Tensor], Tensor] = lambda x: x) -> Layer:
    """A layer as its parts, over these heads and columns."""

    async def layer(ctx: Ctx, step: Step, number: int, x: Tensor) -> Tensor:
        attention = Attention(number, heads.start, heads.stop, True, step.cache)
        x = await ctx.compute(Residual(number, "attention"), x, attended(await ctx.compute(attention, x)))
        ffn = await ctx.compute(FeedForward(number, columns.start, columns.stop, True), x)
        return await ctx.compute(Residual(number, "ffn"), x, ffn)

    return layer


async def half_the_rows(ctx: Ctx, step: Step, number: int, x: Tensor) -> Tensor:
    rows = x.shape[1]
    first = await whole(ctx, step, number, narrow(x, 1, 0, (rows + 1) // 2))
    return concat([first, narrow(x, 1, (rows + 1) // 2, rows)], 1)


async def no_cache(ctx: Ctx, step: Step, number: int, x: Tensor) -> Tensor:
    return await ctx.compute(Block(number), x)


async def forgetful(ctx: Ctx, step: Step, number: int, x: Tensor) -> Tensor:
    return await ctx.compute(Block(number, f"{step.cache}.{step.index}"), x)


async def only_the_prompt(ctx: Ctx, step: Step, number: int, x: Tensor) -> Tensor:
    return x if step.index else await whole(ctx, step, number, x)


async def sum_of_unlike(ctx: Ctx, step: Step, number: int, x: Tensor) -> Tensor:
    return await ctx.compute(Add(), x, narrow(x, 2, 0, 1))


async def no_cache_at_all(ctx: Ctx, plan: Any, step: Step, tokens: Tensor) -> Tensor:
    x = await ctx.compute(Embed(step.start), tokens)
    for layer in range(LAYERS):
        x = await no_cache(ctx, step, layer, x)
    return await ctx.compute(Head(), x)


async def embeds_hidden(ctx: Ctx, plan: Any, step: Step, tokens: Tensor) -> Tensor:
    return await ctx.compute(Embed(step.start), await ctx.compute(Embed(step.start), tokens))


async def head_of_nothing(ctx: Ctx, plan: Any, step: Step, tokens: Tensor) -> Tensor:
    return await ctx.compute(Head(), narrow(await ctx.compute(Embed(step.start), tokens), 1, 0, 0))


async def cuts_the_prompt(ctx: Ctx, plan: Any, step: Step, tokens: Tensor) -> Tensor:
    return narrow(tokens, 1, 0, 40)


async def greedy_of_hidden(ctx: Ctx, plan: Any, step: Step, tokens: Tensor) -> Tensor:
    x = await ctx.compute(Embed(step.start), tokens)
    return await ctx.compute(Greedy(), reshape(x, (x.shape[0] * x.shape[1], WIDE)))


ALL, HALF = range(HEADS), range(HEADS // 2)
COLS, FEW = range(COLUMNS), range(COLUMNS // 4)

WRONG: dict[str, tuple[Program, str]] = {
    "rows beyond the end": (
        program(manipulated(lambda x: narrow(x, 1, 0, 40))),
        r"d0, request 0, token 0, layer 0: narrow cannot give 0:40 of 8 along dimension 1 of \[1, 8, \d+\]",
    ),
    "fewer than no rows": (program(manipulated(lambda x: narrow(x, 1, 8, 4))), "narrow cannot give 8:4"),
    "a dimension too many": (program(manipulated(lambda x: narrow(x, 3, 0, 1))), "dimension 3"),
    "an index beyond": (program(manipulated(lambda x: take(x, 2, [0, WIDE]))), f"index {WIDE} of {WIDE}"),
    "unlike parts": (
        program(manipulated(lambda x: concat([x, narrow(x, 2, 0, 1)], 1))),
        r"concat cannot give \[1, 8, \d+\] and \[1, 8, 1\]",
    ),
    "no parts": (program(manipulated(lambda x: concat([], 1))), "concat cannot give no parts"),
    "lost elements": (program(manipulated(lambda x: reshape(x, (1, 4, WIDE)))), "reshape cannot give"),
    "negative zeros": (program(manipulated(lambda x: zeros((1, -1), x, "float32"))), r"the shape \[1, -1\]"),
    "a width that is none": (
        program(manipulated(lambda x: narrow(x, 2, 0, 1))),
        rf"d0: block of layer 1 got \[1, 8, 1\], expected \[B, T, {WIDE}\]",
    ),
    "two dimensions": (program(manipulated(lambda x: reshape(x, (8, WIDE)))), r"block of layer 1 got \[8, "),
    "a residual of other rows": (
        program(parts(ALL, COLS, lambda x: narrow(x, 1, 0, 1))),
        r"d0: residual of layer 1 got \[1, 8, \d+\] and \[1, 1, \d+\]",
    ),
    "an unlike sum": (program(sum_of_unlike), "add got .* expected two equal shapes"),
    "heads that are none": (program(parts(range(HEADS + 1), COLS)), rf"expected one in 0:{HEADS}"),
    "columns that are none": (program(parts(ALL, range(9, 5))), "ffn of layer 1 has the range 9:5"),
    "ids that are none": (embeds_hidden, r"embed got \[1, 8, \d+\], expected \[B, T\]"),
    "ids beyond the end": (cuts_the_prompt, "d0, request 0, token 0, before the first layer: narrow cannot"),
    "logits that are none": (greedy_of_hidden, "greedy got"),
    "no rows for the head": (head_of_nothing, "head got no rows"),
    "a layer too many": (program(layers=LAYERS + 1), f"has the layers 0 to {LAYERS - 1}"),
    "a layer left out": (
        program(layers=LAYERS - 1),
        rf"of the attention of layer {LAYERS - 1} 0 of 1 rows were computed so far: d0 0",
    ),
    "half of the rows": (program(half_the_rows), "attention of layer 1 4 of 8 rows"),
    "half of the heads": (program(parts(HALF, COLS)), "attention of layer 1 4 of 8 rows"),
    "a quarter of the columns": (program(parts(ALL, FEW)), "feed-forward part of layer 1 2 of 8 rows"),
    "no layers for later tokens": (program(only_the_prompt), "token 1, but of the attention of layer 1"),
    "a layer without a cache": (program(no_cache), "KV cache r0 of layer 1 has 0 of 8 rows: d0 0"),
    "a cache that forgets": (program(forgetful), "KV cache r0 of layer 1 has 0 of 8 rows"),
    "no cache for later tokens": (no_cache_at_all, "token 1, but of the attention of layer 0 9 of 17 rows"),
}


def predicted(forward: Program, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(type(strategy("single")), "forward", staticmethod(forward))
    workload = Workload(prompt_tokens=PROMPT, new_tokens=4)
    return predict(
        RunSpec(cluster=star((1e8,)), model=MODEL, weights=WEIGHTS, strategy="single", workload=workload)
    ).outcome


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_program_is_refused_with_layer_rows_and_device(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    forward, said = WRONG[name]
    outcome = predicted(forward, monkeypatch)
    assert outcome.kind == "failed"
    assert outcome.device == "d0"
    assert re.search(said, outcome.sentence), outcome.sentence


async def one_of_the_batch(ctx: Ctx, step: Step, number: int, x: Tensor) -> Tensor:
    return concat([await whole(ctx, step, number, narrow(x, 0, 0, 1)), narrow(x, 0, 1, x.shape[0])], 0)


def test_a_sequence_of_a_batch_that_is_left_out_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(strategy("single")), "forward", staticmethod(program(one_of_the_batch)))
    monkeypatch.setattr(type(strategy("single")), "together", lambda self, plan: None)
    workload = Workload(prompt_tokens=PROMPT, new_tokens=4, requests=2, pattern="bursty")
    spec = RunSpec(cluster=star((1e8,)), model=MODEL, weights=WEIGHTS, strategy="single", workload=workload)
    assert "attention of layer 1 8 of 16 rows" in predict(spec).outcome.sentence


@pytest.mark.parametrize("right", [program(), program(parts(ALL, COLS))])
def test_a_right_program_finishes(right: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    assert predicted(right, monkeypatch).kind == "finished"


@pytest.mark.parametrize("devices", [1, 3])
@pytest.mark.parametrize("decode", ["kv_single", "recompute"])
def test_the_last_layer_may_compute_only_the_row_that_the_answer_is_read_from(
    devices: int, decode: str
) -> None:
    outcome = predict(
        RunSpec(
            cluster=star((1e8,) * devices),
            model=MODEL,
            weights=WEIGHTS,
            strategy="voltage",
            params={"last_layer_rows": "needed", "decode": decode},
            workload=Workload(prompt_tokens=PROMPT, new_tokens=4),
        )
    ).outcome
    assert outcome.kind == "finished", outcome.sentence


KEEPS_FEWER_ROWS = 436  # its oldest keys and values are computed anew in each step
DECODES_WITHOUT_ROOM = 843  # the device that is to decode has no room for all layers: refused, not broken


OF_FOUND = tuple(one for one in STRATEGIES if one.name not in ("disaggregated", "speculative"))
"""The methods among which these two cases were found: their numbers mean others among more."""


@pytest.mark.parametrize(
    ("index", "methods"),
    [
        *((index, STRATEGIES) for index in range(2 * len(STRATEGIES))),
        (KEEPS_FEWER_ROWS, OF_FOUND),
        (DECODES_WITHOUT_ROOM, OF_FOUND),
    ],
)
def test_no_drawn_run_of_any_method_counts_as_a_wrong_program(
    index: int, methods: tuple[Strategy, ...]
) -> None:
    try:
        outcome = predict(draw_spec(771, index, methods)).outcome
    except (PlanError, SpecError) as error:
        assert index != KEEPS_FEWER_ROWS, error
    else:
        assert outcome.kind != "failed", outcome.sentence
