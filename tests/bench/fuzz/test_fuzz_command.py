"""`loom fuzz` in worker processes."""

import argparse

import pytest

from bench.commands import COMMANDS
from bench.fuzz import command as fuzz_command
from bench.fuzz.campaign import Ended
from bench.fuzz.draw import draw_spec
from engine.cli.arguments import add_run_arguments, run_spec_of
from engine.cli.command import Environment
from engine.cli.main import main
from engine.strategies.registry import strategy
from tests.support.outside import keep_methods_apart, write_method

ENVIRONMENT = Environment(lambda name: pytest.fail("no cluster is needed"), lambda: (), lambda: ())


def loom(*arguments):
    return main(arguments, COMMANDS, ENVIRONMENT)


@pytest.mark.long("bench/fuzz", "engine/plugins", "engine/strategies/outside.py")
def test_workers_check_every_case_once_and_the_table_counts_them(tmp_path, capsys, monkeypatch):
    """One worker has the cases of a built-in method, all refused, and one those of a method of a file."""
    keep_methods_apart(monkeypatch)
    methods = ("--strategy", "deepspeed", "--strategy", f"{write_method(tmp_path)}:Thirds")
    out = tmp_path / "out"
    out.mkdir()
    status = loom("fuzz", "--cases", "4", "--seed", "6", *methods, "--processes", "2", "--out", str(out))
    shown = capsys.readouterr()
    assert status == 0
    refused, of_the_file, together = (line.split() for line in shown.out.splitlines()[-3:])
    assert refused == ["deepspeed", "2", "0", "0", "2", "0", "0"]
    assert of_the_file == ["thirds", "2", "2", "0", "0", "0", "0"]
    assert together == ["all", "4", "2", "0", "2", "0", "0"]
    assert "4 of 4 cases, 0 wrong" in shown.err
    assert not list(out.iterdir())


@pytest.fixture
def ended(monkeypatch):
    """Cases that end as the test says, without worker processes."""

    def given(*cases):
        monkeypatch.setattr(fuzz_command, "run_campaign", lambda campaign, processes: iter(cases))

    return given


def test_a_wrong_case_is_a_file_that_predict_takes(ended, tmp_path, capsys):
    ended(Ended(0, "equal", ""), Ended(1, "wrong", "the tokens differ"))
    assert loom("fuzz", "--cases", "2", "--strategy", "single", "--out", str(tmp_path)) == 3
    path = tmp_path / "fuzz-1-1.json"
    said = capsys.readouterr().out
    assert f"case 1, single: the tokens differ\n  loom predict --spec {path}" in said
    spec = draw_spec(1, 1, (strategy("single"),))
    parser = argparse.ArgumentParser()
    add_run_arguments(parser)
    assert run_spec_of(parser.parse_args(["--spec", str(path)])) == spec


def test_ctrl_c_says_how_to_go_on(monkeypatch, capsys):
    def run(campaign, processes):
        yield Ended(10, "equal", "")
        yield Ended(12, "equal", "")
        raise KeyboardInterrupt

    monkeypatch.setattr(fuzz_command, "run_campaign", run)
    assert loom("fuzz", "--cases", "9", "--first", "10", "--seed", "6") == 130
    assert "go on with --seed 6 --first 11." in capsys.readouterr().err


def test_the_table_is_written_between_its_markers(ended, tmp_path, monkeypatch):
    document = tmp_path / "testing.md"
    document.write_text("a\n<!-- fuzz -->\nold\n<!-- end fuzz -->\nb\n")
    monkeypatch.setattr(fuzz_command, "DOCUMENT", document)
    ended(Ended(0, "equal", ""), Ended(1, "refused", "no."))
    assert loom("fuzz", "--cases", "2", "--strategy", "single", "--write") == 0
    text = document.read_text()
    assert text.startswith("a\n<!-- fuzz -->\n2 cases of seed 1, from number 0 on")
    assert "| single | 2 | 1 | 0 | 1 | 0 | 0 |\n| all | 2 | 1 | 0 | 1 | 0 | 0 |\n<!-- end fuzz -->\nb" in text


@pytest.mark.parametrize("arguments", [("--cases", "0"), ("--first", "-1"), ("--processes", "0")])
def test_numbers_that_select_nothing_are_refused(arguments, capsys):
    assert loom("fuzz", *arguments) == 2
    assert "expected at least" in capsys.readouterr().err
