"""`loom soak`: everything at random, for as long as one likes: several people at one service, whose runs have
random clusters, methods and failures, which they change, stop and vary in experiments, while processes of the
service end and start again.

All along, no token may be wrong, no run without a true end, no event lost, no answer a defect; memory stays
bounded, and nothing is left behind. What is drawn follows from the seed; when it happens, from the machine.
"""

from __future__ import annotations

import argparse
import random
import sys

from bench.soak.campaign import soaked
from bench.tables.rows import Table, as_text
from emulator.network.probe import probe
from engine.domain.errors import SpecError

MOST_SEED = 10**6


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--minutes", type=float, default=60.0, help="how long (%(default)g)")
    parser.add_argument("--seed", type=int, help="what is drawn (another one each time)")
    parser.add_argument("--people", type=int, default=3, metavar="N", help="people at once (%(default)d)")


def run(args: argparse.Namespace) -> int:
    for option, value in (("--minutes", args.minutes), ("--people", args.people)):
        if not value > 0:
            raise SpecError(f"{option} is {value:g}: it must be more than 0.")
    probe().require()
    seed = random.randrange(MOST_SEED) if args.seed is None else args.seed
    sys.stderr.write(f"seed {seed}: repeat it with --seed {seed}\n")
    found = soaked(seed, args.minutes, args.people)
    sys.stdout.write(as_text(Table(f"Everything at random, seed {seed}", ("", ""), found.rows)) + "\n")
    sys.stdout.writelines(f"{problem}\n" for problem in found.problems)
    return 3 if found.problems else 0
