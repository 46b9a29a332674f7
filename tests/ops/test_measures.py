"""What `./loom coverage` and `./loom mutate` compute about the tests."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.branch_coverage import as_markdown, rooms_of, rows_of
from tests.mutation.document import DOCUMENT, write_section
from tests.mutation.table import ScoreTable

pytestmark = pytest.mark.long("emulator", "engine", "topologies", "webapp", "tests")
ROOT = Path(__file__).resolve().parents[2]
MUTATION = ROOT / "tests" / "mutation"
KNOWN = tomllib.loads((MUTATION / "known.toml").read_text())["bug"]
MODULES = tomllib.loads((MUTATION / "modules.toml").read_text())["module"]
SURVIVORS = tomllib.loads((MUTATION / "survivors.toml").read_text())["survivor"]
CODE = "def larger(a, b):\n    return a if a > b else b + 1\n"


@pytest.mark.parametrize("bug", KNOWN, ids=lambda bug: bug["name"])
def test_a_known_bug_still_has_its_place_and_its_tests(bug) -> None:
    assert (ROOT / bug["file"]).read_text().count(bug["old"]) == 1
    assert bug["new"] != bug["old"]
    assert all((ROOT / test.partition("::")[0]).exists() for test in bug["tests"])


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module["path"])
def test_a_module_of_the_mutation_table_and_its_tests_exist(module) -> None:
    assert (ROOT / module["path"]).is_file()
    assert all((ROOT / test.partition("::")[0]).exists() for test in module["tests"])


@pytest.mark.parametrize("argued", SURVIVORS, ids=lambda argued: f"{argued['module']}:{argued['new'][:20]}")
def test_a_line_whose_mutant_is_argued_still_stands_in_its_module(argued) -> None:
    assert argued["old"] in [line.strip() for line in (ROOT / argued["module"]).read_text().splitlines()]


def test_no_module_is_twice_in_the_mutation_table() -> None:
    paths = [module["path"] for module in MODULES]
    assert len(set(paths)) == len(paths)


def test_a_sample_of_mutants_is_the_same_for_the_same_seed_and_each_changes_one_line(tmp_path) -> None:
    from tests.mutation.mutants import sample  # here, as whoever only looks for tests need not wait for it

    module = tmp_path / "module.py"
    module.write_text(CODE)
    every = sample(module, 100, seed=1)
    assert {mutant.new for mutant in every} >= {
        "return a if a >= b else b + 1",
        "return a if a <= b else b + 1",
        "return a if a > b else b - 1",
    }
    assert all(mutant.line == 2 and mutant.text != CODE for mutant in every)
    assert sample(module, 2, seed=1) == every[:2]
    assert [mutant.text for mutant in sample(module, 100, seed=2)] != [mutant.text for mutant in every]


def test_two_changes_of_one_size_are_each_seen_where_compiled_files_are_kept(tmp_path) -> None:
    from tests.mutation.trial import changed

    module = tmp_path / "module.py"
    module.write_text(CODE)
    call = (sys.executable, "-c", "import module; print(module.larger(1, 1))")
    found = []
    for text in (CODE, CODE.replace("+ 1", "+ 2"), CODE.replace("+ 1", "+ 3"), CODE):
        with changed(module, text):
            environment = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPATH": str(tmp_path)}
            found.append(subprocess.run(call, env=environment, capture_output=True, text=True).stdout.strip())
    assert found == ["2", "3", "4", "2"]


def test_a_section_of_the_document_is_replaced_and_the_rest_stays(tmp_path) -> None:
    document = tmp_path / "testing.md"
    document.write_text("before\n<!-- coverage -->\nold\n<!-- end coverage -->\nafter\n")
    write_section("coverage", "new", document)
    assert document.read_text() == "before\n<!-- coverage -->\nnew\n<!-- end coverage -->\nafter\n"
    with pytest.raises(ValueError, match="the markers <!-- mutation -->"):
        write_section("mutation", "new", document)


def test_a_batch_replaces_the_scores_of_its_own_modules_only() -> None:
    argued = [{"module": "b.py", "old": "x | y", "new": "x or y", "why": "both are sets"}]
    modules = ("a.py", "b.py", "c.py")
    table = ScoreTable(1, modules)
    table.put("b.py", 4, [("x | y", "x or y")])
    table.put("a.py", 2, [("0", "1"), ("2", "3")])
    again = ScoreTable.read(table.as_markdown(argued), 1, modules)
    assert again.as_markdown(argued) == table.as_markdown(argued)
    again.put("a.py", 6, [])
    assert again.as_markdown(argued).splitlines() == [
        "9 of 10 mutants found (90%), 1 survivors argued; 2 of 3 modules scored; seed 1.",
        "",
        "| module | mutants | found |",
        "| --- | ---: | ---: |",
        "| `a.py` | 6 | 6 |",
        "| `b.py` | 4 | 3 |",
        "",
        "| survivor | change | why it may survive |",
        "| --- | --- | --- |",
        "| `b.py` | `x \\| y` → `x or y` | both are sets |",
    ]


def test_scores_of_another_seed_or_of_modules_no_longer_listed_are_dropped() -> None:
    table = ScoreTable(1, ("a.py",))
    table.put("a.py", 2, [("0", "1")])
    text = table.as_markdown([])
    assert ScoreTable.read(text, 2, ("a.py",)).tried == {}
    assert ScoreTable.read(text, 1, ("b.py",)).tried == {}


@pytest.mark.parametrize("name", ["coverage", "mutation", "known"])
def test_the_document_has_the_sections_that_commands_write(name: str) -> None:
    assert f"<!-- {name} -->\n" in DOCUMENT.read_text()
    assert f"<!-- end {name} -->\n" in DOCUMENT.read_text()


def file(statements: int, run: int, branches: int, taken: int) -> dict:
    return {
        "summary": {
            "num_statements": statements,
            "covered_lines": run,
            "num_branches": branches,
            "covered_branches": taken,
        }
    }


def test_coverage_is_summed_by_room_and_files_of_no_room_are_left_out() -> None:
    files = {
        "engine/ops/cost.py": file(10, 5, 4, 1),
        "engine/ops/torch_kernels/dispatch.py": file(10, 10, 0, 0),
        "webapp/base/redis.py": file(4, 4, 0, 0),
        "tests/conftest.py": file(99, 0, 9, 0),
    }
    assert as_markdown(rows_of(rooms_of(files))).splitlines()[2:] == [
        "| engine/ops | 20 | 75.0% | 4 | 25.0% |",
        "| webapp/base | 4 | 100.0% | 0 | – |",
        "| all | 24 | 79.2% | 4 | 25.0% |",
    ]
