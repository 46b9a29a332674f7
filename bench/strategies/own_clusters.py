"""Predicts every paper's method with its defaults on its paper's clusters, beside its paper's baselines, one
device, and all others.

A factor below 1 says that the method, as it runs when nobody asks for anything, does not do there what its
paper shows: then the cluster's description says what that would need. What the paper publishes is beside it.
Where another method is as fast or faster that the paper does not compare with, the table says why.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

from bench.strategies.wins import Home, best_of, described, predictions, spec_of
from bench.tables.rows import Table
from engine.domain.units import human_s
from engine.domain.workload import Workload
from engine.runs.predict import predict

ANSWER = Workload(prompt_tokens=128, new_tokens=32)
BURST_OF_FOUR = ANSWER.model_copy(update={"requests": 4, "pattern": "bursty"})
OUTGROWN = Workload(prompt_tokens=128, new_tokens=320, assumed_tokens=160)
"""Answers that outgrow what plans are made for, and with it the memory for KV caches (LIME, section V-A)."""
OUTGROWN_BURST = OUTGROWN.model_copy(update={"requests": 2, "pattern": "bursty"})
CHIP_ANSWER = Workload(prompt_tokens=16, new_tokens=8)
PASS = Workload(prompt_tokens=256, new_tokens=1)
PICTURE = Workload(prompt_tokens=32, new_tokens=64)
UNDER_PRESSURE = {"kv_pressure": "recompute"}
"""What LIME's baselines do once KV caches exhaust the memory (section V-A), of those that offer it."""


class Own(NamedTuple):
    """A run of a paper's own testbed, what the paper has there, and the baselines that it compares with.
    `alone` is the cluster of one device on which the paper runs the same method, if it does. `why` another
    method is as fast or faster, if one is.
    """

    home: Home
    published: str
    rivals: tuple[str, ...]
    alone: str = ""
    why: str = ""

    def but(self, why: str) -> Own:
        return self._replace(why=why)

    def beside(self, alone: str) -> Own:
        return self._replace(alone=alone)

    @property
    def alone_s(self) -> float | None:
        """The time on one device: of the method on the cluster `alone`, else None."""
        if not self.alone:
            return None
        return predict(spec_of(self.home._replace(cluster=self.alone), self.home.strategy, {})).latency_s


def _of(strategy: str, cluster: str, model: str, workload: Workload, published: str, *rivals: str) -> Own:
    return Own(Home(strategy, cluster, model, workload, ""), published, rivals)


OF_LIME = ("tpi_llm", "tpi_llm_offload", "galaxy", "pipeline_offload", "gpipe", "edgeshard")


ONE_FITS = (
    "the model fits on one device, which the method then leaves all layers; what devices could share, "
    "attention without weights, is 2 % of a layer"
)
OF_EDGEFORMER = ("accelerate", "deepspeed", "galaxy")

OWN: tuple[Own, ...] = (
    _of(
        "voltage",
        "voltage-6",
        "bert-large",
        Workload(prompt_tokens=200, new_tokens=0),
        "1.39 times one machine (figure 4)",
        "single",
        "megatron",
    ),
    *(
        _of(
            "edgeformer",
            f"papers/{cluster}",
            "opt-1.3b",
            PASS,
            "2.01 times Accelerate (abstract)",
            *OF_EDGEFORMER,
        ).but(ONE_FITS)
        for cluster in ("edgeformer-3", "edgeformer-20-20-13", "edgeformer-20-13-13", "edgeformer-20-13-7")
    ),
    _of(
        "edgeformer",
        "papers/edgeformer-8",
        "opt-1.3b",
        PASS,
        "2.93 to 3.05 times one device (figure 11)",
        "single",
    ).but(ONE_FITS),
    _of(
        "lime", "papers/lime-e1-least", "llama-2-13b", OUTGROWN, "1.4 times the best (section V-B)", *OF_LIME
    ),
    _of(
        "lime",
        "papers/lime-e1-least",
        "llama-2-13b",
        OUTGROWN_BURST,
        "1.9 times the best (section V-B)",
        *OF_LIME,
    ),
    _of("lime", "papers/lime-e3", "llama-3.3-70b", ANSWER, "1.7 times the best (abstract)", *OF_LIME).but(
        "all memory is there, so LIME is a pipeline, in which one device after the other reads its weights; "
        "tensor parallelism reads them on all at once"
    ),
    _of("lime", "papers/lime-e3", "llama-3.3-70b", BURST_OF_FOUR, "3.7 times the best (abstract)", *OF_LIME),
    *(
        _of(
            "lime",
            f"papers/lime-setting-{number}",
            "llama-3.3-70b",
            ANSWER,
            "others end (section V-C)",
            *OF_LIME,
        )
        for number in (1, 2, 3)
    ),
    _of(
        "adaptlink",
        "papers/adaptlink-5",
        "llava-13b",
        PICTURE,
        "1.20 times layers by Accelerate (table 1)",
        "accelerate",
    ).but(
        "whole layers stay on the primary device as long as they fit, as printed; tensor parallelism, with "
        "which the paper does not compare, divides every layer among all GPUs, for which 10 Gbit/s are enough"
    ),
    _of(
        "mcu",
        "mcu-8",
        "mcu-tinyllama",
        Workload(prompt_tokens=16, new_tokens=1),
        "9.9 times one chip per block (section V-B)",
    ).beside("mcu-1"),
    _of(
        "mcu",
        "mcu-8",
        "mcu-tinyllama",
        CHIP_ANSWER,
        "26.1 times one chip per block of a token alone, without the prompt (section V-B)",
    )
    .beside("mcu-1")
    .but(
        "a chip fetches every block anew, as printed; TPI-LLM with offloading keeps on chip what else fits, "
        "three of sixteen blocks"
    ),
)


def predicted(own: Own) -> dict[str, float]:
    """Seconds by method, its own with defaults; without a KV cache's room all others recompute."""
    return predictions(own.home, UNDER_PRESSURE)


def measure_own_clusters() -> Table:
    """Every paper's method on its own clusters, predicted with defaults; no run is real."""
    rows = []
    for own in OWN:
        home = own.home
        sys.stderr.write(f"  {home.strategy} on {home.cluster}\n")
        others = predicted(own)
        own_s = others.pop(home.strategy, None)
        rivals = {name: others[name] for name in own.rivals if name in others}
        single_s = own.alone_s or others.get("single")
        names, other_s = best_of(others) if others else ([], None)
        rows.append(
            (
                home.strategy,
                described(spec_of(home, home.strategy, home.params)),
                own.published,
                _time(own_s),
                _factor(min(rivals.values(), default=None), own_s),
                _factor(single_s, own_s),
                ", ".join(names) or "none",
                _factor(other_s, own_s),
                own.why,
            )
        )
    title = (
        "The time of all requests, predicted with default parameters; other methods that can compute tokens "
        "again whose KV caches do not fit do so. A factor is the other's time over the method's: above 1 the "
        "method is faster. “–”: it has no plan there, or does not finish."
    )
    columns = (
        "method",
        "where",
        "published",
        "time",
        "best of the paper's",
        "one device",
        "best of all others",
        "factor",
        "why another is as fast",
    )
    return Table(title, columns, tuple(rows))


def _time(time_s: float | None) -> str:
    return "–" if time_s is None else human_s(time_s)


def _factor(other_s: float | None, own_s: float | None) -> str:
    return "–" if other_s is None or own_s is None else f"{other_s / own_s:.2f}x"
