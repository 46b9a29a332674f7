"""`check_strategy`: the contract that every method keeps, EdgeLoom's own too, as one function for a method's
tests.

It needs the extra `torch`: numbers are compared with those of `transformers`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import edgeloom.own_packages  # noqa: F401
from engine.domain.cluster import ClusterSpec
from engine.domain.errors import EdgeLoomError, PlanError, SpecError
from engine.domain.extras import naming_extras
from engine.domain.scenario import DropDevice, Scenario
from engine.domain.spec import RunSpec
from engine.domain.workload import Workload
from engine.models.catalogue import resolve
from engine.program.iterations import chosen_scheduler
from engine.program.strategy import Strategy
from engine.runs.predict import prepare, simulate
from engine.strategies.outside import errors_of
from engine.strategies.registry import add, drafted, origin_of, plan_from_json

__all__ = ["BrokenContract", "check_strategy"]

MODELS = ("tiny-gpt2", "tiny-llama", "tiny-bert")
"""A decoder, one whose heads share keys and values, an encoder."""


def _star(rates: tuple[float, ...], terminal: bool = False, memory_bytes: float = 4e8) -> ClusterSpec:
    common = {"memory_bytes": memory_bytes, "memory_byte_per_s": 4e9}
    devices = [{"name": f"d{i}", "flop_per_s": rate, **common} for i, rate in enumerate(rates)]
    if terminal:
        devices.append({"name": "term", "role": "terminal", "flop_per_s": 1e10, **common})
    described = {
        "name": f"star-of-{len(rates)}",
        "source": "term" if terminal else "d0",
        "devices": devices,
        "switches": [{"name": "s1"}],
        "links": [{"a": device["name"], "b": "s1", "bit_per_s": 1e8} for device in devices],
    }
    found: ClusterSpec = ClusterSpec.parse(described, "cluster")
    return found


CLUSTERS = (
    _star((1e10, 1e10, 1e10), terminal=True),
    _star((4e10, 1e10, 2.5e10, 3e9)),
    _star((1e10,) * 6),
    _star((1e10,)),
)
"""A source that only asks; unlike devices; more devices than heads or layers; one device."""

WORKLOADS: tuple[dict[str, Any], ...] = ({"requests": 1}, {"requests": 3, "pattern": "bursty"})


class BrokenContract(AssertionError):
    """What a method promises and does not keep: one line for each."""


class _Case(NamedTuple):
    spec: RunSpec
    tensors: bool

    def __str__(self) -> str:
        work = self.spec.workload
        return f"{self.spec.model.name} on {self.spec.cluster.name}, {work.requests} {work.pattern}"


@naming_extras()
def check_strategy(method: Strategy | type[Strategy], params: Mapping[str, Any] | None = None) -> None:
    """Check the contract of `method`, with `params` (or lossless ones). Raises `BrokenContract` unless

    - it has a name, a title and a summary, and plans where `supports` has no reason against it,
    - a plan is the same when it is made again, and after a journey as JSON; it covers all work once, and what
      does not fit into memory is refused in one sentence with need and have,
    - every run finishes in the simulated world, and on real tensors with the numbers of `transformers`, also
      where requests join while others are answered if it says that they may (`why_not_ragged`,
      `why_not_apart`),
    - a run in which a device is lost finishes, with another plan if it must.
    """
    try:
        chosen = add(method() if isinstance(method, type) else method)
    except SpecError as error:
        raise BrokenContract(str(error)) from error
    given = chosen.lossless_params() if params is None else dict(params)
    broken = [complaint for check in CHECKS for complaint in check(chosen, given)]
    if broken:
        raise BrokenContract("\n".join(broken))


def _cases(method: Strategy, params: Mapping[str, Any]) -> Iterator[_Case]:
    for number, name in enumerate(MODELS):
        for place, cluster in enumerate(CLUSTERS):
            for workload in WORKLOADS:
                bursts = workload["requests"] > 1
                yield _Case(_spec(method, params, name, cluster, **workload), bursts and place == number)


def _spec(
    method: Strategy, params: Mapping[str, Any], name: str, cluster: ClusterSpec, **workload: Any
) -> RunSpec:
    model, weights = resolve(name, "random")
    return RunSpec(
        cluster=cluster,
        model=drafted(method, model),
        weights=weights,
        strategy=method.name,
        method=origin_of(method.name),
        params=dict(params),
        workload=Workload(prompt_tokens=11, new_tokens=4 if model.causal else 0, **workload),
        seed=7,
    )


def _planned_and_run(method: Strategy, params: Mapping[str, Any]) -> Iterator[str]:
    planned = 0
    for case in _cases(method, params):
        try:
            with errors_of(method, "`supports` raised"):
                reason = method.supports(case.spec.cluster, case.spec.model)
            if reason is not None:
                yield from _unless_a_sentence(f"{case}: the reason of `supports`", reason)
                continue
            planned += 1
            yield from _run(case)
        except EdgeLoomError as error:
            yield f"{case}: {error}"
    if not planned:
        yield f"{method.name}: `supports` has a reason against every model and cluster that was tried"


def _run(case: _Case) -> Iterator[str]:
    prepared = prepare(case.spec)
    if prepare(case.spec).plan != prepared.plan:
        yield f"{case}: `plan` makes another plan when it is asked again: only its arguments may count"
    if plan_from_json(prepared.plan.model_dump(mode="json")) != prepared.plan:
        yield f"{case}: the plan is another one after a journey as JSON"
    _, outcome = simulate(prepared)
    if outcome.kind != "finished":
        yield f"{case}: the simulated run {outcome.in_words}: {outcome.sentence}"
    elif case.tensors:
        yield from _numbers(case)


def _numbers(case: _Case) -> Iterator[str]:
    from engine.runs.calculate import calculate  # loads torch

    report = calculate(case.spec)
    if report.outcome.kind != "finished":
        yield f"{case}: on real tensors the run {report.outcome.in_words}: {report.outcome.sentence}"
    elif report.correctness.ok is False:
        yield f"{case}: its numbers are not those of transformers: {report.correctness.why}"


def _takes_in_others(method: Strategy, params: Mapping[str, Any]) -> Iterator[str]:
    """Requests join while others are answered, if the method says that its program can."""
    arriving = {"requests": 3, "pattern": "poisson", "rate_per_s": 1e4, "max_batch": 3, "scheduler": "auto"}
    for name in MODELS[:2]:
        case = _Case(_spec(method, params, name, CLUSTERS[1], **arriving), tensors=True)
        if method.supports(case.spec.cluster, case.spec.model) is not None:
            continue
        try:
            plan = prepare(case.spec).plan
            scheduler, _ = chosen_scheduler(method, plan, case.spec.workload)
            if scheduler != "fcfs":
                yield from (f"scheduler {scheduler}, {found}" for found in _run(case))
        except EdgeLoomError as error:
            yield f"{case}: {error}"


def _refused_without_memory(method: Strategy, params: Mapping[str, Any]) -> Iterator[str]:
    """Nothing fits into a thousand bytes."""
    cluster = _star((4e10, 1e10, 2.5e10, 3e9), memory_bytes=1000.0)
    for name in MODELS:
        case = _Case(_spec(method, params, name, cluster), tensors=False)
        if method.supports(cluster, case.spec.model) is not None:
            continue
        try:
            prepare(case.spec)
            yield f"{case}, 1000 bytes of memory each: it plans, expected a PlanError with need and have"
        except PlanError as error:
            yield from _unless_a_sentence(f"{case}: the refusal", str(error))
            if not re.search(r"needs? .* has .*B", str(error)):
                yield f"{case}: the refusal says not what each device needs and has: {error}"


def _goes_on_without_a_device(method: Strategy, params: Mapping[str, Any]) -> Iterator[str]:
    cluster = CLUSTERS[0]
    for name in MODELS[:2]:
        spec = _spec(method, params, name, cluster)
        try:
            if method.supports(cluster, spec.model) or method.supports(cluster.without([1]), spec.model):
                continue
            undisturbed, _ = simulate(prepare(spec))
            middle_s = max(item.time_s if hasattr(item, "time_s") else item.end_s for item in undisturbed) / 2
            lost = Scenario(changes=(DropDevice(at_s=middle_s, device="d1"),))
            _, outcome = simulate(prepare(spec.model_copy(update={"scenario": lost})))
        except EdgeLoomError as error:
            yield f"{name}, d1 is lost: {error}"
            continue
        if outcome.kind != "finished":
            yield f"{name}, d1 is lost in the middle: the run {outcome.in_words}: {outcome.sentence}"


def _unless_a_sentence(what: str, text: Any) -> Iterator[str]:
    if (
        not isinstance(text, str)
        or "\n" in text
        or not text.endswith(".")
        or re.search(r"[.!?] +[A-Z]", text)
    ):
        yield f"{what} is no single sentence, which ends with a full stop and has no other: {text!r}"


CHECKS: tuple[Callable[[Strategy, Mapping[str, Any]], Iterator[str]], ...] = (
    _planned_and_run,
    _takes_in_others,
    _refused_without_memory,
    _goes_on_without_a_device,
)
