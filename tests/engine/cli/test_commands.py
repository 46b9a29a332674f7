"""The command line as a person uses it: statuses, sentences, JSON, tables. Runs are small predictions."""

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
from engine.cli.command import Command, Environment
from engine.cli.commands import COMMANDS
from engine.cli.list_command import LISTS
from engine.cli.main import build_parser
from engine.domain.stored import read_report
from engine.strategies.registry import STRATEGIES
from topologies.showcases import showcase, showcases

ENVIRONMENT = Environment(topologies.load, topologies.names, topologies.presets)
PREDICT = ("predict", "lab-3", "--model", "tiny-gpt2", "--weights", "random", "--strategy", "megatron")
ON_ALL = (*PREDICT, "--set", "planner=paper")


class Result:
    def __init__(self, status: int, out: str, err: str):
        self.status, self.out, self.err = status, out, err


@pytest.fixture
def loom(capsys: pytest.CaptureFixture[str]) -> Any:
    def call(*argv: object) -> Result:
        status = main([str(part) for part in argv], COMMANDS, ENVIRONMENT)
        return Result(status, *capsys.readouterr())

    return call


def refused(result: Result, *parts: str) -> None:
    """Bad input: status 2, nothing on standard output, one sentence that has all `parts`."""
    assert result.status == 2, result.out
    assert result.out == ""
    assert result.err.count("\n") == 1 and result.err.rstrip().endswith("."), result.err
    assert "Traceback" not in result.err
    for part in parts:
        assert part in result.err


def test_a_prediction_shows_latency_devices_links_and_attribution(loom: Any) -> None:
    result = loom(*ON_ALL)
    assert result.status == 0
    for part in ("finished", "predicted", "end-to-end latency", "compute", "desk", "window", "desk → hub"):
        assert part in result.out


def test_json_on_standard_output_is_all_there_is(loom: Any) -> None:
    result = loom(*PREDICT, "--json", "-", "--new-tokens", 3, "--prompt-tokens", 5, "--seed", 9)
    report = read_report(json.loads(result.out), "output").needed()
    assert report.world == "predicted"
    assert len(report.requests[0].token_s) == 3
    assert report.spec.workload.prompt_tokens == 5 and report.seed == 9
    assert sum(report.attribution.model_dump().values()) == pytest.approx(report.latency_s)


def test_json_to_a_file_leaves_the_tables(loom: Any, tmp_path: Path) -> None:
    result = loom(*PREDICT, "--json", tmp_path / "run.json")
    assert "end-to-end latency" in result.out
    report = read_report(json.loads((tmp_path / "run.json").read_text("utf-8")), "file").needed()
    assert report.outcome.kind == "finished"


def test_the_json_report_has_the_promised_keys(loom: Any) -> None:
    report = json.loads(loom(*PREDICT, "--json", "-").out)
    assert {
        "spec",
        "plan",
        "world",
        "dilation",
        "latency_s",
        "ttft_s",
        "tpot_s",
        "tokens_per_s",
        "output_tokens",
        "text",
        "devices",
        "links",
        "layers",
        "attribution",
        "correctness",
        "fidelity",
        "scenario",
        "versions",
        "seed",
    } <= set(report)
    assert {"name", "busy_s", "wait_s", "peak_memory_bytes", "flops"} <= set(report["devices"][0])
    assert {"a", "b", "direction", "bytes", "payload_bytes", "busy_s"} <= set(report["links"][0])
    assert {"layer", "device", "start_s", "end_s"} <= set(report["layers"][0])
    assert {"compute_s", "link_s", "load_s", "staging_s", "wait_s", "idle_s"} == set(report["attribution"])


def test_the_same_arguments_predict_the_same_report(loom: Any) -> None:
    first, second = (json.loads(loom(*PREDICT, "--json", "-").out) for _ in range(2))
    assert first == second


def test_parameters_are_json_or_text(loom: Any) -> None:
    argv = ("predict", "lab-3", "--model", "tiny-gpt2", "--weights", "random", "--strategy", "voltage")
    result = loom(*argv, "--set", "ratio=proportional", "--set", "causal_trim=true", "--json", "-")
    assert json.loads(result.out)["spec"]["params"] == {"ratio": "proportional", "causal_trim": True}


def test_a_scenario_slows_the_run_and_is_kept_in_the_report(loom: Any, tmp_path: Path) -> None:
    file = tmp_path / "slow.toml"
    change = 'at_s = 0\nkind = "set_rate"\nlink = "shelf--hub"\nbit_per_s = 1e5\n'
    file.write_text(f"[[change]]\n{change}", "utf-8")
    plain = json.loads(loom(*ON_ALL, "--json", "-").out)
    slowed = json.loads(loom(*ON_ALL, "--scenario", file, "--json", "-").out)
    assert slowed["latency_s"] > 2 * plain["latency_s"]
    assert slowed["scenario"]["changes"][0]["link"] == "shelf--hub"
    (tmp_path / "slow.json").write_text(json.dumps(slowed), "utf-8")
    again = json.loads(loom(*ON_ALL, "--scenario", tmp_path / "slow.json", "--json", "-").out)
    assert again == slowed


DROP = '[[change]]\nat_s = 0.01\nkind = "drop_device"\ndevice = "shelf"\n'


def test_a_failed_device_is_a_result_with_its_own_status_and_a_report(loom: Any, tmp_path: Path) -> None:
    file = tmp_path / "drop.toml"
    file.write_text(DROP, "utf-8")
    result = loom(*ON_ALL, "--failover", "stop", "--scenario", file, "--json", tmp_path / "run.json")
    assert result.status == 3
    assert "peer lost" in result.out and "shelf failed" in result.out
    outcome = json.loads((tmp_path / "run.json").read_text("utf-8"))["outcome"]
    assert (outcome["kind"], outcome["device"]) == ("peer_lost", "shelf")
    assert outcome["time_s"] >= 0.01


def test_a_run_continues_after_a_failure_unless_failover_is_stop(loom: Any, tmp_path: Path) -> None:
    file = tmp_path / "drop.toml"
    file.write_text(DROP, "utf-8")
    result = loom(*ON_ALL, "--scenario", file, "--json", tmp_path / "run.json")
    assert result.status == 0
    (recovery,) = json.loads((tmp_path / "run.json").read_text("utf-8"))["recoveries"]
    assert (recovery["device"], recovery["how"]) == ("shelf", "killed")


def test_an_encoder_generates_nothing_unless_asked(loom: Any) -> None:
    result = loom("predict", "lab-3", "--model", "tiny-bert", "--weights", "random", "--strategy", "single")
    assert result.status == 0
    figures = result.out[result.out.index("end-to-end latency") :]
    assert "output token" not in figures and "tokens per second" not in figures


def test_a_slow_device_takes_longer(loom: Any, tmp_path: Path) -> None:
    text = topologies.dump_toml(topologies.load("lab-3"))
    assert "flop_per_s = 16000000000.0" in text
    (tmp_path / "slow.toml").write_text(text.replace("= 16000000000.0", "= 1e6"), "utf-8")
    slow, fast = (
        json.loads(loom("predict", cluster, *PREDICT[2:], "--json", "-").out)["latency_s"]
        for cluster in (tmp_path / "slow.toml", "lab-3")
    )
    assert slow > fast


@pytest.mark.parametrize(
    ("extra", "parts"),
    [
        (("--set", "byy=1"), ["--set of strategy megatron", "byy", "unknown key"]),
        (("--set", "by"), ["--set by", "KEY=VALUE"]),
        (("--set", "by=memory", "--set", "by=memory"), ["by is set twice"]),
        (("--new-tokens", "-1"), ["new_tokens", "-1"]),
        (("--requests", "0"), ["requests", "0"]),
        (("--seed", "-1"), ["seed", "-1"]),
        (("--new-tokens", "many"), ["--new-tokens", "many"]),
        (("--dilation", "0"), ["--dilation", "'0'", "native"]),
        (("--dilation", "fast"), ["--dilation", "'fast'"]),
        (("--pattern", "steady"), ["--pattern", "steady"]),
        (("--prompt", "x", "--prompt-tokens", "3"), ["not allowed with"]),
        (("--scenario", "nowhere.toml"), ["nowhere.toml", "cannot read the scenario"]),
        (("--json", "/nowhere/at/all.json"), ["/nowhere/at/all.json", "cannot write"]),
        (("--colour",), ["unrecognized arguments: --colour"]),
    ],
)
def test_a_wrong_argument_is_one_sentence(loom: Any, extra: tuple[str, ...], parts: list[str]) -> None:
    refused(loom(*PREDICT, *extra), *parts)


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ('at_s = 1\nkind = "link_down"\nlink = "desk--moon"\n', ["desk--moon", "changes[0]", "desk--hub"]),
        ('at_s = 1\nkind = "drop_device"\ndevice = "moon"\n', ["moon", "desk, shelf, window"]),
        ('at_s = -1\nkind = "link_down"\nlink = "desk--hub"\n', ["changes[0]", "at_s", "-1"]),
        ('at_s = 1\nkind = "explode"\n', ["changes[0]", "explode"]),
        ('at_s = 1\nkind = "set_rate"\nlink = "desk--hub"\nbit_per_s = -5\n', ["bit_per_s", "-5"]),
        ('at_s = 1\nkind = "link_down"\nlink = "desk--hub"\nspeed = 1\n', ["speed", "unknown key"]),
    ],
)
def test_a_wrong_scenario_is_named_with_file_and_place(
    loom: Any, tmp_path: Path, change: str, parts: list[str]
) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(f"[[change]]\n{change}", "utf-8")
    refused(loom(*PREDICT, "--scenario", file), "bad.toml", *parts)


@pytest.mark.parametrize(
    ("cluster", "parts"),
    [
        ('name = "x"\nsource = "a"\ncolour = 1\n', ["bad.toml, colour", "unknown key"]),
        (
            'name = "x"\nsource = "a"\n[[device]]\nname = "a"\npreset = "mcu"\nflop_per_s = -1\n',
            ["bad.toml, device[0].flop_per_s", "-1"],
        ),
        ("name = ", ["bad.toml", "no valid TOML"]),
    ],
)
def test_a_wrong_cluster_is_named_with_file_and_field(
    loom: Any, tmp_path: Path, cluster: str, parts: list[str]
) -> None:
    (tmp_path / "bad.toml").write_text(cluster, "utf-8")
    refused(loom("predict", tmp_path / "bad.toml", *PREDICT[2:]), *parts)


def test_unknown_names_are_answered_with_the_known_ones(loom: Any) -> None:
    refused(loom("predict", "lab-9", *PREDICT[2:]), "lab-9", "lab-3")
    refused(loom("predict", "lab-3", "--model", "gpt9", "--strategy", "gpipe"), "gpt9", "tiny-gpt2")
    refused(loom(*PREDICT[:-1], "magic"), "magic", "gpipe", "voltage")


def test_a_model_that_fits_nowhere_says_what_is_missing(loom: Any) -> None:
    argv = ("predict", "lab-3", "--model", "llama-2-13b", "--weights", "random", "--strategy", "single")
    refused(loom(*argv), "desk", "GB")


def test_a_forgotten_argument_is_named(loom: Any) -> None:
    refused(loom("predict", "lab-3", "--model", "tiny-gpt2"), "--strategy")
    refused(loom(), "COMMAND")
    refused(loom("dance"), "dance", "predict")


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


def test_the_choices_of_a_recorded_run_are_an_input_of_another_method(loom: Any, tmp_path: Path) -> None:
    def asked(method: str, *more: object) -> tuple[object, ...]:
        run = ("predict", "lab-3", "--model", "tiny-qwen3-moe", "--strategy", method, "--prompt-tokens", 9)
        return (*run, "--new-tokens", 2, *more)

    recorded, again = tmp_path / "recorded.json", tmp_path / "again.json"
    assert loom(*asked("expert_parallel", "--likely-experts", 4, "--json", recorded)).status == 0
    found = json.loads(recorded.read_text())["method"]["likely_experts"]
    assert found == 4
    assert loom(*asked("gpipe", "--likely-experts", recorded, "--json", again)).status == 0
    assert json.loads(again.read_text())["spec"]["model"]["likely_experts"] == found
    refused(loom(*asked("gpipe", "--likely-experts", again)), "again.json: expected a number, or the report")


def test_a_draft_model_and_the_acceptance_of_a_recorded_run_are_inputs(loom: Any, tmp_path: Path) -> None:
    def asked(*more: object) -> tuple[object, ...]:
        sizes = ("--prompt-tokens", 9, "--new-tokens", 30)
        return ("predict", "lab-3", "--model", "tiny-llama", "--strategy", "speculative", *sizes, *more)

    recorded, again = tmp_path / "recorded.json", tmp_path / "again.json"
    refused(
        loom(*asked()), "tiny-llama has no draft model: choose one (--draft-model), or let its first layers"
    )
    drafts = ("--draft-model", "tiny-qwen2")
    assert loom(*asked(*drafts, "--likely-acceptance", 0.4, "--json", recorded)).status == 0
    found = json.loads(recorded.read_text())
    assert found["spec"]["model"]["draft"]["name"] == "tiny-qwen2"
    assert found["spec"]["model"]["likely_acceptance"] == 0.4
    measured = found["method"]["likely_acceptance"]
    assert measured != 0.4
    shown = loom(*asked(*drafts, "--likely-acceptance", recorded, "--json", again))
    assert shown.status == 0
    assert json.loads(again.read_text())["spec"]["model"]["likely_acceptance"] == measured
    assert "drafted tokens" in shown.out
    refused(loom(*asked(*drafts, "--likely-acceptance", 1.5)), "likely_acceptance")
    refused(loom(*asked("--draft-model", "gpt2")), "the draft model gpt2 has 50257 tokens and tiny-llama")
    refused(loom(*asked("--draft-weights", "random")), "random: there is no draft model: add --draft-model")
    refused(loom(*PREDICT, "--likely-acceptance", 0.5), "drafts no tokens, and there is no draft model: add")
    own = ("--set", "draft_layers=1", "--likely-acceptance", 0.5, "--json", again)
    assert loom(*asked(*own)).status == 0
    assert json.loads(again.read_text())["spec"]["model"]["likely_acceptance"] == 0.5


def test_comparing_what_is_no_report_is_refused(loom: Any, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    loom(*PREDICT, "--json", good)
    bad.write_text("{}", "utf-8")
    refused(loom("compare", good, bad), "bad.json")
    bad.write_text("{", "utf-8")
    refused(loom("compare", good, bad), "bad.json", "no valid JSON")
    refused(loom("compare", good, tmp_path / "none.json"), "none.json", "cannot read")
    refused(loom("compare", good), "expected 2 to 50")
    refused(loom("compare", good, good, "--baseline", 3), "--baseline 3", "1 to 2")


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


SHOWCASES = ENVIRONMENT._replace(showcases=showcases, showcase=showcase)


def test_a_showcase_and_a_run_beside_it_are_predicted_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    for name, strategy in (("edgeformer", "edgeformer"), ("edgeformer/single", "single")):
        assert main(["predict", "--showcase", name, "--json", "-"], COMMANDS, SHOWCASES) == 0
        spec = read_report(json.loads(capsys.readouterr().out), "output").needed().spec
        assert (spec.strategy, spec.cluster.name) == (strategy, "helpers-4")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--showcase", "nothing"], "no showcase nothing: there are answer, together, too-large"),
        (["--showcase", "lime/nothing"], "showcase lime has no run nothing beside its own"),
        (["--showcase", "lime", "--seed", "3"], "it has a whole run, so seed cannot be given, too"),
    ],
)
def test_a_wrong_showcase_is_refused(
    capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    assert main(["predict", *arguments], COMMANDS, SHOWCASES) == 2
    assert sentence in capsys.readouterr().err


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


def test_a_plan_from_a_file_is_run_and_a_reports_division_taken(loom: Any, tmp_path: Path) -> None:
    by_hand = tmp_path / "plan.json"
    stages = [{"device": "desk", "layers": 1}, {"device": "window", "layers": 1}]
    by_hand.write_text(json.dumps({"devices": stages}))
    run = ("predict", "lab-3", "--model", "tiny-gpt2", "--strategy", "gpipe")
    report = tmp_path / "report.json"
    assert loom(*run, "--set", f"plan={by_hand}", "--json", report).status == 0
    again = json.loads(loom(*run, "--set", f"plan={report}", "--json", "-").out)
    assert again["spec"]["params"]["plan"]["devices"] == stages
    refused(loom(*run, "--set", f"plan={tmp_path / 'none.json'}"), "cannot be read")
    by_hand.write_text("{")
    refused(loom(*run, "--set", f"plan={by_hand}"), "is no JSON")


def test_advise_answers_a_question_in_one_sentence_first(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["lab-3", "--model", "tiny-gpt2", "--ask", "buy", "--tokens-per-s", "10"]
    assert main(["advise", *arguments], COMMANDS, ENVIRONMENT) == 0
    assert capsys.readouterr().out.startswith("Buy nothing for ")


@pytest.mark.parametrize("rate", ["nan", "inf", "0"])
def test_advise_refuses_a_rate_that_is_none(loom: Any, rate: str) -> None:
    result = loom("advise", "lab-3", "--model", "tiny-gpt2", "--ask", "buy", "--tokens-per-s", rate)
    refused(result, f"--tokens-per-s is {rate}: expected tokens per second")
