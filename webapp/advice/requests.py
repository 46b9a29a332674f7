"""Requests for advice, and the run that strategies are assessed with."""

from __future__ import annotations

from engine.advice.questions import Asked
from engine.advice.replies import Prices, Question, Rank
from engine.advice.values import Objective
from engine.domain.cluster import ClusterSpec
from engine.domain.model import QuantisedBits
from engine.domain.spec import RunSpec
from engine.domain.values import Positive, Value
from engine.domain.workload import Workload
from engine.strategies.registry import STRATEGIES
from webapp.base import budgets
from webapp.runs.requests import RunRequest, spec_of


class AdviceRequest(Value):
    """What a person asks advice on: exactly one of `cluster_id` and `cluster`, a model, and what it is asked
    for, as in a `RunRequest`.

    `answer`: whether several devices are better than one, too.
    """

    cluster_id: int | None = None
    cluster: ClusterSpec | None = None
    model: str
    weight_bits: QuantisedBits | None = None
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
    run = RunRequest(
        cluster_id=request.cluster_id,
        cluster=request.cluster,
        model=request.model,
        weight_bits=request.weight_bits,
        strategy=STRATEGIES[0].name,
        workload=request.workload,
    )
    spec = spec_of(run)
    budgets.check_advice(spec)
    return spec
