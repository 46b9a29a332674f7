"""Published runs, predicted: the same model, format and lengths on a device, beside what was published."""

from __future__ import annotations

from typing import NamedTuple

from engine.domain.cluster import ClusterSpec, DeviceSpec
from engine.domain.spec import RunSpec
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.runs.predict import predict
from topologies.published import PublishedRate

DECODE_FROM = 64
"""Rows in the KV cache while decoding is compared: the middle of the 128 tokens that benchmarks generate."""
PROMPT = 512
"""Tokens of a prompt whose length is not published."""


class Compared(NamedTuple):
    """One published rate and its prediction."""

    row: PublishedRate
    what: str
    published: float
    predicted: float

    @property
    def ratio(self) -> float:
        return self.predicted / self.published


def compared(device: DeviceSpec, row: PublishedRate) -> list[Compared]:
    found = []
    if row.decode_tokens_per_s:
        report = predict(published_run(one_board(device), row, "single", DECODE_FROM, 3))
        found.append(Compared(row, "decoding", row.decode_tokens_per_s, 1 / report.tpot_s))
    if row.prompt_tokens_per_s:
        tokens = row.prompt_tokens or PROMPT
        report = predict(published_run(one_board(device), row, "single", tokens, 1))
        found.append(Compared(row, "prompt", row.prompt_tokens_per_s, tokens / report.ttft_s))
    return found


def one_board(device: DeviceSpec) -> ClusterSpec:
    return ClusterSpec(name="one", source=device.name, devices=(device,))


def published_run(
    cluster: ClusterSpec, row: PublishedRate, strategy: str, prompt_tokens: int, new_tokens: int
) -> RunSpec:
    """The published run on these boards, which have memory enough: it did run."""
    model, _ = catalogue.resolve(row.shape, "random")
    weight_bits = row.weight_bits if row.weight_bits < 16 else 0.0
    boards = tuple(device.model_copy(update={"memory_bytes": 1e12}) for device in cluster.devices)
    return RunSpec(
        cluster=cluster.model_copy(update={"devices": boards}),
        model=model.model_copy(update={"dtype": "bfloat16", "weight_bits": weight_bits}),
        strategy=strategy,
        workload=Workload(prompt_tokens=prompt_tokens, new_tokens=new_tokens),
    )
