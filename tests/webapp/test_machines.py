"""Machines that were calibrated elsewhere are in the palette, if their files are right."""

import logging

import pytest

from engine.domain.calibration import Calibration
from engine.domain.cluster import DeviceSpec
from engine.domain.host_times import HostProfile, MeasuredRow
from webapp.machines import machines

BOARD = Calibration(
    profile=HostProfile(
        host="a board",
        products=(MeasuredRow(rows=1, s_per_flop=1e-9),),
        elementwise_s_per_element=1e-9,
        op_overhead_s=1e-6,
        memory_byte_per_s=1e10,
    ),
    device=DeviceSpec(
        name="this-machine", flop_per_s=7e9, memory_bytes=1e9, memory_byte_per_s=1e9, basis="calibrated"
    ),
)


@pytest.fixture
def folder(tmp_path, settings):
    settings.MACHINES_DIR = tmp_path
    return tmp_path


def test_a_machine_is_called_as_its_file(folder):
    (folder / "board.json").write_text(BOARD.to_json())
    (row,) = machines()
    assert (row.name, row.flop_per_s, row.basis) == ("board", 7e9, "calibrated")


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("board", "{}", "profile: missing"),
        ("laptop-core", BOARD.to_json(), "is the name of a preset"),
        ("Not a name", BOARD.to_json(), "name"),
        ("large", " " * (1 << 21), "at most"),
    ],
)
def test_a_file_of_no_use_is_left_out_and_the_log_says_why(folder, caplog, name, text, words):
    (folder / f"{name}.json").write_text(text)
    (folder / "good.json").write_text(BOARD.to_json())
    with caplog.at_level(logging.WARNING):
        assert [row.name for row in machines()] == ["good"]
    assert words in caplog.text and name in caplog.text


def test_without_the_folder_there_are_none(tmp_path, settings):
    settings.MACHINES_DIR = tmp_path / "absent"
    assert machines() == []
