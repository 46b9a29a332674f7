"""bench, chaos, fuzz and soak as commands of a checkout."""

import argparse

import pytest

from bench.command import BENCHES, chosen_benches
from bench.commands import COMMANDS
from bench.tables.documents import DOCUMENTS
from emulator.cli.main import COMMANDS as COMMANDS_OF_THE_PACKAGE
from engine.cli.command import Environment
from engine.cli.main import main

ENVIRONMENT = Environment(load_cluster=lambda name: None, cluster_names=lambda: (), presets=lambda: ())


def test_every_benchmark_has_its_place_in_its_document() -> None:
    for bench in BENCHES:
        text = (DOCUMENTS / f"{bench.document}.md").read_text(encoding="utf-8")
        kinds = {"": True, "-user": bench.rights, "-busy-2": bench.beside}
        for section in (bench.name + kind for kind, has in kinds.items() if has):
            assert f"<!-- bench {section} -->" in text
            assert f"<!-- end {section} -->" in text


def test_an_ordinary_users_figures_have_a_section_of_their_own_where_rights_decide(monkeypatch) -> None:
    for root, section in ((True, "messages"), (False, "messages-user")):
        monkeypatch.setattr("bench.command.is_machine_root", lambda root=root: root)
        (messages,), (matrix,) = chosen_benches(["messages"]), chosen_benches(["matrix"])
        assert (messages.section(), matrix.section()) == (section, "matrix")


def test_an_unknown_benchmark_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "nonsense"], COMMANDS, ENVIRONMENT) == 2
    assert "there is no benchmark nonsense: there are startup, reality" in capsys.readouterr().err


def test_a_benchmark_with_the_name_of_a_document_is_one_and_fidelity_stands_for_all_of_its_document() -> None:
    assert [bench.name for bench in chosen_benches(["strategies"])] == ["strategies"]
    assert {bench.document for bench in chosen_benches(["fidelity"])} == {"fidelity"}
    assert len(chosen_benches(["fidelity"])) > 5
    assert chosen_benches([]) == list(BENCHES)


def test_a_checkout_offers_them_and_an_installed_package_does_not() -> None:
    for command in COMMANDS:
        command.add_arguments(argparse.ArgumentParser())
    assert [command.name for command in COMMANDS] == ["bench", "chaos", "fuzz", "soak"]
    assert all(command.help for command in COMMANDS)
    assert not {command.name for command in COMMANDS} & {command.name for command in COMMANDS_OF_THE_PACKAGE}
