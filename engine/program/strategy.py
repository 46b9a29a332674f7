"""The contract of a strategy: its parameters, its plan with a typed layout, and its program per device.

A new strategy is one file with a `Strategy`, and one line in `engine/strategies/registry.py` if it comes with
EdgeLoom.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Generic, Literal, Self, get_args

from pydantic import Field, ValidationInfo, field_validator
from typing_extensions import TypeVar

from engine.domain.by_hand import PlanByHand, Unit
from engine.domain.cluster import ClusterSpec
from engine.domain.errors import PlanError
from engine.domain.method_report import MethodReport, PlanAt
from engine.domain.model import ModelSpec
from engine.domain.plan import Layout, Plan
from engine.domain.sampling import Sampling, TokenDraw
from engine.domain.trace import Mark, Span
from engine.domain.values import Value
from engine.domain.workload import Workload
from engine.ops.layout import OVER_HEADS
from engine.ops.ragged import Piece, Ragged
from engine.ops.tensors import Tensor
from engine.program.ctx import Ctx
from engine.schedulers.scheduler import Scheduler


class Params(Value):
    """Base of every strategy's parameters: forms, command-line options and docs derive from it."""

    @field_validator("*", mode="before")
    @classmethod
    def _true_is_no_number(cls, given: Any, info: ValidationInfo) -> Any:
        """Refuse true and false, which Python takes for 1 and 0, where a number is expected."""
        kind = cls.model_fields[str(info.field_name)].annotation
        takes_numbers = {int, float} & {kind, *get_args(kind)} and bool not in {kind, *get_args(kind)}
        return str(given).lower() if isinstance(given, bool) and takes_numbers else given

    def without_plan(self) -> Self:
        """The parameters without a plan made by hand, which holds for the devices it names only."""
        return self


class DivisibleParams(Params):
    """Base of the parameters of a strategy that also runs plans made by hand.

    Such a plan divides `units`; `settings` are the further fields of `PlanByHand` and `DeviceShare` that the
    strategy reads.
    """

    units: ClassVar[tuple[Unit, ...]]
    settings: ClassVar[tuple[str, ...]] = ()
    plan: PlanByHand | None = Field(
        default=None, description="A plan made by hand, in place of the strategy's own; empty: none."
    )

    @field_validator("plan")
    @classmethod
    def _divides_its_units(cls, plan: PlanByHand | None) -> PlanByHand | None:
        """Check that a plan made by hand has only units and fields that this strategy reads; raises
        `ValueError`.
        """
        if plan is None:
            return None
        known = {"device", "devices", *cls.units, *cls.settings}
        values: tuple[Value, ...] = (plan, *plan.devices)
        said = [key for value in values for key in value.model_dump(exclude_defaults=True)]
        for key in said:
            if key not in known:
                takes = " and ".join(name for name in (*cls.units, *cls.settings))
                raise ValueError(f"has {key}, and a plan made by hand for this strategy has {takes}")
        return plan

    def without_plan(self) -> Self:
        return self.model_copy(update={"plan": None})


class SequenceRows(Value):
    """The rows of one request in a ragged step: `rows` new ones after `start` in its KV cache `cache`.

    With the last of its tokens so far (`answers`) comes its token number `index`, chosen as `sampling` says.
    """

    request: int
    cache: str
    start: int
    rows: int
    index: int
    answers: bool
    sampling: Sampling | None = None


class Step(Value):
    """One forward pass of a batch: the same value on every device. In the `phase` prefill the rows are those
    of the prompt, in decode the newest token of each sequence.

    `cache` names the KV cache ("" for none), `start` is the number of rows already in it,
    `rows` the number T of new rows, `batch` the number B of sequences, `index` the token's number
    (0: prefill).

    A ragged step has rows of several sequences one after the other in a tensor of batch 1, or a part of a
    prompt: `sequences` says whose, and `cache`, `start` and `index` mean the first one's.

    `samplings` says of each of `requests` how its tokens are drawn at random; none: not at random.

    An `uncached` step gives a token and keeps no KV cache: its rows are the prompt and all tokens so far, in
    the phase prefill for every token.
    """

    phase: Literal["prefill", "decode"]
    cache: str
    batch: int
    start: int
    rows: int
    index: int
    requests: tuple[int, ...]
    sequences: tuple[SequenceRows, ...] = ()
    samplings: tuple[Sampling | None, ...] = ()
    uncached: bool = False

    @property
    def generates(self) -> bool:
        """Whether the result is of the last row, from which a token is chosen; else it is of all rows."""
        return bool(self.cache) or self.uncached

    @property
    def ragged(self) -> Ragged | None:
        """The KV caches of a step with rows of several sequences; None: `cache` is the only one."""
        if len(self.sequences) < 2:
            return None
        return Ragged(tuple(Piece(one.cache, one.start, one.rows) for one in self.sequences))

    @property
    def answered(self) -> tuple[tuple[int, int], ...]:
        """The requests that get a token, each with its number, in the order of the rows of the result."""
        if not self.sequences:
            return tuple((request, self.index) for request in self.requests)
        return tuple((one.request, one.index) for one in self.sequences if one.answers)

    @property
    def draws(self) -> tuple[TokenDraw, ...]:
        """How the token of each row of the result is chosen; none where all are the most likely ones."""
        if not self.samplings:
            return ()
        known = dict(zip(self.requests, self.samplings, strict=True))
        return tuple(TokenDraw(known[request], index) for request, index in self.answered)

    @property
    def each(self) -> tuple[Step, ...]:
        """The steps of the sequences of a ragged one; else only this one."""
        return tuple(step_of_rows([one]) for one in self.sequences) or (self,)


def step_of_rows(sequences: Sequence[SequenceRows]) -> Step:
    """The step of these rows: a plain one, if they are of one sequence and give its next token."""
    first = sequences[0]
    samplings = tuple(one.sampling for one in sequences)
    return Step(
        phase="decode" if all(one.start and one.rows == 1 for one in sequences) else "prefill",
        cache=first.cache,
        batch=1,
        start=first.start,
        rows=sum(one.rows for one in sequences),
        index=first.index,
        requests=tuple(one.request for one in sequences),
        samplings=samplings if any(samplings) else (),
        sequences=() if len(sequences) == 1 and first.answers else tuple(sequences),
    )


Done = Callable[[Step, Tensor], None]
"""Called at the source with every result, `done(step, result)`: logits [B, V] of the last row, ids [B] where
the program chooses tokens, or hidden states [B, T, D] of an encoder.
"""


ParamsT = TypeVar("ParamsT", bound=Params, default=Any)
"""The type of a method's parameters, for bases that leave it open."""
LayoutT = TypeVar("LayoutT", bound=Layout, default=Any)


class Strategy(ABC, Generic[ParamsT, LayoutT]):
    """A method: its names, `Params`, `Layout`, plan and program. SPMD: every device runs `forward` with the
    same plan and step.

    The device `cluster.source` gives `tokens` (token ids [B, T]; None elsewhere) and gets back the
    logits [B, V] of the last row (or the ids [B] of the next tokens, if they are chosen elsewhere), or for
    an encoder the hidden states [B, T, D]. Others return None.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    paper: ClassVar[str] = ""
    summary: ClassVar[str]
    is_baseline: ClassVar[bool] = True
    """Whether papers compare their methods with it; False for the methods of the papers reproduced here."""
    lossless: ClassVar[bool] = True
    """Whether every run gives the model's own numbers; `is_lossy` says it of one plan."""
    rule: ClassVar[str] = ""
    """By which it plans, in one sentence, where another order of the devices, or better ones, can be slower.
    Of a method with the parameter `planner` it is the rule of planner=paper.
    """
    splits_heads: ClassVar[bool] = False
    """Whether several devices share the attention heads of a layer."""
    drafts: ClassVar[bool] = False
    """Whether it drafts tokens, so that they come several at once. Unless its `supports` says otherwise, it
    needs a second model for that, the draft of the run's own (`ModelSpec.draft`).
    """
    needs_cache: ClassVar[str] = ""
    """Why no run of it goes without KV caches (`Workload.kv_cache`), in one sentence; empty: runs do."""
    computes_int8: ClassVar[bool] = False
    """Whether it cuts inputs of products only between groups that share a scale
    (`ModelSpec.activation_bits`), so that any cut gives one device's numbers.
    """
    scheduler: ClassVar[Scheduler | None] = None
    """What admits requests where the workload leaves that to the method (`Workload.scheduler` own or auto);
    None: it has no scheduler of its own.
    """
    batches_bursts: ClassVar[bool] = True
    """Whether a burst runs as one batch (tensor parallel) or as micro-batches of one request (pipelines)."""

    Params: type[ParamsT]
    Layout: type[LayoutT]
    Report: ClassVar[type[MethodReport] | None] = None
    """The type of what `summarise` returns."""

    def __init__(self, **params: Any) -> None:
        """`params` are those of runs that somebody starts with this object; `plan` gets those of its run."""
        self.given = params

    def supports(self, cluster: ClusterSpec, model: ModelSpec) -> str | None:
        """The reason in one sentence why this strategy cannot run this model or cluster; None if it can."""
        if self.splits_heads and model.qk_norm_over_heads and len(cluster.workers) > 1:
            return f"of {model.name} {OVER_HEADS}: choose a pipeline, or a method that divides positions."
        if self.drafts and model.draft is None:
            return "it drafts tokens with a second model: choose a draft model (--draft-model)."
        return None

    @abstractmethod
    def plan(
        self, cluster: ClusterSpec, model: ModelSpec, workload: Workload, params: ParamsT
    ) -> Plan[LayoutT]:
        """Decide who holds and computes what. Pure; `workload` has its prompt counted in tokens.

        Raises `PlanError` naming the binding constraint when no plan exists.
        """

    def partners(self, cluster: ClusterSpec, plan: Plan[LayoutT]) -> frozenset[tuple[int, int]]:
        """Pairs (sender, receiver) of ranks that may send, besides those that the prediction shows.

        Only a strategy whose messages depend on data or on failures overrides this.
        """
        return frozenset()

    def replan(
        self, plan: Plan[LayoutT], cluster: ClusterSpec, model: ModelSpec, workload: Workload, params: ParamsT
    ) -> Plan[LayoutT]:
        """The plan after a device's failure that no program caught. Pure. `cluster` is the present one, with
        failed devices as terminals; `workload` counts what is still to do, the tokens emitted so far being
        part of the prompt. Raises `PlanError` when the remaining devices cannot do it.
        """
        reason = self.supports(cluster, model)
        if reason:
            raise PlanError(f"{self.name}: {reason}")
        return self.plan(cluster, model, workload, params.without_plan())

    def by_hand(self, cluster: ClusterSpec, model: ModelSpec, plan: Plan[LayoutT]) -> PlanByHand:
        """`plan` as a person could have written it: as the parameter `plan` it gives the same run.

        Raises `PlanError` if this strategy takes no plans made by hand.
        """
        raise PlanError(f"{self.name}: it takes no plans made by hand: choose another strategy.")

    def hand_steps(self, model: ModelSpec, params: ParamsT) -> Mapping[Unit, int]:
        """Unit → the steps in which it is divided, where not one by one: heads in whole KV groups, say."""
        return {}

    def lossless_params(self) -> dict[str, Any]:
        """Parameters with which a run gives the model's own numbers, given the memory for it."""
        return {}

    def is_lossy(self, plan: Plan[LayoutT]) -> bool:
        """Whether a run of `plan` may give other results than the model. Its report then measures by how much
        they differ, instead of calling the run wrong.
        """
        return not self.lossless

    def continuous(self, plan: Plan[LayoutT]) -> bool:
        """Whether a request of a burst starts its next token before the others have theirs.

        Then `forward_all` gets the steps of all tokens at once instead of one token's at a time.
        """
        return False

    def answers_at_once(self, plan: Plan[LayoutT]) -> bool:
        """Whether `forward_all` keeps nothing of a request for another call, so that it gets all tokens of
        one at once, also where somebody may cancel it meanwhile (serve).
        """
        return False

    def together(self, plan: Plan[LayoutT]) -> int | None:
        """How many requests of a burst form one batch of `plan`; None: all."""
        return None if self.batches_bursts else 1

    def why_not_ragged(self, plan: Plan[LayoutT]) -> str | None:
        """Why a device's program cannot take steps with rows of several sequences at positions of their own
        (`Step.sequences`), in one sentence; None if it can. Continuous batching needs them.
        """
        return f"{self.name} does not say that its program takes sequences at positions of their own."

    def why_not_apart(self, plan: Plan[LayoutT]) -> str | None:
        """Why a step over prompts and a step over one token each of other requests cannot be under way at the
        same time, on devices of their own, in one sentence; None if they can. The latter have rows of several
        sequences (`Step.sequences`). When `forward_all` of a prompt has returned on all devices, those that
        compute tokens have its KV cache, and no other device needs it.
        """
        return f"{self.name} computes prompts and tokens on the same devices."

    def summarise(
        self,
        cluster: ClusterSpec,
        model: ModelSpec,
        plans: Sequence[PlanAt],
        trace: Sequence[Span | Mark],
    ) -> MethodReport | None:
        """What the method did in a run, in its own terms; None if the plan and the report say it all. Pure.

        `plans` are the run's plans in order: the first, then every new one. `trace` is that of the simulated
        or the real world; of a run that failed it ends early.
        """
        return None

    async def between_waves(self, ctx: Ctx, plan: Plan[LayoutT]) -> None:
        """Runs on every device when it has done its part of all requests so far and others will come: for
        work that nobody waits for.
        """
        return None

    @abstractmethod
    async def forward(
        self, ctx: Ctx, plan: Plan[LayoutT], step: Step, tokens: Tensor | None
    ) -> Tensor | None:
        """One step on this device, from `tokens` (ids [B, T] at the source, None elsewhere); the result at
        the source, None elsewhere.
        """

    async def forward_all(
        self,
        ctx: Ctx,
        plan: Plan[LayoutT],
        steps: Sequence[Step],
        tokens: Sequence[Tensor | None],
        done: Done,
    ) -> None:
        """Forward passes, in order; returns when all are through on this device.

        One after the other unless a strategy overlaps them. `done` is called at the source. Steps of one
        request follow from each other: tokens[i] is there once the step before it was handed to `done`, and
        None until then.
        """
        for step, ids in zip(steps, tokens, strict=True):
            ctx.at(step.requests[0], step.index)
            result = await self.forward(ctx, plan, step, ids)
            if result is not None:
                done(step, result)


class Overlapping(Strategy[ParamsT, LayoutT]):
    """A strategy whose steps overlap: its own code is `forward_all`, and one step is a list of one."""

    async def forward(
        self, ctx: Ctx, plan: Plan[LayoutT], step: Step, tokens: Tensor | None
    ) -> Tensor | None:
        results: list[Tensor] = []
        await self.forward_all(ctx, plan, [step], [tokens], lambda _, result: results.append(result))
        return results[0] if results else None

    @abstractmethod
    async def forward_all(
        self,
        ctx: Ctx,
        plan: Plan[LayoutT],
        steps: Sequence[Step],
        tokens: Sequence[Tensor | None],
        done: Done,
    ) -> None: ...
