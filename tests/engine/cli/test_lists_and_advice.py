"""Lists, comparisons and advice by the command line, and what holds for every command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import topologies
from engine.cli import main
from engine.cli.command import Command
from engine.cli.commands import COMMANDS
from engine.cli.list_command import LISTS
from engine.cli.main import build_parser
from engine.strategies.registry import STRATEGIES
from tests.support.command_line import ENVIRONMENT, PREDICT, SHOWCASES, refused


@pytest.mark.parametrize(
    ("what", "keys", "some"),
    [
        ("clusters", {"name", "title", "num_devices", "num_links"}, {"lab-3", "lab-4", "voltage-6"}),
        ("devices", {"name", "flop_per_s", "memory_bytes", "source"}, {"raspberry-pi-4", "voltage-vm"}),
        ("models", {"name", "title", "num_parameters", "trained"}, {"demo-lm", "minilm", "bert-large"}),
        ("families", {"name", "architecture", "keys", "restrictions"}, {"gpt2", "llama", "llava"}),
        ("strategies", {"name", "title", "paper", "params"}, {"single", "gpipe", "megatron", "voltage"}),
    ],
)
def test_lists_are_tables_and_json(loom: Any, what: str, keys: set[str], some: set[str]) -> None:
    rows = json.loads(loom("list", what, "--json").out)
    assert some <= {row["name"] for row in rows}
    assert all(keys <= set(row) for row in rows)
    shown = loom("list", what)
    assert shown.status == 0
    for name in some:
        assert name in shown.out


def test_runs_are_compared_against_the_chosen_baseline(loom: Any, tmp_path: Path) -> None:
    files = []
    for name in ("gpipe", "megatron"):
        files.append(tmp_path / f"{name}.json")
        loom(*PREDICT[:-1], name, "--json", files[-1])
    shown = loom("compare", *files)
    assert shown.status == 0
    assert '"megatron"' in shown.out and "End-to-end latency" in shown.out and "time per token" in shown.out
    data = json.loads(loom("compare", *files, "--json", "--baseline", 2).out)
    assert data["baseline"] == 1
    assert data["metrics"][0]["deltas"][1] == 0
    assert [row["path"] for row in data["params"] if row["differs"]] == ["strategy"]


def test_every_command_explains_itself(loom: Any) -> None:
    for command in COMMANDS:
        result = loom(command.name, "--help")
        assert result.status == 0 and command.name in result.out
    assert "predict" in loom("--help").out


def test_a_reader_that_has_gone_is_no_error() -> None:
    """As a table and as JSON: each is the command in a copy of the process, to the end of its interpreter."""
    program = (
        "import os, sys, topologies\n"
        "from engine.cli import main\n"
        "from engine.cli.command import Environment\n"
        "from engine.cli.commands import COMMANDS\n"
        "environment = Environment(topologies.load, topologies.names, topologies.presets)\n"
        "for extra in ([], ['--json']):\n"
        "    if not os.fork():\n"
        "        sys.exit(main(['list', 'devices', *extra], COMMANDS, environment))\n"
        "    status = os.waitstatus_to_exitcode(os.wait()[1])\n"
        "    if status:\n"
        "        sys.exit(status)\n"
    )
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(topologies.__file__).parents[1],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


def test_two_commands_may_not_have_one_name() -> None:
    twice: tuple[Command, ...] = (COMMANDS[0], COMMANDS[0])
    with pytest.raises(ValueError, match="same name"):
        build_parser(twice)


def test_showcases_are_listed_with_the_runs_beside_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "showcases", "--json"], COMMANDS, SHOWCASES) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["lime"]["others"] == ["pipeline_offload", "tpi_llm_offload"]
    assert rows["mcu"]["cluster"] == "mcu-8"


@pytest.mark.parametrize("what", LISTS)
def test_every_list_is_also_a_table(capsys: pytest.CaptureFixture[str], what: str) -> None:
    assert main(["list", what, "--json"], COMMANDS, SHOWCASES) == 0
    rows = json.loads(capsys.readouterr().out)
    assert main(["list", what], COMMANDS, SHOWCASES) == 0
    shown = capsys.readouterr().out
    assert rows and all(next(iter(row.values())) in shown for row in rows)


def test_advice_ranks_every_strategy_and_tries_changes(loom: Any) -> None:
    result = loom("advise", "lab-3", "--model", "tiny-gpt2", "--new-tokens", 2, "--json", "-")
    document = json.loads(result.out)
    assert {row["strategy"] for row in document["strategies"]} == {each.name for each in STRATEGIES}
    times = [row["total_s"] for row in document["strategies"] if row["total_s"] is not None]
    assert times == sorted(times) and len(times) > 10
    assert {change["kind"] for change in document["changes"]} >= {"fewer", "more"}


def test_advice_by_another_figure_shows_reasons(loom: Any) -> None:
    drafts = ("--draft-model", "tiny-gpt2")  # which is simulated further than the others
    sizes = ("--new-tokens", 30, "--by", "peak_memory_bytes")
    result = loom("advise", "lab-3", "--model", "tiny-gpt2", *drafts, *sizes)
    assert result.status == 0
    for part in ("first token", "Computes on", "Estimated from 3 of 30 tokens.", "What one change would do"):
        assert part in result.out


def test_advice_takes_no_strategy(loom: Any) -> None:
    refused(loom("advise", "lab-3", "--model", "tiny-gpt2", "--strategy", "single"), "ranks all strategies")


def test_advise_answers_a_question_in_one_sentence_first(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["lab-3", "--model", "tiny-gpt2", "--ask", "buy", "--tokens-per-s", "10"]
    assert main(["advise", *arguments], COMMANDS, ENVIRONMENT) == 0
    assert capsys.readouterr().out.startswith("Buy nothing for ")


@pytest.mark.parametrize("rate", ["nan", "inf", "0"])
def test_advise_refuses_a_rate_that_is_none(loom: Any, rate: str) -> None:
    result = loom("advise", "lab-3", "--model", "tiny-gpt2", "--ask", "buy", "--tokens-per-s", rate)
    refused(result, f"--tokens-per-s is {rate}: expected tokens per second")
