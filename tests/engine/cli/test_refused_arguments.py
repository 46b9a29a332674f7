"""Wrong arguments, files and names are refused in one sentence with status 2."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.cli import main
from engine.cli.commands import COMMANDS
from tests.support.command_line import PREDICT, SHOWCASES, refused


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
