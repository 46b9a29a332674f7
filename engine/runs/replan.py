"""Make a new plan after a device has failed or joined: keep the emitted tokens, and assign the remaining
work.

Emitted tokens are kept: every unfinished request goes on with a prompt of all its tokens so far, so one
prefill builds the KV caches again, whatever the strategy. Both worlds recover through `recover`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Protocol

from engine.domain.cluster import ClusterSpec
from engine.domain.errors import EdgeLoomError, PeerFailed, PlanError, RunError
from engine.domain.plan import Plan
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark, Span
from engine.domain.workload import Request, Workload
from engine.ops.ledger import check_on_chip
from engine.strategies.registry import strategy

UNKNOWN_TOKEN = 0
"""The token id in the simulated world, which counts tokens without computing them."""


class RecoverableRun(Protocol):
    """A run of either world whose programs have been halted."""

    @property
    def plan(self) -> Plan: ...

    @property
    def cluster_now(self) -> ClusterSpec:
        """The cluster as it is now, with failed devices as terminals."""

    @property
    def trace(self) -> Sequence[Span | Mark]: ...

    @property
    def now_s(self) -> float: ...

    def adopt(self, plan: Plan, requests: tuple[Request, ...]) -> None:
        """Make `plan` the current one, for these requests. Raises `EdgeLoomError` if it cannot."""

    def record(self, mark: Mark) -> None:
        """Add a mark to the trace."""


def recover(
    spec: RunSpec, requests: tuple[Request, ...], run: RecoverableRun, event: Exception
) -> tuple[Request, ...]:
    """Give `run` a new plan over the present devices, because of `event`.

    Returns what is left to do: all programs start again with these requests under `run.plan`. Empty if every
    request was finished. Raises `PeerFailed` if there is no plan.
    """
    left = with_arrivals(spec.workload, unfinished(requests, run.trace), run.trace)
    if not left and not spec.workload.is_open:
        return ()
    try:
        plan = replan(spec, run.plan, run.cluster_now, left)
        run.adopt(plan, left)
    except EdgeLoomError as error:
        raise no_recovery(event, error) from error
    facts = {"reason": str(event), "plan": plan.model_dump(mode="json")}
    run.record(Mark(run.now_s, "replanned", facts=facts))
    return left


def no_recovery(event: Exception, error: Exception) -> PeerFailed:
    """The end of a run that cannot go on after `event`, because planning raised `error`."""
    device, time_s = (event.device, event.time_s) if isinstance(event, RunError) else ("", 0.0)
    return PeerFailed(f"{event} The others cannot go on: {error}", device, time_s)


def unfinished(requests: Iterable[Request], trace: Iterable[Span | Mark]) -> tuple[Request, ...]:
    """The requests that are not finished in `trace`, each with the tokens emitted for it."""
    emitted: dict[int, dict[int, int | None]] = defaultdict(dict)
    finished = set()
    for item in trace:
        if isinstance(item, Mark) and item.name == "token_emitted":
            emitted[item.facts["request"]][item.facts["index"]] = item.facts["token"]
        elif isinstance(item, Mark) and item.name in ("request_finished", "request_cancelled"):
            finished.add(item.facts["request"])
    left = []
    for request in requests:
        if request.index in finished:
            continue
        new = [token for _, token in sorted(emitted[request.index].items())][request.emitted :]
        tokens = tuple(UNKNOWN_TOKEN if token is None else token for token in new)
        left.append(
            request.model_copy(
                update={"tokens": request.tokens + tokens, "emitted": request.emitted + len(tokens)}
            )
        )
    return tuple(left)


def with_arrivals(
    workload: Workload, left: Sequence[Request], trace: Iterable[Span | Mark]
) -> tuple[Request, ...]:
    """The requests `left`, with the time of their arrival where they follow an answer in `trace`: whoever
    plays only what is left does not have that answer.
    """
    ended = ("request_finished", "request_cancelled")
    ended_s = {
        item.facts["request"]: item.time_s for item in trace if isinstance(item, Mark) and item.name in ended
    }
    return tuple(
        request
        if request.arrival_s is not None or workload.follows(request.index) not in ended_s
        else request.model_copy(
            update={"arrival_s": ended_s[workload.follows(request.index)] + workload.think_s}
        )
        for request in left
    )


def replan(spec: RunSpec, plan: Plan, cluster: ClusterSpec, requests: tuple[Request, ...]) -> Plan:
    """The strategy's plan for `requests` on the cluster as it is now. Raises `PlanError` if there is none."""
    chosen = strategy(spec.strategy)
    if not cluster.workers:
        raise PlanError(f"{spec.strategy}: no device is left that computes.")
    params = chosen.Params.parse(spec.params, f"parameters of {spec.strategy}")
    workload = _left(spec.workload, requests)
    rows = workload.prompt_tokens or 0
    replanned = chosen.replan(plan, cluster, spec.model, workload, params)
    replanned.validate_cover(spec.model, rows, generates=spec.workload.new_tokens > 0)
    check_on_chip(cluster, spec.model, replanned)
    return replanned.model_copy(update={"version": plan.version + 1})


def _left(workload: Workload, requests: Sequence[Request]) -> Workload:
    """What is left to do of `workload`, and of an open one what may still come."""
    if workload.is_open:
        longest = max([workload.prompt_tokens or 0, *(len(request.tokens) for request in requests)])
        return workload.model_copy(update={"prompt_tokens": longest})
    new_tokens = max(workload.new_tokens - request.emitted for request in requests)
    return workload.model_copy(
        update={
            "prompt": None,
            "prompt_tokens": max(len(request.tokens) for request in requests),
            "requests": len(requests),
            "new_tokens": new_tokens if workload.new_tokens else 0,
        }
    )
