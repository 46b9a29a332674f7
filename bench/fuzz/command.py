"""`loom fuzz`: random runs of all strategies and families on real tensors, compared with `transformers`.

Case K of seed S is always the same run. A case that is wrong is written as a file for `--spec` of `loom
predict` and `loom run`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench.fuzz.campaign import Campaign, Ended, count, run_campaign
from engine.cli.document import write_between
from engine.domain.errors import SpecError
from engine.domain.stored import to_document
from engine.strategies.registry import STRATEGIES, named, origin_of, source_of, strategy

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "results" / "tests.md"
START, END = "<!-- fuzz -->", "<!-- end fuzz -->"
SCHEDULED_START, SCHEDULED_END = "<!-- fuzz schedulers -->", "<!-- end fuzz schedulers -->"
ENDS = ("equal", "lossy", "refused", "out of memory", "lost", "wrong")
REPORT_EVERY_S = 5.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cases", type=int, default=200, metavar="N", help="how many cases (200)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="which cases (1)")
    parser.add_argument("--first", type=int, default=0, metavar="K", help="number of the first case (0)")
    parser.add_argument("--case", type=int, metavar="K", help="only this case; its spec is written, too")
    parser.add_argument(
        "--strategy",
        action="append",
        metavar="NAME|FILE.py:CLASS",
        help="only these, which makes other cases; repeatable",
    )
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument(
        "--native",
        action="store_true",
        help="run them as processes of this machine, one run at a time beside two busy loops",
    )
    kind.add_argument(
        "--schedulers",
        action="store_true",
        help="other cases: requests arrive while others are answered, a scheduler admits them, devices fail "
        "and rates change",
    )
    parser.add_argument(
        "--processes", type=int, default=os.cpu_count() or 1, metavar="N", help="cases at once (all cores)"
    )
    parser.add_argument(
        "--out", default=".", metavar="DIR", help="where specs of wrong cases are written (.)"
    )
    parser.add_argument("--write", action="store_true", help="update the table in docs/results/tests.md")


def run(args: argparse.Namespace) -> int:
    campaign = campaign_of(args)
    if args.processes < 1:
        raise SpecError(f"--processes {args.processes}: expected at least 1.")
    began_s, ended = time.monotonic(), list[Ended]()
    try:
        at_once = 1 if args.native else args.processes
        _collect(campaign, min(at_once, campaign.stop - campaign.first), ended)
    except KeyboardInterrupt:
        done = {one.number for one in ended}
        left = next(index for index in range(campaign.first, campaign.stop + 1) if index not in done)
        sys.stderr.write(f"stopped: go on with --seed {campaign.seed} --first {left}.\n")
        sys.stdout.write(as_text(campaign, ended) + "\n")
        return 130
    took_s = time.monotonic() - began_s
    wrong = sorted(one for one in ended if one.end == "wrong")
    if args.case is not None:
        one = ended[0]
        sys.stdout.write(f"{one.end}: {one.sentence or 'as transformers'}\n")
    else:
        sys.stdout.write(as_text(campaign, ended) + "\n")
    for one in ended if args.case is not None else wrong:
        sys.stdout.write(_described(campaign, one, Path(args.out)) + "\n")
    if args.write:
        start, end = (SCHEDULED_START, SCHEDULED_END) if campaign.scheduled else (START, END)
        write_between(DOCUMENT, start, end, as_markdown(campaign, ended, took_s))
    return 3 if wrong else 0


def campaign_of(args: argparse.Namespace) -> Campaign:
    """The campaign that the arguments ask for. Raises `SpecError` for numbers that select no case."""
    names = tuple(named(name).name for name in args.strategy or [chosen.name for chosen in STRATEGIES])
    first, cases = (args.first, args.cases) if args.case is None else (args.case, 1)
    if cases < 1 or first < 0:
        raise SpecError(
            f"fuzz: {cases} cases from number {first}: expected at least 1 case from number 0 on."
        )
    return Campaign(args.seed, first, first + cases, names, args.native, args.schedulers)


def _collect(campaign: Campaign, processes: int, ended: list[Ended]) -> None:
    """Append every case to `ended`, and say now and then how many there are."""
    cases, said_s = campaign.stop - campaign.first, time.monotonic()
    for one in run_campaign(campaign, processes):
        ended.append(one)
        if one.end == "wrong":
            sys.stderr.write(f"case {one.number} is wrong: {one.sentence}\n")
        now_s = time.monotonic()
        if now_s - said_s > REPORT_EVERY_S or len(ended) == cases:
            said_s = now_s
            wrong = sum(one.end == "wrong" for one in ended)
            sys.stderr.write(f"{len(ended)} of {cases} cases, {wrong} wrong\n")


def _described(campaign: Campaign, one: Ended, directory: Path) -> str:
    from bench.fuzz.draw import draw_spec
    from bench.fuzz.scheduled import draw_scheduled

    strategies = tuple(strategy(name) for name in campaign.strategies)
    draw = draw_scheduled if campaign.scheduled else draw_spec
    spec = draw(campaign.seed, one.number, strategies)
    path = directory / f"fuzz-{campaign.seed}-{one.number}.json"
    path.write_text(json.dumps(to_document(spec), indent=2) + "\n", encoding="utf-8")
    file = f" --strategy {origin_of(spec.strategy)}" if source_of(spec.strategy) else ""
    said = f"case {one.number}, {spec.strategy}: {one.sentence or one.end}"
    return f"{said}\n  loom predict --spec {path}{file}"


def _ends(campaign: Campaign) -> tuple[str, ...]:
    """How cases can end: where no device fails, none is lost."""
    return ENDS if campaign.scheduled else tuple(end for end in ENDS if end != "lost")


def _rows(campaign: Campaign, ended: Sequence[Ended]) -> list[tuple[str, ...]]:
    counts, ends = count(campaign, ended), _ends(campaign)
    rows = [(name, str(found.total()), *(str(found[end]) for end in ends)) for name, found in counts.items()]
    sums = [sum(found[end] for found in counts.values()) for end in ends]
    return [*rows, ("all", str(len(ended)), *map(str, sums))]


def as_text(campaign: Campaign, ended: Sequence[Ended]) -> str:
    lines = [("strategy", "cases", *_ends(campaign)), *_rows(campaign, ended)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines
    )


def as_markdown(campaign: Campaign, ended: Sequence[Ended], took_s: float) -> str:
    rows = "\n".join(f"| {' | '.join(row)} |" for row in _rows(campaign, ended))
    ends = _ends(campaign)
    return (
        f"{len(ended)} cases of seed {campaign.seed}, from number {campaign.first} on, in {took_s:.0f} s.\n\n"
        f"| strategy | cases | {' | '.join(ends)} |\n| --- |{' ---: |' * (1 + len(ends))}\n{rows}"
    )
