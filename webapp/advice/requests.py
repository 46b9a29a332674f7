"""Requests for advice, and the run that strategies are assessed with."""

from __future__ import annotations

from engine.advice.questions import Asked
from engine.advice.replies import Prices, Question, Rank
from engine.advice.values import Objective
from engine.domain.spec import RunSpec
from engine.domain.values import Positive
from engine.domain.workload import Workload
from engine.strategies.registry import STRATEGIES
from webapp.base import budgets
from webapp.runs.requests import Pair, RunRequest, spec_of


class AdviceRequest(Pair):
    """What a person asks advice on, and for which work.

    `answer`: whether several devices are better than one, too.
    """

    workload: Workload = Workload(prompt_tokens=16)
    by: Objective = "total_s"
    answer: bool = False


class QuestionRequest(AdviceRequest):
    """One of the questions; `tokens_per_s` are wanted by `buy` and `largest`, and `rank` is of `buy`."""

    question: Question
    tokens_per_s: Positive = 1.0
    prices: Prices = Prices()
    rank: Rank | None = None

    @property
    def asked(self) -> Asked:
        return Asked(
            question=self.question,
            by=self.by,
            tokens_per_s=self.tokens_per_s,
            prices=self.prices,
            rank=self.rank,
        )


def base_of(request: AdviceRequest) -> RunSpec:
    """The run whose strategy is varied. Raises `SpecError` with paths into the request, and for what is too
    large to be predicted here.
    """
    given = {name: value for name, value in request if name in RunRequest.model_fields}
    spec = spec_of(RunRequest(strategy=STRATEGIES[0].name, **given))
    budgets.check_advice(spec)
    return spec
