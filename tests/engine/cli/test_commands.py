"""Predictions by the command line as a person uses it: statuses, JSON, tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import topologies
from engine.cli import main
from engine.cli.commands import COMMANDS
from engine.domain.stored import read_report
from tests.support.command_line import PREDICT, SHOWCASES, refused

ON_ALL = (*PREDICT, "--set", "planner=paper")


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


def test_a_showcase_and_a_run_beside_it_are_predicted_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    for name, strategy in (("edgeformer", "edgeformer"), ("edgeformer/single", "single")):
        assert main(["predict", "--showcase", name, "--json", "-"], COMMANDS, SHOWCASES) == 0
        spec = read_report(json.loads(capsys.readouterr().out), "output").needed().spec
        assert (spec.strategy, spec.cluster.name) == (strategy, "helpers-4")


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
