"""`python -m bench.nodes.refusals`, which `./loom bench refusals` runs in namespaces of its own: what a board
refuses, and what a board is refused for, each brought about for real. A row has what a person is told.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import NamedTuple

from bench.nodes.board import Board, Share
from bench.nodes.cases import cluster_of
from bench.nodes.site import URL, Site
from bench.tables.rows import Table
from bench.trials.isolated import found_by, hand_over, parser_of
from bench.trials.lan import build_switch, open_to_all, python_places
from bench.trials.servers import wait_for
from engine.domain.errors import RunError
from webapp.ops.places import ROOT

MODEL = "model-on-boards"
RATE_BIT_PER_S = 1e8
RUN_S = 120.0
SMALL_DISK = "64k"
HOUR_AHEAD = (
    "import runpy, sys, time; own = time.time; time.time = lambda: own() + 3600; del sys.argv[0]; "
    "sys.path.insert(0, sys.argv[0].rpartition('/')[0]); runpy.run_path(sys.argv[0], run_name='__main__')"
)


class Refusal(NamedTuple):
    """`words` must be in the sentence."""

    what: str
    words: str
    bring_about: Callable[[Place], str]


class Place:
    """A server and a board that has measured itself."""

    def __init__(self, site: Site, board: Board, directory: Path):
        self.site, self.board, self.directory = site, board, directory

    def run(self, *more: str, program: Path | None = None) -> str:
        """The sentence with which a run on the board ends, which has joined with `more` arguments."""
        self.board.start(URL, more, program)
        wait_for(partial(self.site.has_measured, self.board), "the board")
        cluster = cluster_of([self.site.row(self.board.name)["device"]], RATE_BIT_PER_S)
        body = {
            "cluster": cluster.model_dump(mode="json", exclude_defaults=True),
            "model": MODEL,
            "strategy": "single",
            "workload": {"prompt_tokens": 8, "new_tokens": 4},
            "dilation": "nodes",
        }
        run = self.site.until_ended(self.site.begin(body), RUN_S)
        if run["status"] == "finished":
            return ""
        outcome = (run.get("report") or {}).get("outcome") or {}
        return str(outcome.get("sentence") or run.get("error") or "")

    def join(self, interpreter: Sequence[str] = ()) -> str:
        """What the board says last when the server does not let it join."""
        before = len(self.board.said())
        self.board.start(URL, interpreter=interpreter)
        process = self.board.process
        assert process is not None, "it was started"
        process.wait(RUN_S)
        self.board.process = None
        return self.board.said()[before:].strip().splitlines()[-1].partition(" node: ")[2]


def nothing_wrong(place: Place) -> str:
    return place.run() or "it finishes"


def another_version(place: Place) -> str:
    """A copy of the program, one statement of which is another."""
    copy = place.directory / "program"
    left_out = shutil.ignore_patterns(".*", "node_modules", "docs", "frontend")
    shutil.copytree(ROOT, copy, ignore=left_out)
    for name in (".loom", ".venv"):
        (copy / name).symlink_to(ROOT / name)
    with (copy / "engine/domain/units.py").open("a") as file:
        file.write("\nANOTHER = 1\n")
    return place.run(program=copy)


def full_disk(place: Place) -> str:
    cache = place.board.home / ".cache" / "edgeloom" / "slices"
    place.board.forget()
    cache.mkdir()
    user = place.board.user
    line = f"mount -t tmpfs -o size={SMALL_DISK},uid={user},gid={user} edgeloom-disk {cache}"
    subprocess.run(line.split(), check=True)
    try:
        return place.run()
    finally:
        place.board.end()
        subprocess.run(("umount", str(cache)), check=True)


def too_little_memory(place: Place) -> str:
    return place.run("--memory-gb", "0.2")


def too_small_a_cache(place: Place) -> str:
    return place.run("--cache-gb", "0.00001")


def clock_ahead(place: Place) -> str:
    return place.join(("-c", HOUR_AHEAD))


def lapsed_token(place: Place) -> str:
    """One that was made two days ago, and never used."""
    from django.utils.timezone import now

    from webapp.clusters.models import Node

    site, board, token = place.site, place.board, place.board.token
    board.token = site.ask("POST", "/api/nodes", {"name": "unused"})["token"]
    Node.objects.filter(name="unused").update(created_at=now() - timedelta(days=2))
    said = place.join()
    board.token = token
    return said


def revoked_token(place: Place) -> str:
    site, board, token = place.site, place.board, place.board.token
    made = site.ask("POST", "/api/nodes", {"name": "revoked"})
    site.ask("DELETE", "/api/nodes/revoked")
    board.token = made["token"]
    said = place.join()
    board.token = token
    return said


REFUSALS = (
    Refusal("nothing is wrong", "it finishes", nothing_wrong),
    Refusal("another version of EdgeLoom on the board", "has another version of EdgeLoom", another_version),
    Refusal(f"a disk of {SMALL_DISK}B for weights", "its disk is full", full_disk),
    Refusal("--memory-gb 0.2", "of memory free", too_little_memory),
    Refusal("--cache-gb 0.00001", "--cache-gb allows more", too_small_a_cache),
    Refusal("a clock that is an hour ahead", "ahead of", clock_ahead),
    Refusal("a token that has lapsed", "lapsed on", lapsed_token),
    Refusal("a token that was revoked", "token", revoked_token),
)


def measure_refusals() -> Table:
    """Every refusal, as root. Raises `RunError` where one has another sentence."""
    rows = found_by(__name__).rows_unless("A refusal is not as it should be")
    return Table("What is wrong, and what a person is told", ("wrong", "told"), rows)


def main() -> int:
    args = parser_of(__doc__).parse_args()
    rows, problems = [], []
    with tempfile.TemporaryDirectory(prefix="edgeloom-refusals-", ignore_cleanup_errors=True) as made:
        directory = Path(made)
        directory.chmod(0o755)
        open_to_all(*python_places())
        build_switch()
        site, board = Site(directory), Board(0, Share(0), directory)
        try:
            site.start()
            site.keep_model(MODEL)
            site.add(board)
            for one in REFUSALS:
                try:
                    said = one.bring_about(Place(site, board, directory))
                except RunError as error:
                    said = str(error)
                board.end()
                rows.append((one.what, said))
                sys.stderr.write(f"{one.what}: {said}\n")
                if one.words not in said:
                    problems.append(f"{one.what}: {said}")
        finally:
            board.end()
            site.close()
            board.group.remove()
    return hand_over(rows, problems, args.result)


if __name__ == "__main__":
    sys.exit(main())
