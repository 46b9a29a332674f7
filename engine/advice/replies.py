"""What a question of somebody who builds a cluster is answered with, and the predictions for that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from pydantic import Field

from engine.advice.changes import best_of
from engine.advice.values import Assessment, Objective
from engine.domain.cluster import ClusterSpec, DeviceSpec
from engine.domain.errors import SpecError
from engine.domain.spec import RunSpec
from engine.domain.units import between
from engine.domain.values import NonNegative, Value

Question = Literal["buy", "largest", "link", "cost", "context", "start"]
Rank = Literal["price", "power", "number"]
"""What is to be least of boards to buy: their price, the power that they draw, or their number."""
AssessAll = Callable[[Sequence[RunSpec]], Sequence[Assessment]]
RATE: Objective = "tokens_per_s"
METHODS = ("single", "edgeshard", "megatron")
"""The strategies that boards and models are tried with: alone, a pipeline, and every layer on all boards at
once.
"""
MOST_OPTIONS = 3


class Prices(Value):
    """Prices in US dollars: of a board, by the name of its preset (`buy`) or its device (`cost`), in place of
    its own, and of a kilowatt-hour.
    """

    boards: dict[str, NonNegative] = Field(default_factory=dict)
    per_kwh: NonNegative | None = None


class Option(Value):
    """One way, the figure of its best strategy, and that with boards at both ends of their rates."""

    words: str
    strategy: str
    figure: float
    low: float | None = None
    high: float | None = None
    tokens_per_s_per_usd: float | None = Field(
        default=None, description="Tokens per second for each US dollar that the boards cost."
    )
    tokens_per_j: float | None = Field(
        default=None, description="Tokens for each joule of computing and sending."
    )


class Reply(Value):
    """The answer to a question. `unit` is that of the options' figures; the best option comes first."""

    question: Question
    sentence: str
    unit: str
    options: tuple[Option, ...] = ()


class Asker(NamedTuple):
    """Asks for predictions of runs, and of the same with both ends of the boards' rates."""

    plainly: AssessAll
    with_interval: AssessAll


def check_tokens(base: RunSpec) -> None:
    if not base.model.has_head or not base.workload.new_tokens:
        raise SpecError(f"{base.model.name}: the question is about tokens, and this run generates none.")


def best_on(base: RunSpec, cluster: ClusterSpec, assess_all: AssessAll) -> Assessment | None:
    methods = METHODS if len(cluster.workers) > 1 else METHODS[:1]
    return best_of(assess_all([_run(base, cluster, name) for name in methods]), RATE)


def option_of(base: RunSpec, cluster: ClusterSpec, words: str, best: Assessment, asker: Asker) -> Option:
    """An option with its interval, which is predicted only for what is shown."""
    (row,) = asker.with_interval([_run(base, cluster, best.strategy)])
    low, high = sorted(ends_of(row)) if len(ends_of(row)) == 2 else (None, None)
    return Option(
        words=words,
        strategy=best.strategy,
        figure=best.tokens_per_s or 0.0,
        low=low,
        high=high,
        tokens_per_s_per_usd=rate_per_usd(best, price_usd(cluster, best.devices)),
        tokens_per_j=tokens_per_j(base, best),
    )


def priced(boards: Sequence[DeviceSpec], prices: Prices, what: str) -> tuple[DeviceSpec, ...]:
    """The boards with these prices in place of their own. `what` names them; raises `SpecError` for the price
    of something else.
    """
    unknown = sorted(set(prices.boards) - {board.name for board in boards})
    if unknown:
        raise SpecError(f"prices: {', '.join(unknown)} is no {what}: give prices by the names of these.")
    given = prices.boards
    return tuple(
        board.model_copy(update={"price_usd": given[board.name], "price_source": ""})
        if board.name in given
        else board
        for board in boards
    )


def price_usd(cluster: ClusterSpec, names: Sequence[str]) -> float | None:
    """What the devices `names` cost together, US dollars; None if the price of one is not known."""
    prices = [cluster.devices[cluster.rank(name)].price_usd for name in names]
    known = [price for price in prices if price is not None]
    return sum(known) if len(known) == len(prices) else None


def rate_per_usd(row: Assessment, usd: float | None) -> float | None:
    """Tokens per second for each dollar; None where nothing is paid, or nobody knows what."""
    return row.tokens_per_s / usd if usd and row.tokens_per_s else None


def tokens_per_j(base: RunSpec, row: Assessment) -> float | None:
    return base.workload.new_tokens * base.workload.together / row.energy_j if row.energy_j else None


def worth(option: Option) -> str:
    """What an option gives for a dollar and a joule, as a sentence; empty where neither is known."""
    usd, joule = option.tokens_per_s_per_usd, option.tokens_per_j
    said = [f"{usd:.3g} tokens/s per dollar"] if usd is not None else []
    said += [f"{joule:.3g} tokens per joule"] if joule is not None else []
    return f" That is {' and '.join(said)}." if said else ""


def _run(base: RunSpec, cluster: ClusterSpec, name: str) -> RunSpec:
    return base.model_copy(update={"cluster": cluster, "strategy": name, "params": {}})


def gives(option: Option) -> str:
    return f"gives {option.figure:.3g} tokens/s with {option.strategy}{on_real_boards(option)}"


def on_real_boards(option: Option) -> str:
    """The interval of an option in brackets; empty where it has none."""
    ends = interval(option)
    return f" ({ends} on real boards)" if ends else ""


def interval(option: Option) -> str:
    if option.low is None or option.high is None:
        return ""
    return between(f"{option.low:.3g}", f"{option.high:.3g}")


def ends_of(row: Assessment) -> tuple[float, ...]:
    return tuple(end[RATE] for end in (row.slow, row.fast) if RATE in end)
