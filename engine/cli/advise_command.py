"""`loom advise`: rank every strategy on a cluster by prediction, and try single changes of the cluster."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
from collections.abc import Callable, Sequence
from typing import get_args

from rich.console import Group, RenderableType
from rich.text import Text

from engine.advice.answer import answer
from engine.advice.assess import assess, assess_with_interval
from engine.advice.changes import best_of, ranked, told_once, tried
from engine.advice.questions import reply_to
from engine.advice.replies import Asker
from engine.advice.values import Answer, Assessment, Change, Objective, Why
from engine.advice.why import explain
from engine.cli.advise_questions import add_question_arguments, asked, reply_group, supply
from engine.cli.arguments import add_run_arguments, run_spec_of
from engine.cli.present import check_writable, write_json
from engine.cli.tables import console_for, table
from engine.cli.why_table import add_why_argument, why_group
from engine.domain.errors import SpecError
from engine.domain.spec import RunSpec
from engine.domain.units import human, human_j, human_s
from engine.strategies.outside import is_file
from engine.strategies.registry import STRATEGIES, every, named, with_strategy

MANY_CHANGES = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run_arguments(parser)
    add_why_argument(parser, "the best strategy")
    add_question_arguments(parser)
    parser.add_argument(
        "--by", choices=get_args(Objective), default="total_s", help="what strategies are ranked by (total_s)"
    )


def run(args: argparse.Namespace) -> int:
    check_writable(args.json)
    if args.params or (args.strategy is not None and not is_file(args.strategy)):
        raise SpecError(
            "advise ranks all strategies with their defaults: leave out --set, and --strategy unless it is "
            "FILE.py:CLASS, a method that is to be among them."
        )
    if args.strategy is not None:
        named(args.strategy)
    args.strategy = STRATEGIES[0].name if args.spec is None and args.showcase is None else None
    base = run_spec_of(args)
    if args.ask is not None:
        return _ask(base, args)
    rows = _rows(base, args.by)
    said = answer(base, rows, args.by, assess_all)
    changes = tried(base, rows, args.by, assess_all)
    why = _why(base, rows, args.by) if args.why else None
    if args.json:
        document = {
            "by": args.by,
            "answer": said.model_dump(mode="json"),
            "strategies": [row.model_dump(mode="json") for row in rows],
            "changes": [change.model_dump(mode="json") for change in changes],
            **({"why": why.model_dump(mode="json")} if why is not None else {}),
        }
        write_json(json.dumps(document, indent=2, ensure_ascii=False), args.json)
    if args.json != "-":
        console = console_for(sys.stdout)
        console.print(advice_group(base, rows, changes, said, args.by))
        if why is not None:
            console.print(why_group(why))
    return 0


def _rows(base: RunSpec, by: Objective) -> tuple[Assessment, ...]:
    specs = [with_strategy(base, each.name, params={}) for each in every()]
    return told_once(ranked(assess_ends(specs), by))


def _ask(base: RunSpec, args: argparse.Namespace) -> int:
    """Answer one of the questions in place of the ranking."""
    question = asked(args)
    rows = _rows(base, args.by) if question.is_about_strategies else ()
    reply = reply_to(question, base, rows, supply(args.environment), Asker(assess_all, assess_ends))
    if args.json:
        write_json(reply.model_dump_json(indent=2), args.json)
    if args.json != "-":
        console_for(sys.stdout).print(reply_group(reply))
    return 0


def _why(base: RunSpec, rows: Sequence[Assessment], objective: Objective) -> Why | None:
    """The reasons for the best strategy's plan; None if no strategy has one."""
    best = best_of(rows, objective)
    if best is None:
        return None
    return explain(with_strategy(base, best.strategy, params={}), assess_all)


def assess_all(specs: Sequence[RunSpec]) -> list[Assessment]:
    """Assess all specs, on all processors."""
    return _on_all_processors(assess, specs)


def assess_ends(specs: Sequence[RunSpec]) -> list[Assessment]:
    """`assess_all` with both ends of the boards' rates."""
    return _on_all_processors(assess_with_interval, specs)


def _on_all_processors(
    assess_one: Callable[[RunSpec], Assessment], specs: Sequence[RunSpec]
) -> list[Assessment]:
    workers = min(len(specs), os.cpu_count() or 1)
    if workers < 2:
        return [assess_one(spec) for spec in specs]
    with multiprocessing.get_context("fork").Pool(workers) as pool:
        return pool.map(assess_one, specs, chunksize=1)


def advice_group(
    base: RunSpec, rows: Sequence[Assessment], changes: Sequence[Change], said: Answer, by: Objective
) -> Group:
    work = base.workload
    ranged = ["on real boards"] if any(row.basis for row in rows) else []
    shown = table(
        "strategy",
        "first token",
        "per token",
        "all",
        *ranged,
        "tokens/s",
        "memory",
        "energy",
        "why",
        texts=("why", *ranged),
    )
    for row in rows:
        if row.like:
            continue
        lossy = "" if row.lossless else " (lossy)"
        same = ", ".join(other.strategy for other in rows if other.like == row.strategy)
        memory = "" if row.peak_memory_bytes is None else human(row.peak_memory_bytes, "B")
        shown.add_row(
            row.strategy,
            *(_time(value) for value in (row.first_token_s, row.per_token_s, row.total_s)),
            *(_interval(row) for _ in ranged),
            "" if row.tokens_per_s is None else f"{row.tokens_per_s:.3g}",
            memory,
            "" if row.energy_j is None else human_j(row.energy_j),
            f"{row.reason}{lossy}" + (f" The same plan: {same}." if same else ""),
        )
    simulated = min((row.simulated_tokens for row in rows if row.simulated_tokens), default=0)
    parts: list[RenderableType] = [
        Text(
            f"{base.model.name} on {base.cluster.name} ({len(base.cluster.devices)} devices), predicted",
            "bold",
        ),
        Text(said.sentence),
        shown,
    ]
    if simulated < work.new_tokens:
        parts.append(Text(f"Estimated from {simulated} of {work.new_tokens} tokens."))
    if changes:
        parts.append(Text("What one change would do:", "bold"))
        telling = [change for change in changes if change.makes_a_difference]
        parts += [Text(f"  {change.sentence}") for change in telling[:MANY_CHANGES]]
        rest = ", ".join(change.words for change in changes if not change.makes_a_difference)
        if rest:
            parts.append(Text(f"  No difference: {rest}."))
    return Group(*parts)


def _interval(row: Assessment) -> str:
    if "total_s" not in row.fast or "total_s" not in row.slow:
        return ""
    return f"{human_s(row.fast['total_s'])} – {human_s(row.slow['total_s'])}"


def _time(value: float | None) -> str:
    return "" if value is None else human_s(value)
