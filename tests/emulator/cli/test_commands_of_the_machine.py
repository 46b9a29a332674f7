"""bench, calibrate and doctor as commands: arguments, output, exit status."""

import argparse
import subprocess
import sys
from pathlib import Path

import pytest

from emulator.bench.command import BENCHES, DOCUMENTS, chosen_benches, write_section
from emulator.bench.rows import Table, as_markdown, as_text
from emulator.cli.commands import COMMANDS
from engine.cli.command import Environment
from engine.cli.main import main
from engine.domain.errors import SpecError

ENVIRONMENT = Environment(load_cluster=lambda name: None, cluster_names=lambda: (), presets=lambda: ())
TABLE = Table("Title", ("a", "b"), (("1", "22"), ("333", "4")))


def test_every_benchmark_has_its_place_in_its_document() -> None:
    for bench in BENCHES:
        text = (DOCUMENTS / f"{bench.document}.md").read_text(encoding="utf-8")
        assert f"<!-- bench {bench.name} -->" in text
        assert f"<!-- end {bench.name} -->" in text


def test_a_section_replaces_only_what_is_between_its_markers(tmp_path: Path) -> None:
    document = tmp_path / "bench.md"
    document.write_text("before\n<!-- bench x -->\nold\n<!-- end x -->\nafter\n")
    write_section(document, "x", "new")
    assert document.read_text() == "before\n<!-- bench x -->\nnew\n<!-- end x -->\nafter\n"
    with pytest.raises(SpecError, match=r"markers <!-- bench y --> .* are missing"):
        write_section(document, "y", "new")


def test_a_table_is_aligned_as_text_and_valid_as_markdown() -> None:
    assert as_text(TABLE) == "Title\n  a   b\n  1  22\n333   4"
    assert as_markdown(TABLE) == "Title\n\n| a | b |\n| ---: | ---: |\n| 1 | 22 |\n| 333 | 4 |"


def test_an_unknown_benchmark_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "nonsense"], COMMANDS, ENVIRONMENT) == 2
    assert "there is no benchmark nonsense: there are pacing, links" in capsys.readouterr().err


@pytest.mark.root
def test_the_doctor_says_that_this_machine_can_emulate(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"], COMMANDS, ENVIRONMENT) == 0
    assert "This machine can emulate." in capsys.readouterr().out


def test_a_benchmark_with_the_name_of_a_document_is_one_and_fidelity_stands_for_all_of_its_document() -> None:
    assert [bench.name for bench in chosen_benches(["strategies"])] == ["strategies"]
    assert {bench.document for bench in chosen_benches(["fidelity"])} == {"fidelity"}
    assert len(chosen_benches(["fidelity"])) > 5
    assert chosen_benches([]) == list(BENCHES)


def test_commands_have_distinct_names_and_help() -> None:
    parser = argparse.ArgumentParser()
    for command in COMMANDS:
        command.add_arguments(parser if command.name == "run" else argparse.ArgumentParser())
    assert [command.name for command in COMMANDS] == ["run", "doctor", "calibrate", "bench", "chaos"]
    assert all(command.help for command in COMMANDS)


def test_the_command_line_starts_without_torch_and_without_what_only_reports_need():
    """They take seconds to import, and a prediction of a small model a hundredth of one."""
    program = (
        "import sys, emulator.cli.main\n"
        "print(sorted({'torch', 'transformers', 'pandas', 'matplotlib', 'django'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
