"""`./loom reproduce --emulate`: which points are emulated, and that a stopped command goes on."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

import topologies
from engine.cli import reproduce_command
from engine.cli.command import Environment
from engine.cli.commands import COMMANDS
from engine.cli.main import main
from engine.domain.errors import Cancelled
from engine.domain.report import RunReport
from engine.domain.spec import RunSpec
from engine.experiments.design.expand import expand
from engine.experiments.design.sources import Sources
from engine.experiments.execution.point import Emulation
from engine.experiments.results.rows import Row
from engine.reproductions.compared import compared_points
from engine.reproductions.shipped import experiment, shipped_rows
from engine.runs.predict import predict

SOURCES = Sources(topologies.load, topologies.preset)


def environment(emulate: Emulation | None) -> Environment:
    return Environment(
        load_cluster=topologies.load,
        cluster_names=topologies.names,
        presets=topologies.presets,
        emulation=None if emulate is None else lambda: emulate,
    )


def test_what_figure_4_publishes_is_voltage_on_six_machines_and_one_machine_alone() -> None:
    one = experiment("voltage-fig4")
    found = compared_points(one, expand(one, SOURCES))
    expected = [
        (model, *method)
        for model in ("BERT-Large", "ViT", "GPT-2")
        for method in (("single", 1), ("voltage", 6))
    ]
    assert [tuple(point.coordinates.values()) for point in found] == expected


def test_a_stopped_emulation_goes_on_and_shipped_emulations_of_other_points_stay(tmp_path: Path) -> None:
    quick = experiment("voltage-fig4")
    kept = tuple(
        factor.model_copy(update={"values": factor.values[1:2]}) if factor.name == "model" else factor
        for factor in quick.factors
    )
    published = tuple(value for value in quick.published if value.coordinates["model"] == "ViT")
    where = (*quick.where, "machines == 1 or machines == 6", "strategy != 'megatron'")
    one = quick.model_copy(update={"factors": kept, "published": published, "where": where})
    emulated: list[str] = []

    def run(spec: RunSpec) -> RunReport:
        if len(emulated) == 1 and not stopped:
            stopped.append(True)
            raise Cancelled("stopped")
        emulated.append(spec.strategy)
        return predict(spec)

    stopped: list[bool] = []
    chosen = environment(Emulation(run, "e1"))
    args = argparse.Namespace(environment=chosen, emulate=True, output=str(tmp_path), jobs=1)
    with pytest.raises(Cancelled):
        reproduce_command._carried_out(one, args)
    found = reproduce_command._carried_out(one, args)
    assert emulated == ["single", "voltage"]
    assert [row.coordinates["strategy"] for row in found if row.world == "emulated"] == emulated

    shipped = [row for row in shipped_rows(quick) if row.world == "emulated"]
    new = next(row for row in shipped if row.coordinates["machines"] == 6)
    rows: list[Row] = [row for row in shipped_rows(quick) if row.world == "predicted"]
    mixed = reproduce_command.with_shipped(quick, [*rows, new.model_copy(update={"wall_s": 1.0})])
    again = [row for row in mixed if row.world == "emulated"]
    assert len(again) == len(shipped) and [row.wall_s for row in again if row.digest == new.digest] == [1.0]


def test_emulating_what_has_no_emulated_points_is_refused_in_a_sentence(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["reproduce", "mcu-blocks", "--emulate"], COMMANDS, environment(None)) == 2
    assert "mcu-blocks has no emulated points" in capsys.readouterr().err
    assert main(["reproduce", "voltage-fig4", "--emulate"], COMMANDS, environment(None)) == 2
    assert (
        "this program has no emulator: use ./loom reproduce --emulate where Mininet is installed"
        in capsys.readouterr().err
    )
