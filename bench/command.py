"""`loom bench [NAME …]`: run benchmarks, print their tables, and with --write keep them in docs/results/."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from bench.emulation.auto_dilation import measure_auto_dilation
from bench.emulation.changes import measure_changes
from bench.emulation.first import measure_first
from bench.emulation.load import measure_load
from bench.emulation.losses import measure_losses
from bench.emulation.messages import measure_messages, measure_sharing
from bench.emulation.startup import measure_startup
from bench.native.compute import measure_compute, measure_shards
from bench.native.native import REPEATS, measure_native
from bench.native.native_step import measure_native_step
from bench.native.reality import measure_reality
from bench.nodes.nodes import measure_nodes
from bench.nodes.refusals import measure_refusals
from bench.prediction.accuracy_matrix import MINUTES, measure_accuracy_matrix
from bench.prediction.admission import measure_admission
from bench.prediction.simulate import measure_simulate
from bench.published.boards import measure_boards
from bench.published.questions import measure_questions
from bench.published.several_boards import measure_several_boards
from bench.service.browser import measure_browser
from bench.service.first_run import measure_first_run
from bench.service.idle import measure_idle
from bench.service.load import measure_service
from bench.service.machines import measure_machines
from bench.service.many_devices import measure_many_devices
from bench.service.serving import measure_serving
from bench.strategies.accuracy import measure_accuracy
from bench.strategies.own_clusters import measure_own_clusters
from bench.strategies.planners import measure_planners
from bench.strategies.plans import measure_plans
from bench.strategies.showcases import measure_showcases
from bench.strategies.wins import measure_wins
from bench.tables.documents import DOCUMENTS, write
from bench.tables.experiments import measure_experiment
from bench.tables.rows import Table, as_text
from emulator.host.rights import is_machine_root
from emulator.network.probe import probe
from engine.domain.errors import SpecError

FIDELITY = "fidelity"
METHODS = Path(__file__).with_name("strategies") / "methods.toml"


class Bench(NamedTuple):
    """A benchmark of `./loom bench`.

    `measure` returns the table of docs/results/`document`.md.

    goes_on: it gets the minutes for which it may go on with what earlier calls have left.
    repeats: it gets how often to start everything that it compares.
    asks: it gets a model's directory and a file of questions.
    beside: it gets how many busy processes are to compute beside it; its figures beside so many have
    a section of their own.
    keeps: it compares with what it has kept before, and gets whether to keep what it finds instead.
    rights: its figures depend on the rights of who starts it, so those of an ordinary user have a section
    of their own.
    """

    name: str
    help: str
    measure: Callable[..., Table]
    document: str = "bench"
    goes_on: bool = False
    repeats: bool = False
    asks: bool = False
    rights: bool = False
    beside: bool = False
    keeps: bool = False

    def section(self, busy: int = 0) -> str:
        """The name of its section in the document."""
        name = f"{self.name}-user" if self.rights and not is_machine_root() else self.name
        return f"{name}-busy-{busy}" if self.beside and busy else name


BENCHES: tuple[Bench, ...] = (
    Bench("startup", "from a run's request until all is ready, and until all has ended", measure_startup),
    Bench("reality", "predictions for this host against runs at native speed", measure_reality, FIDELITY),
    Bench(
        "first",
        "first commands of a new user: are they valid?",
        measure_first,
        FIDELITY,
        True,
        beside=True,
        rights=True,
    ),
    Bench("operations", "operations of any length on up to 16 devices", measure_load, FIDELITY, rights=True),
    Bench("load", "the server with 200 viewers and 50 runs of 10 people", measure_service, "server"),
    Bench(
        "machines",
        "the server with workers on two machines",
        measure_machines,
        "server",
    ),
    Bench(
        "many-devices",
        "runs of up to 128 devices while pages are asked for",
        measure_many_devices,
        "server",
        beside=True,
    ),
    Bench("browser", "pages in a real browser, against their budgets", measure_browser, "server"),
    Bench("first-run", "from a clone to the first token", measure_first_run, "server", repeats=True),
    Bench("idle", "memory and processor of a service that nobody uses", measure_idle, "server"),
    Bench("serving", "a run that serves, asked by a load generator", measure_serving, "server"),
    Bench("messages", "messages of any size, at any rate and delay", measure_messages, FIDELITY, rights=True),
    Bench("sharing", "rates of flows that share a switch port", measure_sharing, FIDELITY, rights=True),
    Bench(
        "loss",
        "messages over links that lose packets, against predictions",
        measure_losses,
        FIDELITY,
        rights=True,
    ),
    Bench(
        "changes",
        "time until live changes take effect at the receiver",
        measure_changes,
        FIDELITY,
        rights=True,
    ),
    Bench("compute", "compute models against this host, operation by operation", measure_compute, FIDELITY),
    Bench("strategies", "every strategy on one cluster", partial(measure_experiment, METHODS), "strategies"),
    Bench("own-clusters", "papers' methods on their papers' clusters", measure_own_clusters, "strategies"),
    Bench("wins", "every method where it is meant to win", measure_wins, "strategies"),
    Bench("showcases", "the showcases and the runs beside them", measure_showcases, "showcases"),
    Bench("accuracy", "what lossy strategies lose and gain", measure_accuracy, "strategies", asks=True),
    Bench(
        "planners", "methods' plans against many others of the same method", measure_planners, "strategies"
    ),
    Bench("plans", "plans of 2,000 random runs against those kept", measure_plans, "strategies", keeps=True),
    Bench(
        "matrix", "predicted and emulated, for some minutes more", measure_accuracy_matrix, "prediction", True
    ),
    Bench("simulate", "how fast predictions are", measure_simulate, "prediction"),
    Bench("admission", "what schedulers cost a step", measure_admission, "prediction"),
    Bench("native", "native speed beside plain torch and gloo", measure_native, "performance", repeats=True),
    Bench("native-step", "where a decode step's time goes", measure_native_step, "performance"),
    Bench("auto-dilation", "dilations with default and probed kernels", measure_auto_dilation, "performance"),
    Bench("boards", "presets against published rates of tokens, and their fit", measure_boards, "boards"),
    Bench(
        "several-boards",
        "boards on one switch against published rates of tokens",
        measure_several_boards,
        "boards",
    ),
    Bench(
        "questions",
        "are several boards faster than one, where that is published",
        measure_questions,
        "boards",
    ),
    Bench("nodes", "runs on boards in namespaces, against predictions", measure_nodes, "nodes"),
    Bench("refusals", "what a board is refused for, brought about", measure_refusals, "nodes"),
    Bench("shards", "a layer against a position shard of it", measure_shards, FIDELITY),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    names = ", ".join(f"{bench.name} ({bench.help})" for bench in BENCHES)
    of_fidelity = ", ".join(bench.name for bench in BENCHES if bench.document == FIDELITY)
    words = f"all, or some of: {names}; {FIDELITY} stands for {of_fidelity}"
    parser.add_argument("names", nargs="*", metavar="NAME", help=words)
    parser.add_argument("--write", action="store_true", help="update the tables in docs/results/")
    parser.add_argument(
        "--minutes",
        type=float,
        default=MINUTES,
        help="how long `matrix` and `first` carry out runs; 0: only the table of `matrix` so far "
        "(default: %(default)g)",
    )
    parser.add_argument(
        "--keep", action="store_true", help="keep the plans of `plans`, for later comparisons"
    )
    words = "how many processes compute all the time beside `first` and `many-devices` (default: %(default)d)"
    parser.add_argument("--busy", type=int, default=0, metavar="N", help=words)
    words = (
        "how often `native` starts every system, 7 minutes each, and `first-run` installs one, "
        "2 minutes each and for root 4 (default: %(default)d)"
    )
    parser.add_argument("--repeats", type=_some, default=REPEATS, help=words)
    parser.add_argument("--model", default="", metavar="DIR", help="whose `accuracy` (the demo model)")
    words = "questions for `accuracy`, one a line: prompt, choices, answer (of held-out text)"
    parser.add_argument("--data", type=Path, metavar="FILE.jsonl", help=words)


def _some(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected at least 1, got {number}")
    return number


def chosen_benches(names: Sequence[str]) -> list[Bench]:
    """The benchmarks of these names, all for none. Raises `SpecError` for a name that there is not."""
    known = [bench.name for bench in BENCHES] + [FIDELITY]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SpecError(f"there is no benchmark {unknown[0]}: there are {', '.join(known)}.")
    of_fidelity = {bench.name for bench in BENCHES if bench.document == FIDELITY}
    asked = set(names) | (of_fidelity if FIDELITY in names else set())
    return [bench for bench in BENCHES if not asked or bench.name in asked]


def run(args: argparse.Namespace) -> int:
    chosen = chosen_benches(args.names)
    probe().require()
    for bench in chosen:
        sys.stderr.write(f"{bench.name}: {bench.help}\n")
        more = {"minutes": args.minutes} if bench.goes_on else {}
        more |= {"busy": args.busy} if bench.beside else {}
        more |= {"keep": args.keep} if bench.keeps else {}
        more |= {"repeats": args.repeats} if bench.repeats else {}
        more |= {"model": args.model, "data": args.data} if bench.asks else {}
        result = bench.measure(**more)
        for table in (result.summary, result):
            if table is not None:
                sys.stdout.write(as_text(table) + "\n")
        sys.stdout.flush()
        if args.write:
            write(DOCUMENTS, bench.document, bench.section(args.busy), result)
    return 0
