"""The judge of plans: it plays a method's own program in the simulated world and says how long that takes.

There is no other model of a method's time: what the program does is what counts. A play has no trace, and
where all layers are alike it is one of a few layers: some in which late starts are made up for, as many by
which all further ones are measured, and the last one, which may be quicker or slower, as no other follows.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from math import inf

from engine.domain.cluster import ClusterSpec
from engine.domain.errors import EdgeLoomError
from engine.domain.model import ModelSpec, layer_kinds
from engine.domain.plan import Plan
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark, Span
from engine.domain.workload import Request, Workload
from engine.program.serve import serve
from engine.program.strategy import Strategy
from engine.worlds.common.source import SimulatedSource
from engine.worlds.simulated.world import KnownPrices, SimulatedWorld

GROWTH, FEW_ROWS = 0.5, 64
"""The further tokens of an answer are played with a prompt as long as sequences are on average, if that is
longer than the prompt by more than this part of it, and by more rows than these; at once where tokens are
recomputed.
"""
PLAYED_TOKENS, PLAYED_PASSES = 8, 80
"""So many tokens of an answer are played where requests overtake each other, and of many requests fewer, down
to two: in all no more passes than these.
"""

PlanOf = Callable[[ModelSpec], Plan]
"""The plan of the same shares for a model with fewer layers. Raises `PlanError`."""


class Judge:
    """Times of one run's plans: seconds from the arrival of its requests, all at once, to the last token.

    alike: whether a plan does the same in every layer, with all requests in one batch, so that few layers are
    played; else all are, and more tokens, as requests may overtake each other. measured: so many layers,
    after as many others, tell the time of all. recomputes: each further token is a pass over all rows, so it
    takes longer than the one before. `rows` and `new_tokens` are those of each of `requests` requests.
    """

    def __init__(
        self,
        method: Strategy,
        cluster: ClusterSpec,
        model: ModelSpec,
        rows: int,
        new_tokens: int,
        requests: int = 1,
        alike: bool = True,
        measured: int = 1,
        recomputes: bool = False,
    ):
        self.method, self.cluster, self.model = method, _of_any_host(cluster), model
        self.rows, self.new_tokens, self.requests = rows, new_tokens, requests
        self.grows_from = 0 if recomputes else max(GROWTH * rows, FEW_ROWS)
        self.alike, self.measured = alike, measured
        few = 2 * measured + 1 if alike and len(layer_kinds(model)) == 1 else model.num_layers
        self.played = model.model_copy(update={"num_layers": min(few, model.num_layers)})
        self._specs: dict[tuple[int, int], RunSpec] = {}
        self._prices: KnownPrices = {}

    def seconds(self, plan_of: PlanOf) -> float:
        """Predicted seconds under the plan that `plan_of` gives for a model; infinity where the simulated
        world refuses or cannot end it.
        """
        first_s, step_s = self.times(plan_of)
        return first_s + max(0, self.new_tokens - 1) * step_s

    def times(self, plan_of: PlanOf) -> tuple[float, float]:
        """Seconds until the first token, and of each further one on average, under the plan of `plan_of`."""
        try:
            return self._times(plan_of(self.played))
        except EdgeLoomError:
            return inf, inf if self.new_tokens > 1 else 0.0

    def whole_s(self, plan: Plan) -> float:
        """Predicted seconds to the last token with every token played, whatever grows or adapts on the way;
        infinity as for `seconds`.
        """
        try:
            return self._token_s(plan, self.rows, self.new_tokens)[-1]
        except EdgeLoomError:
            return inf

    def _times(self, plan: Plan) -> tuple[float, float]:
        if self.new_tokens < 2:
            return self._token_s(plan, self.rows, self.new_tokens)[0], 0.0
        middle = self.rows + (self.new_tokens - 1) // 2
        if not self.alike:
            return self._times_of_overlapping(plan, middle)
        if middle - self.rows <= self.grows_from:
            first_s, second_s = self._token_s(plan, self.rows, 2)
            return first_s, second_s - first_s
        (first_s,) = self._token_s(plan, self.rows, 1)
        before_s, after_s = self._token_s(plan, min(middle, self.model.max_positions - 1), 2)
        return first_s, after_s - before_s

    def _times_of_overlapping(self, plan: Plan, middle: int) -> tuple[float, float]:
        """The same of requests that do not go together: when the last one ends, others may be long through.
        A further token takes what it adds to a run.
        """
        most = PLAYED_TOKENS if self.method.continuous(plan) else 2
        few = min(self.new_tokens, max(2, min(most, PLAYED_PASSES // self.requests)))
        first_s, *_, last_s = self._token_s(plan, self.rows, few)
        further, each_s = self.new_tokens - few, 0.0
        if further:
            rows, some = min(middle, self.model.max_positions - few), max(2, few // 2)
            each_s = self._token_s(plan, rows, some)[-1] - self._token_s(plan, rows, some - 1)[-1]
        return first_s, (last_s - first_s + further * each_s) / (self.new_tokens - 1)

    def _token_s(self, plan: Plan, rows: int, new_tokens: int) -> list[float]:
        """When the last of the requests has each token, or the result of a model that generates none."""
        spec = self._spec(plan, rows, new_tokens)
        latest_s: dict[int, float] = {}

        def emit(item: Span | Mark) -> None:
            if type(item) is Mark and item.name in ("token_emitted", "request_finished"):
                index = item.facts.get("index", max(0, new_tokens - 1))
                latest_s[index] = max(item.time_s, latest_s.get(index, 0.0))

        world = SimulatedWorld(spec, plan, emit, batched=True, traced=False)
        world.share_prices(self._prices)
        source_rank, workload = self.cluster.source_rank, spec.workload
        source = SimulatedSource(world.devices[source_rank])
        requests = tuple(Request(index=index, tokens=(0,) * rows) for index in range(self.requests))
        world.run(
            (
                rank,
                serve(device, self.method, plan, workload, requests, source if rank == source_rank else None),
            )
            for rank, device in enumerate(world.devices)
        )
        tokens = range(max(1, new_tokens))
        more_s = accumulate(self._further_layers_s(world, token) for token in tokens)
        return [latest_s[token] + s for token, s in zip(tokens, more_s, strict=True)]

    def _further_layers_s(self, world: SimulatedWorld, token: int) -> float:
        """What the layers that are not played take of a token."""
        further = self.model.num_layers - self.played.num_layers
        return further * world.layer_s(token, 2 * self.measured - 1, self.measured) if further else 0.0

    def _spec(self, plan: Plan, rows: int, new_tokens: int) -> RunSpec:
        key = rows, new_tokens
        if key not in self._specs:
            self._specs[key] = RunSpec(
                cluster=self.cluster,
                model=self.played,
                workload=Workload(
                    prompt_tokens=rows, new_tokens=new_tokens, requests=self.requests, pattern="bursty"
                ),
                strategy=plan.strategy,
            )
        return self._specs[key]


def _of_any_host(cluster: ClusterSpec) -> ClusterSpec:
    """The cluster with devices that are timed by formulas: a plan must not depend on the host that plans."""
    if all(device.compute_model != "measured" for device in cluster.devices):
        return cluster
    devices = tuple(
        device.model_copy(update={"compute_model": "roofline"})
        if device.compute_model == "measured"
        else device
        for device in cluster.devices
    )
    return cluster.model_copy(update={"devices": devices})
