"""Several boards: predicted and published time per token of equal boards on one switch, nothing fitted.

The boards are presets with the rates that single boards got (`bench/published/boards.py`); their links are
the Ethernet of such a board (`topologies/links.toml`). Evaluation is the time that the same boards would take
if links and messages cost nothing, transfer the rest.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from bench.published.boards import DECODE_FROM, published_run
from bench.tables.rows import Table
from engine.domain.cluster import ClusterSpec, LinkSpec
from engine.domain.spec import RunSpec
from engine.runs.predict import predict
from topologies.parts import link_preset
from topologies.presets import preset
from topologies.published import PublishedRate, published_rates
from topologies.shapes import copies, star

ETHERNET = {"raspberry-pi-3": "usb2-ethernet"}
"""The link of a board that is not like `GIGABIT`."""
GIGABIT = "gigabit-ethernet"
METHODS: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("distributed-llama", "megatron", {"planner": "paper", "all_reduce": "star", "head": "source"}),
    ("llama.cpp RPC", "gpipe", {"planner": "paper"}),
    ("exo", "gpipe", {"planner": "paper"}),
)
"""Runtime, our strategy and its parameters. distributed-llama's first board collects, sums and sends out, and
alone computes logits (its src/tasks.cpp and src/llama2-tasks.cpp, 2024); the others split by layers."""
LIMIT = 1.25


class Compared(NamedTuple):
    """A published time per token on several boards, and its prediction."""

    row: PublishedRate
    strategy: str
    published_s: float
    evaluation_s: float
    transfer_s: float

    @property
    def predicted_s(self) -> float:
        return self.evaluation_s + self.transfer_s

    @property
    def ratio(self) -> float:
        """Of rates of tokens: above 1, the prediction is too fast."""
        return self.published_s / self.predicted_s

    @property
    def near(self) -> bool:
        return 1 / LIMIT <= self.ratio <= LIMIT


def measure_several_boards() -> Table:
    found = [compared(row) for row in published_rates() if row.board and row.nodes > 1]
    found.sort(key=lambda one: (one.row.board, one.row.runtime, one.row.shape, one.row.nodes))
    columns = (
        "board",
        "boards",
        "runtime",
        "model",
        "strategy",
        "predicted",
        "published",
        "ratio",
        "predicted evaluation",
        "published evaluation",
        "predicted transfer",
        "published transfer",
    )
    rows = tuple(
        (
            one.row.device,
            str(one.row.nodes),
            one.row.runtime,
            one.row.shape,
            one.strategy,
            f"{1 / one.predicted_s:.3g}/s",
            f"{1 / one.published_s:.3g}/s",
            f"{one.ratio:.2f}",
            _ms(one.evaluation_s),
            _ms(one.row.evaluation_s),
            _ms(one.transfer_s),
            _ms(one.row.transfer_s),
        )
        for one in found
    )
    title = (
        "Tokens per second of several equal boards on one switch, predicted and published, and the time per "
        "token in its two parts. No row took part in fitting anything. Sources: "
        "`topologies/published_rates.csv`."
    )
    return Table(title, columns, rows, summary=summary(found))


def compared(row: PublishedRate) -> Compared:
    """The prediction of `row`, whose decoding rate is published."""
    spec = several(row)
    token_s = predict(spec).tpot_s
    evaluation_s = predict(spec.model_copy(update={"cluster": costless(spec.cluster)})).tpot_s
    published_s = 1 / (row.decode_tokens_per_s or 0)
    return Compared(row, spec.strategy, published_s, evaluation_s, token_s - evaluation_s)


def several(row: PublishedRate) -> RunSpec:
    """The published run on `row.nodes` boards, each with its Ethernet to one switch."""
    strategy, params = next(
        (strategy, params) for runtime, strategy, params in METHODS if row.runtime.startswith(runtime)
    )
    link = link_preset(ETHERNET.get(row.board, GIGABIT)).between("board", "hub")
    cluster = star(copies(preset(row.board), row.nodes), link)
    spec = published_run(cluster, row, strategy, DECODE_FROM, 3)
    return spec.model_copy(update={"params": params})


def costless(cluster: ClusterSpec) -> ClusterSpec:
    """The cluster with links and messages that take no time."""
    nothing = dict.fromkeys(("message_overhead_s", "receive_overhead_s", "byte_overhead_s"), 0.0)
    devices = tuple(
        device.model_copy(update={**nothing, "staging_byte_per_s": None}) for device in cluster.devices
    )
    links = tuple(LinkSpec(a=link.a, b=link.b, bit_per_s=1e18) for link in cluster.links)
    return cluster.model_copy(update={"devices": devices, "links": links})


def summary(found: Sequence[Compared]) -> Table:
    """The errors per number of boards."""
    columns = ("boards", "number", "median error", "largest factor", f"within a factor of {LIMIT:g}")
    rows = []
    for nodes in sorted({one.row.nodes for one in found}):
        group = [one for one in found if one.row.nodes == nodes]
        factors = [max(one.ratio, 1 / one.ratio) for one in group]
        error = statistics.median(abs(one.ratio - 1) for one in group)
        near = sum(one.near for one in group)
        rows.append(
            (str(nodes), str(len(group)), f"{error:.0%}", f"{max(factors):.2f}", f"{near} of {len(group)}")
        )
    return Table("Predicted against published: |predicted / published - 1|.", columns, tuple(rows))


def _ms(seconds: float | None) -> str:
    return "" if seconds is None else f"{1e3 * seconds:.3g} ms"
