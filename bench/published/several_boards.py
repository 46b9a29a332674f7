"""Compares predicted and published times per token of several equal boards on one switch.

The boards are presets with the rates that single boards got (`bench/published/fit.py`); their links are the
Ethernet of such a board (`topologies/links.toml`). Evaluation is the time that the same boards would take if
links and messages cost nothing, transfer the rest.

A runtime may compute slower than the ones by which a preset's rates are known, and need time per layer that
no further board shortens. Both are taken from rows of one and two boards (`FITTED`); rows of more test them.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

from bench.tables.chart import Scatter
from bench.tables.rows import Table
from engine.domain.cluster import ClusterSpec, LinkSpec
from engine.domain.errors import SpecError
from engine.domain.spec import RunSpec
from engine.domain.units import human
from engine.runs.predict import predict
from topologies.parts import link_preset
from topologies.presets import preset
from topologies.published import PublishedRate, published_rates
from topologies.published_runs import DECODE_FROM, published_run
from topologies.shapes import copies, star

LINKS = {
    "raspberry-pi-3": "usb2-ethernet",
    "gcp-c3d-30": "cloud-20",
    "apple-m4-pro": "thunderbolt-tcp",
}
"""The link of a board that is not like `GIGABIT`."""
GIGABIT = "gigabit-ethernet"
FITTED = 2
"""The number of boards up to which rows say what their runtime adds."""
LIMIT = 1.25


class Runtime(NamedTuple):
    """A runtime by how its name begins, our strategy, and how many messages it sends for one of ours."""

    name: str
    strategy: str
    params: Mapping[str, str]
    messages: int = 1


STAR = {"planner": "paper", "all_reduce": "star", "head": "source"}
RUNTIMES = (
    Runtime("distributed-llama v0.16", "megatron", STAR),
    Runtime("distributed-llama", "megatron", STAR, messages=2),
    Runtime("llama.cpp RPC", "gpipe", {"planner": "paper"}),
    Runtime("exo", "gpipe", {"planner": "paper"}),
)
"""Until its version 0.12, distributed-llama's first board sent out and collected four times per layer what
megatron's sums need twice (b4rtaz/distributed-llama, src/llama2-tasks.cpp, 2024), and alone computed logits.
The last two split by layers."""


class Compared(NamedTuple):
    """A published time per token on several boards, and its prediction without and with what the runtime
    adds.
    """

    row: PublishedRate
    strategy: str
    published_s: float
    plain_s: float
    evaluation_s: float
    transfer_s: float

    @property
    def predicted_s(self) -> float:
        return self.evaluation_s + self.transfer_s

    @property
    def ratio(self) -> float:
        """The predicted rate of tokens over the published one: above 1, the prediction is too fast."""
        return self.published_s / self.predicted_s

    @property
    def plain_ratio(self) -> float:
        return self.published_s / self.plain_s

    @property
    def near(self) -> bool:
        return 1 / LIMIT <= self.ratio <= LIMIT


def measure_several_boards() -> Table:
    rows = [row for row in published_rates() if row.board and row.nodes > 1]
    found = [compared(row) for row in rows]
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
        "preset alone",
        "predicted evaluation",
        "published evaluation",
        "predicted transfer",
        "published transfer",
    )
    table = tuple(
        (
            one.row.device,
            str(one.row.nodes),
            one.row.runtime,
            one.row.shape,
            one.strategy,
            f"{1 / one.predicted_s:.3g}/s",
            f"{1 / one.published_s:.3g}/s",
            f"{one.ratio:.2f}",
            f"{one.plain_ratio:.2f}",
            _ms(one.evaluation_s),
            _ms(one.row.evaluation_s),
            _ms(one.transfer_s),
            _ms(one.row.transfer_s),
        )
        for one in found
    )
    title = (
        "Tokens per second of several equal boards on one switch, predicted and published, and the time per "
        f"token in its two parts. Rows of more than {FITTED} boards took no part in fitting. *Preset alone*: "
        "the ratio without what the runtime adds. Sources: `topologies/published_rates.csv`."
    )
    chart = Scatter(
        "Tokens per second of several boards: predicted against published",
        "published",
        "predicted",
        {
            f"{nodes} boards": tuple(
                (1 / one.published_s, 1 / one.predicted_s) for one in found if one.row.nodes == nodes
            )
            for nodes in sorted({one.row.nodes for one in found})
        },
        lambda value: human(value, ""),
        LIMIT - 1,
    )
    return Table(title, columns, table, chart, summary(found))


def compared(row: PublishedRate) -> Compared:
    """The prediction of `row`, whose decoding rate is published."""
    published_s = 1 / (row.decode_tokens_per_s or 0)
    spec = several(row)
    plain_s = predict(spec).tpot_s
    runtime = runtime_of(row)
    number = runtime.messages if runtime else 1
    without_s = evaluation(spec)  # whatever messages cost
    transfer_s = (plain_s if number == 1 else predict(with_messages(spec, number)).tpot_s) - without_s
    slower, per_layer_s = added(row)
    evaluation_s = slower * without_s + spec.model.num_layers * per_layer_s
    return Compared(row, spec.strategy, published_s, plain_s, evaluation_s, transfer_s)


def runtime_of(row: PublishedRate) -> Runtime | None:
    return next((runtime for runtime in RUNTIMES if row.runtime.startswith(runtime.name)), None)


def several(row: PublishedRate) -> RunSpec:
    """The published run on `row.nodes` boards, each with its link to one switch, as the presets are."""
    runtime = runtime_of(row)
    if runtime is None:
        raise SpecError(f"{row.id}: no runtime is called {row.runtime}: add it to RUNTIMES.")
    link = link_preset(LINKS.get(row.board, GIGABIT)).between("board", "hub")
    cluster = star(copies(preset(row.board), row.nodes), link)
    spec = published_run(cluster, row, runtime.strategy, DECODE_FROM, 3)
    return spec.model_copy(update={"params": dict(runtime.params)})


def added(row: PublishedRate) -> tuple[float, float]:
    """How many times as long the runtime of `row` computes on this board, and its seconds per layer.

    Least squares of relative errors over the rows of few boards; of one row only the seconds per layer.
    """
    found = []
    for other in published_rates():
        same = (other.device, other.runtime) == (row.device, row.runtime) and other.shape
        if same and other.nodes <= FITTED and (other.evaluation_s or other.nodes == 1):
            alone_s, layers = _alone(other._replace(board=row.board))
            published_s = other.evaluation_s or 1 / (other.decode_tokens_per_s or 0)
            found.append((alone_s / published_s, layers / published_s))
    if not found:
        return 1.0, 0.0
    if len(found) == 1:
        ((share, per_s),) = found
        return 1.0, max(0.0, (1 - share) / per_s)
    aa, ab, bb = (sum(x[i] * x[j] for x in found) for i, j in ((0, 0), (0, 1), (1, 1)))
    a, b = (sum(x[i] for x in found) for i in (0, 1))
    determinant = aa * bb - ab * ab
    return (a * bb - b * ab) / determinant, (b * aa - a * ab) / determinant


@cache
def _alone(row: PublishedRate) -> tuple[float, int]:
    """Seconds of evaluation and layers of a row from which those of many others are fitted."""
    spec = several(row)
    return evaluation(spec), spec.model.num_layers


def evaluation(spec: RunSpec) -> float:
    return predict(spec.model_copy(update={"cluster": costless(spec.cluster)})).tpot_s


def with_messages(spec: RunSpec, times: int) -> RunSpec:
    """The run with so many messages in place of each: their costs and delays count so many times."""
    names = ("message_overhead_s", "receive_overhead_s")
    devices = tuple(
        device.model_copy(update={name: times * getattr(device, name) for name in names})
        for device in spec.cluster.devices
    )
    links = tuple(link.model_copy(update={"delay_s": times * link.delay_s}) for link in spec.cluster.links)
    cluster = spec.cluster.model_copy(update={"devices": devices, "links": links})
    return spec.model_copy(update={"cluster": cluster})


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
