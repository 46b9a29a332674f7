"""What the source tells the other devices before a step, in short messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from engine.domain.plan import Phase
from engine.domain.sampling import NUMBERS, Sampling
from engine.ops.tensors import Tensor
from engine.program.ctx import Ctx
from engine.program.frames import MAX_NOTE
from engine.program.strategy import SequenceRows
from engine.program.wave import SourceIO, cache_of_request

FIELDS_PER_SEQUENCE = 5
HOW_DRAWN = -1
"""Stands after the rows, before what says how the tokens of requests are drawn."""
STEP: dict[Phase, str] = {"both": "step", "prefill": "step.prefill", "decode": "step.decode"}
"""The tag of the messages before the steps of a phase."""


class Order(NamedTuple):
    """What the source tells before a step: the requests whose caches are dropped, and whose rows run. Without
    rows there is no step, and no other one comes. `sampled` says how the tokens of requests are drawn that
    only the source knows.
    """

    released: tuple[int, ...]
    sequences: tuple[SequenceRows, ...]
    sampled: tuple[tuple[int, Sampling], ...] = ()

    def as_numbers(self) -> tuple[int, ...]:
        rows = ((one.request, one.start, one.rows, one.index, int(one.answers)) for one in self.sequences)
        numbers = (len(self.released), *self.released, *(number for fields in rows for number in fields))
        how = ((request, *sampling.as_numbers()) for request, sampling in self.sampled)
        return (*numbers, HOW_DRAWN, *(one for fields in how for one in fields)) if self.sampled else numbers

    def of(self, how: Mapping[int, Sampling]) -> Order:
        """The same with what each device knows of `how` the tokens of requests are drawn."""
        if not how:
            return self
        rows = [one.model_copy(update={"sampling": how.get(one.request)}) for one in self.sequences]
        return self._replace(sequences=tuple(rows))

    @classmethod
    def of_numbers(cls, numbers: Sequence[int]) -> Order:
        first = 1 + numbers[0]
        numbers, how = list(numbers), []
        if HOW_DRAWN in numbers[first::FIELDS_PER_SEQUENCE]:
            end = first + FIELDS_PER_SEQUENCE * numbers[first::FIELDS_PER_SEQUENCE].index(HOW_DRAWN)
            numbers, how = numbers[:end], numbers[end + 1 :]
        return cls(
            tuple(numbers[1:first]),
            tuple(
                SequenceRows(
                    request=request,
                    cache=cache_of_request(request),
                    start=start,
                    rows=rows,
                    index=index,
                    answers=bool(answers),
                )
                for request, start, rows, index, answers in _in_parts(numbers[first:], FIELDS_PER_SEQUENCE)
            ),
            tuple((request, Sampling.of_numbers(own)) for request, *own in _in_parts(how, 1 + NUMBERS)),
        )


def tell(ctx: Ctx, rank: int, source: SourceIO, phase: Phase, order: Order) -> None:
    """Send `order` to device `rank`, in as many notes as it takes; the first number says how many follow."""
    numbers = order.as_numbers()
    for part in _in_parts((len(numbers), *numbers), MAX_NOTE):
        ctx.send(source.nothing(), rank, STEP[phase], part)


def _in_parts(numbers: Sequence[int], size: int) -> list[tuple[int, ...]]:
    return [tuple(numbers[start : start + size]) for start in range(0, len(numbers), size)]


async def told(ctx: Ctx, phase: Phase) -> tuple[Order, Tensor]:
    """The next order of the source, and the empty tensor that came with it."""
    note, nothing = await ctx.recv_noted(ctx.cluster.source_rank, STEP[phase])
    count, *numbers = note
    while len(numbers) < count:
        note, nothing = await ctx.recv_noted(ctx.cluster.source_rank, STEP[phase])
        numbers += note
    return Order.of_numbers(numbers), nothing
