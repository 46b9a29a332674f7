"""Six questions of somebody who builds a cluster, each answered in one sentence from predictions. Pure.

buy       whether what is there gives so many tokens per second of a model, else which boards do
largest   which model is the largest that these boards give at so many tokens per second
link      which link is worth ten times its rate
cost      what a token and a million of them cost: energy, and money where prices are known
context   the longest context, and the most requests at once, that there is memory for in 4, 8 and 16 bits
start     how long the weights take from the source to the boards, over the cluster's network
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from engine.advice.buying import largest_model, to_buy
from engine.advice.owning import cost_per_token, link_to_upgrade, longest_context, time_to_start
from engine.advice.replies import Asker, Prices, Question, Rank, Reply
from engine.advice.values import Assessment, Objective
from engine.domain.cluster import DeviceSpec
from engine.domain.model import ModelSpec
from engine.domain.spec import RunSpec, WeightsRef
from engine.domain.values import Positive, Value


class Asked(Value):
    """A question and what it is about; `tokens_per_s` are wanted by `buy` and `largest`. `rank` is of `buy`;
    None: by price where boards have prices, else by power.
    """

    question: Question
    by: Objective = "total_s"
    tokens_per_s: Positive = 1.0
    prices: Prices = Prices()
    rank: Rank | None = None

    @property
    def is_about_strategies(self) -> bool:
        """Whether its answer begins with an assessment of every strategy on the cluster."""
        return self.question in ("link", "cost", "start")


class Supply(NamedTuple):
    """The boards that one can buy and the models that one can run; read only by questions about them."""

    boards: Callable[[], Sequence[DeviceSpec]]
    models: Callable[[], Mapping[str, tuple[ModelSpec, WeightsRef]]]


def reply_to(asked: Asked, base: RunSpec, rows: Sequence[Assessment], supply: Supply, asker: Asker) -> Reply:
    """The answer to a question about `base`. `rows` are the strategies on its cluster, where the question is
    about them. Raises `SpecError`.
    """
    match asked.question:
        case "buy":
            return to_buy(base, supply.boards(), asked.tokens_per_s, asked.prices, asker, asked.rank)
        case "largest":
            return largest_model(base, supply.models(), asked.tokens_per_s, asker)
        case "link":
            return link_to_upgrade(base, rows, asked.by, asker)
        case "cost":
            return cost_per_token(base, rows, asked.prices)
        case "context":
            return longest_context(base)
        case "start":
            return time_to_start(base, rows, asked.by)
