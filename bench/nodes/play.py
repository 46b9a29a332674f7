"""`python -m bench.nodes.play`, which `./loom bench nodes` runs in namespaces: a server, boards, and
runs on two of them and on four.

The two have a core each, one at half speed; of the four each has half of a core by a quota. So no board waits
for another's core.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from bench.nodes.board import Board, Share
from bench.nodes.cases import Case, Compared, cases, cluster_of, compare, request_of
from bench.nodes.site import URL, Site
from bench.nodes.taker import half_of
from bench.trials.isolated import hand_over, parser_of
from bench.trials.lan import build_switch, open_to_all, python_places
from bench.trials.servers import wait_for
from engine.domain.errors import RunError
from engine.domain.report import RunReport

RUN_S = 600.0
SHARES = (Share(0), Share(1, 0.5, is_slow=True), *(Share(core, 0.5) for core in (0, 0, 1, 1)))
DESKS = {2: (0, 1), 4: (2, 3, 4, 5)}
"""The boards of each number, by their places in `SHARES`."""


def main() -> int:
    parser = parser_of(__doc__)
    parser.add_argument("--homes", type=Path, help="keep the boards' homes, with what they measured, there")
    parser.add_argument("--boards", type=int, choices=DESKS, action="append", help="only these numbers")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="edgeloom-nodes-", ignore_cleanup_errors=True) as made:
        homes = args.homes or Path(made) / "homes"
        homes.mkdir(exist_ok=True)
        for folder in (Path(made), homes):
            folder.chmod(0o755)
        open_to_all(*python_places())
        build_switch()
        found = play(Path(made), homes, args.boards or tuple(DESKS))
    return hand_over([(json.dumps(one._asdict()),) for one in found], [], args.result)


def play(place: Path, homes: Path, numbers: Sequence[int]) -> list[Compared]:
    site = Site(place)
    boards: list[Board] = []
    try:
        site.start()
        boards += [Board(number, share, homes) for number, share in enumerate(SHARES)]
        found = []
        for number in numbers:
            desk = [boards[one] for one in DESKS[number]]
            with ExitStack() as slowed:
                for board in desk:
                    if board.share.is_slow:
                        slowed.enter_context(half_of(board.share.core))
                    join(site, board, boards)
                found += [compared(site, desk, case) for case in cases([board.name for board in desk])]
        return found
    finally:
        for board in boards:
            board.end()
        site.close()
        for board in boards:
            board.group.remove()


def join(site: Site, board: Board, boards: Sequence[Board]) -> None:
    """Start the board, which measures itself while no other does. One that is like another measured before,
    but for its core, has that one's figures.
    """
    if board.process is None:
        alike = (one for one in boards if one.process and one.share[1:] == board.share[1:])
        if one := next(alike, None):
            board.measured_as(one.home)
        site.add(board)
        board.start(URL)
        wait_for(partial(site.has_measured, board), f"the row of {board.name}")


def compared(site: Site, desk: Sequence[Board], case: Case) -> Compared:
    for board in desk:
        board.cable.shape(case.bit_per_s)
    rows = [site.row(board.name)["device"] for board in desk]
    began_s = time.monotonic()
    run = site.until_ended(site.begin(request_of(case, cluster_of(rows, case.bit_per_s))), RUN_S)
    report = RunReport.model_validate(run["report"])
    if report.outcome.kind != "finished" or not report.correctness.token_identical:
        raise RunError(f"{case.method} of {case.model} on {len(desk)} boards: {report.outcome.in_words}.")
    found = compare(case, report)
    sys.stderr.write(
        f"{len(desk)} boards, {case.model}, {case.method}: measured {found.measured.total_s:.3f} s, "
        f"{found.off('total_s'):+.1%}, {time.monotonic() - began_s:.0f} s in all\n"
    )
    return found


if __name__ == "__main__":
    sys.exit(main())
