"""Arguments of `loom advise --ask`, and the answers: a sentence, and the ways that it chose from."""

from __future__ import annotations

import argparse
from math import inf
from typing import get_args

from rich.console import Group
from rich.text import Text

from engine.advice.questions import Asked, Supply
from engine.advice.replies import Prices, Question, Rank, Reply, interval
from engine.cli.command import Environment
from engine.cli.tables import table
from engine.domain.errors import SpecError
from engine.models.catalogue import names, resolve

TOKENS_PER_S = 1.0


def add_question_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--ask",
        choices=get_args(Question),
        help="answer this instead: what to buy for --tokens-per-s, the largest model at that rate, which "
        "link to upgrade, what a token costs, the longest context and most requests that fit, or how long "
        "weights take to the boards at the start",
    )
    parser.add_argument(
        "--tokens-per-s", type=float, default=TOKENS_PER_S, help="tokens per second that are wanted (1)"
    )
    parser.add_argument(
        "--price",
        dest="prices",
        action="append",
        default=[],
        metavar="BOARD=AMOUNT",
        help="US dollars for a preset (buy) or a device of the cluster (cost), in place of its own",
    )
    parser.add_argument(
        "--rank",
        choices=get_args(Rank),
        help="boards to buy are ranked by the least of this (price where presets have one)",
    )
    parser.add_argument(
        "--per-kwh", type=float, metavar="AMOUNT", help="US dollars a kilowatt-hour costs (cost)"
    )


def prices_of(args: argparse.Namespace) -> Prices:
    boards = {}
    for text in args.prices:
        name, _, amount = text.partition("=")
        try:
            boards[name] = float(amount)
        except ValueError:
            raise SpecError(f"--price {text}: expected BOARD=AMOUNT, as raspberry-pi-5=80.") from None
    prices: Prices = Prices.parse({"boards": boards, "per_kwh": args.per_kwh}, "prices")
    return prices


def asked(args: argparse.Namespace) -> Asked:
    """The question of the command line. Raises `SpecError`."""
    if not 0 < args.tokens_per_s < inf:
        raise SpecError(f"--tokens-per-s is {args.tokens_per_s:g}: expected tokens per second, more than 0.")
    return Asked(
        question=args.ask, by=args.by, tokens_per_s=args.tokens_per_s, prices=prices_of(args), rank=args.rank
    )


def supply(environment: Environment) -> Supply:
    """The presets of boards, and the catalogue's models."""
    return Supply(environment.presets, lambda: {name: resolve(name) for name in names()})


def reply_group(reply: Reply) -> Group:
    columns = ("", "with", reply.unit, "on real boards", "tokens/s per $", "tokens/J")
    shown = table(*columns, texts=("", "with", "on real boards"))
    for option in reply.options:
        worth = [
            "" if one is None else f"{one:.3g}" for one in (option.tokens_per_s_per_usd, option.tokens_per_j)
        ]
        shown.add_row(option.words, option.strategy, f"{option.figure:.3g}", interval(option), *worth)
    return Group(Text(reply.sentence), *([shown] if reply.options else []))
