"""When the requests of a workload arrive, as far as that is known before the run."""

from __future__ import annotations

from itertools import accumulate
from random import Random

from engine.domain.workload import Workload


def arrivals_s(workload: Workload, seed: int) -> tuple[float | None, ...]:
    """The virtual times of all requests, in order; None for one that follows the answer to another.

    poisson: the gaps are drawn from the exponential distribution of mean 1 / `rate_per_s`, the first gap
    begins at time 0. The seed decides them, and nothing else of the run does.
    serve: those of the recorded requests; before the run, of as many as are served together, all at time 0.
    """
    count = workload.requests
    match workload.pattern:
        case "serve" if not workload.trace:
            return (0.0,) * workload.together
        case "trace" | "serve":
            return tuple(row.at_s for row in workload.trace)
        case "poisson":
            assert workload.rate_per_s is not None
            random, rate = Random(f"{seed}/arrivals"), workload.rate_per_s
            return tuple(accumulate(random.expovariate(rate) for _ in range(count)))
        case "users":
            assert workload.users is not None
            return tuple(0.0 if index < workload.users else None for index in range(count))
        case "bursty":
            return (0.0,) * count
    return (0.0,) + (None,) * (count - 1)
