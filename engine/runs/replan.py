"""What comes after a loss: which tokens are kept, what is left to do, and the plan for it. Pure.

Tokens that the source has emitted are kept: every unfinished request goes on as a prompt of all it has,
so KV caches are rebuilt by one prefill, whatever the strategy.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from engine.domain.cluster import ClusterSpec
from engine.domain.errors import PlanError
from engine.domain.plan import Plan
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark, Span
from engine.domain.workload import Request
from engine.strategies.registry import strategy

UNKNOWN_TOKEN = 0
"""Stands for a token of the simulated world, which knows how many there are and not which."""


def unfinished(requests: Iterable[Request], trace: Iterable[Span | Mark]) -> tuple[Request, ...]:
    """The requests that `trace` has not seen finished, each with the tokens that it has seen emitted."""
    emitted: dict[int, dict[int, int | None]] = defaultdict(dict)
    finished = set()
    for item in trace:
        if isinstance(item, Mark) and item.name == "token_emitted":
            emitted[item.facts["request"]][item.facts["index"]] = item.facts["token"]
        elif isinstance(item, Mark) and item.name == "request_finished":
            finished.add(item.facts["request"])
    left = []
    for request in requests:
        if request.index in finished:
            continue
        new = [token for _, token in sorted(emitted[request.index].items())][request.emitted :]
        tokens = tuple(UNKNOWN_TOKEN if token is None else token for token in new)
        left.append(
            Request(
                index=request.index, tokens=request.tokens + tokens, emitted=request.emitted + len(tokens)
            )
        )
    return tuple(left)


def replan(spec: RunSpec, plan: Plan, cluster: ClusterSpec, requests: tuple[Request, ...]) -> Plan:
    """The strategy's plan for `requests` on the cluster as it is now. Raises `PlanError` if there is none."""
    chosen = strategy(spec.strategy)
    if not cluster.workers:
        raise PlanError(f"{spec.strategy}: no device is left that computes.")
    params = chosen.Params.parse(spec.params, f"parameters of {spec.strategy}")
    rows = max(len(request.tokens) for request in requests)
    new_tokens = max(spec.workload.new_tokens - request.emitted for request in requests)
    workload = spec.workload.model_copy(
        update={
            "prompt": None,
            "prompt_tokens": rows,
            "requests": len(requests),
            "new_tokens": new_tokens if spec.workload.new_tokens else 0,
        }
    )
    replanned = chosen.replan(plan, cluster, spec.model, workload, params)
    replanned.validate_cover(spec.model, rows, generates=spec.workload.new_tokens > 0)
    return replanned.model_copy(update={"version": plan.version + 1})
