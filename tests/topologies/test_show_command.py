"""`loom show`: every part of a cluster or drawing in words, or the same cluster as a file."""

from __future__ import annotations

from pathlib import Path

import pytest

import topologies
from emulator.cli.main import COMMANDS, ENVIRONMENT
from engine.cli import main
from engine.domain.links import LinkSpec
from topologies.drawn import Drawn
from topologies.layout import CanvasLayout
from topologies.show_command import _show

TEXT = """
name = "two-boards"
title = "Two boards"
source = "desk"

[[device]]
name = "desk"
preset = "raspberry-pi-4"

[[device]]
name = "shelf"
preset = "raspberry-pi-3"

[[switch]]
name = "hub"

[[link]]
a = "desk"
b = "hub"
bit_per_s = 100e6
reverse_bit_per_s = 20e6
delay_s = 0.002

[[link]]
a = "shelf"
b = "hub"
bit_per_s = 100e6
loss_frac = 0.01
enabled = true

[[group]]
name = "Rack"
members = ["desk", "shelf"]
"""


def show(capsys: pytest.CaptureFixture[str], *argv: object) -> tuple[int, str, str]:
    """Status, output and errors; spaces of the tables are one space each."""
    status = main(["show", *map(str, argv)], COMMANDS, ENVIRONMENT)
    said = capsys.readouterr()
    return status, "\n".join(" ".join(line.split()) for line in said.out.splitlines()), said.err


def test_a_file_is_shown_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "two.toml").write_text(TEXT, "utf-8")
    status, out, err = show(capsys, tmp_path / "two.toml")
    assert (status, err) == (0, "")
    for line in (
        "two-boards: Two boards",
        "desk 16 GFLOP/s 4 GB 4.8 GB/s Raspberry Pi 4 (4 GB); holds the prompt",
        "desk--hub 100 Mbit/s →, 20 Mbit/s ← 2 ms 0 %",
        "shelf--hub 100 Mbit/s 0 s 1 %",
        "Switches: hub.",
        "Group Rack: desk, shelf.",
    ):
        assert f"\n{line}\n" in f"\n{out}\n"


def test_a_cluster_on_which_nothing_can_run_is_shown_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "two.toml").write_text(TEXT.replace("enabled = true", "enabled = false"), "utf-8")
    status, out, err = show(capsys, tmp_path / "two.toml")
    assert "shelf--hub (off) 100 Mbit/s" in out
    assert (status, err.count("\n")) == (2, 1)
    assert "without shelf--hub: shelf cannot reach desk" in err


@pytest.mark.parametrize("form", topologies.FORMATS)
def test_a_drawing_is_written_as_a_cluster_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: topologies.Format
) -> None:
    """What a command prints is a file that the next command reads."""
    (tmp_path / "net.gml").write_text(
        'graph [ node [ id 1 label "a" ] node [ id 2 label "b" ] edge [ source 1 target 2 ] ]', "utf-8"
    )
    assert main(["show", str(tmp_path / "net.gml"), "--as", form], COMMANDS, ENVIRONMENT) == 0
    written = tmp_path / f"net.{form}"
    written.write_text(capsys.readouterr().out, "utf-8")
    assert topologies.load_drawing(written) == topologies.load_drawing(tmp_path / "net.gml")


def test_a_wrong_file_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "two.yaml").write_text("name: two\n\tsource: a\n", "utf-8")
    status, out, err = show(capsys, tmp_path / "two.yaml")
    assert (status, out) == (2, "")
    assert (
        err
        == "loom show: two.yaml: no valid YAML: a tab cannot indent: write spaces (at line 2, column 1).\n"
    )


def test_control_characters_of_a_file_do_not_reach_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = TEXT.replace("Two boards", "Two\\u001b[31m boards").replace('"Rack"', '"R\\u0007"')
    (tmp_path / "two.toml").write_text(text, "utf-8")
    _, out, _ = show(capsys, tmp_path / "two.toml")
    assert "two-boards: Two\\x1b[31m boards" in out and "Group R\\x07: " in out


def test_loss_is_that_of_each_direction_and_off_is_known_by_either_name(
    capsys: pytest.CaptureFixture[str],
) -> None:
    link = LinkSpec(a="a", b="b", bit_per_s=1e6, loss_frac=0.01, reverse_loss_frac=0.02)
    spec = topologies.load("lab-3").model_copy(update={"links": (link,)})
    _show(Drawn(spec, CanvasLayout(disabled=("b--a",))))
    out = " ".join(capsys.readouterr().out.split())
    assert "a--b (off) 1 Mbit/s 0 s 1 % →, 2 % ←" in out


def test_a_cluster_file_is_utf_8_whatever_the_encoding_of_the_output(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "two.toml").write_text(TEXT.replace("Two boards", "Zwölf"), "utf-8")
    with (tmp_path / "out.json").open("w", encoding="ascii") as output:
        monkeypatch.setattr("sys.stdout", output)
        assert main(["show", str(tmp_path / "two.toml"), "--as", "json"], COMMANDS, ENVIRONMENT) == 0
    assert topologies.load_drawing(tmp_path / "out.json").spec.title == "Zwölf"
