"""Arguments of `loom advise --ask`, and the answers: a sentence, and the ways that it chose from."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import get_args

from rich.console import Group
from rich.text import Text

from engine.advice.questions import (
    Asker,
    Prices,
    Question,
    Reply,
    cost_per_token,
    largest_model,
    link_to_upgrade,
    to_buy,
)
from engine.advice.values import Assessment, Objective
from engine.cli.command import Environment
from engine.cli.tables import table
from engine.domain.errors import SpecError
from engine.domain.spec import RunSpec
from engine.models.catalogue import names, resolve

TOKENS_PER_S = 1.0


def add_question_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--ask",
        choices=get_args(Question),
        help="answer this instead: what to buy for --tokens-per-s, the largest model at that rate, which "
        "link to upgrade, or what a token costs",
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
        help="of a preset (buy) or a device of the cluster (cost), in any currency; repeatable",
    )
    parser.add_argument("--per-kwh", type=float, metavar="AMOUNT", help="price of a kilowatt-hour (cost)")


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


def replied(
    base: RunSpec, rows: Sequence[Assessment], by: Objective, args: argparse.Namespace, asker: Asker
) -> Reply:
    """The reply to the questions on the command line. `rows` are the strategies on the cluster, for the
    questions about it. Raises `SpecError`.
    """
    if args.tokens_per_s <= 0:
        raise SpecError(f"--tokens-per-s is {args.tokens_per_s:g}: expected tokens per second, more than 0.")
    environment: Environment = args.environment
    match args.ask:
        case "buy":
            return to_buy(base, environment.presets(), args.tokens_per_s, prices_of(args), asker)
        case "largest":
            models = {name: resolve(name) for name in names()}
            return largest_model(base, models, args.tokens_per_s, asker)
        case "link":
            return link_to_upgrade(base, rows, by, asker)
        case _:
            return cost_per_token(base, rows, prices_of(args))


def reply_group(reply: Reply) -> Group:
    shown = table("", "with", reply.unit, "on real boards", texts=("", "with", "on real boards"))
    for option in reply.options:
        ends = "" if option.low is None else f"{option.low:.3g} to {option.high:.3g}"
        shown.add_row(option.words, option.strategy, f"{option.figure:.3g}", ends)
    return Group(Text(reply.sentence), *([shown] if reply.options else []))
