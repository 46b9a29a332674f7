"""`./loom mutate`: how many small bugs planted in the deciding modules do their tests find?

./loom mutate                       sample mutants of every module in modules.toml
./loom mutate engine/ops/cost.py    of these modules only
./loom mutate --sample 12 --seed 1  how many of each module (12), and which (1)
./loom mutate --known               plant the bugs of known.toml: each must make its tests fail
./loom mutate --write               also write docs/results/tests.md, module by module: the rows of
                                    modules that were not asked for stay
"""

from __future__ import annotations

import argparse
import re
import sys
import time
import tomllib
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from tests.mutation.document import read_section, write_section
from tests.mutation.mutants import Mutant, sample
from tests.mutation.table import ScoreTable, is_argued
from tests.mutation.trial import ROOT, changed, copy_of_the_project, run_tests

HERE = Path(__file__).resolve().parent
LIMIT_FACTOR, LIMIT_S = 5.0, 30.0
"""A mutant may take so much longer than the unchanged module; then it counts as found."""


class Score(NamedTuple):
    """What became of a module's mutants."""

    module: str
    tried: int
    survivors: tuple[Mutant, ...]

    @property
    def killed(self) -> int:
        return self.tried - len(self.survivors)


def table_of(name: str) -> list[dict[str, Any]]:
    tables: list[dict[str, Any]] = tomllib.loads((HERE / name).read_text(encoding="utf-8")).popitem()[1]
    return tables


def echo(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="loom mutate", add_help=False)
    parser.add_argument("modules", nargs="*")
    parser.add_argument("--known", action="store_true")
    parser.add_argument("--sample", type=int, default=12, metavar="N")
    parser.add_argument("--seed", type=int, default=1, metavar="S")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args(arguments)
    with copy_of_the_project() as copy:
        if args.known:
            return plant_known(copy, args.modules, args.write)
        return score_modules(copy, args)


def plant_known(copy: Path, modules: list[str], write: bool) -> int:
    """Returns 1 if a bug does not apply or its tests pass. `modules` are the files to change; none: all."""
    rows, missed = [], 0
    for bug in [bug for bug in table_of("known.toml") if not modules or bug["file"] in modules]:
        path = copy / bug["file"]
        text = path.read_text(encoding="utf-8")
        if text.count(bug["old"]) != 1:
            ending = f"does not apply: the old text occurs {text.count(bug['old'])} times"
        else:
            with changed(path, text.replace(bug["old"], bug["new"])):
                ending = run_tests(copy, bug["tests"], 600.0, copy / "log")
        missed += ending not in ("failed", "timed out")
        rows.append((bug["name"], bug["file"], ending))
        echo(f"{bug['name']}: {ending}")
    if write:
        lines = ["| planted bug | file | its tests |", "| --- | --- | --- |"]
        lines += [f"| {name} | `{file}` | {ending} |" for name, file, ending in rows]
        write_section("known", "\n".join(lines))
    return 1 if missed else 0


def score_modules(copy: Path, args: argparse.Namespace) -> int:
    """Returns 1 if the tests of a module fail as they are, or a survivor has no argument."""
    wanted = [row for row in table_of("modules.toml") if not args.modules or row["path"] in args.modules]
    unknown = set(args.modules) - {row["path"] for row in wanted}
    if unknown:
        echo(f"not in modules.toml: {', '.join(sorted(unknown))}")
        return 2
    argued = table_of("survivors.toml")
    known = [row["path"] for row in table_of("modules.toml")]
    table = ScoreTable.read(read_section("mutation"), args.seed, known)
    unargued = failing = 0
    for row in wanted:
        score = score_of(copy, row, args.sample, args.seed)
        failing += score is None
        survivors = score.survivors if score else ()
        unargued += sum(not is_argued(argued, row["path"], mutant.old, mutant.new) for mutant in survivors)
        table.put(row["path"], score.tried if score else 0, [(m.old, m.new) for m in survivors])
        if args.write:
            write_section("mutation", table.as_markdown(argued))
    echo(table.as_markdown(argued))
    return 1 if unargued or failing else 0


def others_of(row: dict[str, Any]) -> list[str]:
    """The other tests that may find a mutant: those of its room that import it or are named after its
    strategy.
    """
    path = PurePosixPath(row["path"])
    package, name = ".".join(path.parent.parts), path.stem
    imports = re.compile(rf"^\s*from {package}(\.{name} import | import\b.*\b{name}\b)", re.MULTILINE)
    found: list[str] = []
    for test in sorted((ROOT / "tests" / path.parts[0]).rglob("test_*.py")):
        named = "strategies" in path.parts and test.stem.startswith(f"test_{path.parent.name}")
        if named or imports.search(test.read_text(encoding="utf-8")):
            place = test.relative_to(ROOT).as_posix()
            if not any(place == one or place.startswith(f"{one}/") for one in row["tests"]):
                found.append(place)
    return found


def score_of(copy: Path, row: dict[str, Any], count: int, seed: int) -> Score | None:
    """None if the tests fail on the module as it is. What the tests of modules.toml find, the others, which
    take longer, need not.
    """
    left = mutants = sample(copy / row["path"], count, seed)
    for tests in (row["tests"], others_of(row)):
        if left and tests:
            survivors = survivors_of(copy, row["path"], tests, left)
            if survivors is None:
                return None
            left = survivors
    for mutant in left:
        echo(f"{row['path']}:{mutant.line}: survives: {mutant.old}  →  {mutant.new}")
    echo(f"{row['path']}: {len(mutants) - len(left)} of {len(mutants)} found")
    return Score(row["path"], len(mutants), tuple(left))


def survivors_of(copy: Path, module: str, tests: list[str], mutants: list[Mutant]) -> list[Mutant] | None:
    """The mutants of a module with which all of `tests` pass; None if they fail without one."""
    path, log, begin = copy / module, copy / "log", time.monotonic()
    first = run_tests(copy, tests, 600.0, log)
    took_s = time.monotonic() - begin
    if first != "passed":
        echo(f"{module}: its tests {first} without a mutant:\n{log.read_text(errors='replace')[-2000:]}")
        return None
    survivors = []
    for mutant in mutants:
        with changed(path, mutant.text):
            if run_tests(copy, tests, LIMIT_S + LIMIT_FACTOR * took_s, log) == "passed":
                survivors.append(mutant)
    echo(f"{module}: {len(tests)} files of tests take {took_s:.0f} s")
    return survivors


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
