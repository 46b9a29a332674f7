"""Rows of the experiment on Voltage's figure 4 with chosen times."""

from __future__ import annotations

from engine.domain.experiment import Experiment
from engine.domain.presented import Published
from engine.experiments.results.rows import Row
from engine.reproductions.shipped import experiment


def voltage(total_s: dict[tuple[str, int], float], model: str = "BERT-Large") -> list[Row]:
    return [
        Row(
            coordinates={"model": model, "strategy": strategy, "machines": machines},
            seed=0,
            world="predicted",
            digest=f"{strategy}{machines}",
            outcome="finished",
            metrics={"latency_s": seconds, "compute_s": 0.1},
            code_version="1",
        )
        for (strategy, machines), seconds in total_s.items()
    ]


TIMES = {("single", 1): 1.0, ("voltage", 6): 0.75, ("megatron", 2): 1.5, ("megatron", 6): 0.9}
ROWS = voltage(TIMES)


def only_bert() -> Experiment:
    one = experiment("voltage-fig4")
    first: Published = one.published[0]
    return one.model_copy(update={"published": (first,), "claims": ()})
