"""Machines that were calibrated elsewhere are in the palette, if their files are right."""

import json
import logging

import pytest

from engine.domain.calibration import Calibration, calibration_digest
from engine.domain.cluster import DeviceSpec
from engine.domain.host_times import HostProfile, MeasuredRow
from webapp.clusters.machines import machines

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
    settings.MACHINES_DIR = tmp_path / "machines"
    settings.MACHINES_DIR.mkdir()
    return settings.MACHINES_DIR


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


def imported(client, name="board", calibration=None):
    return client.post("/machines", {"name": name, "calibration": calibration or json.loads(BOARD.to_json())})


def test_an_operator_imports_a_machine_lists_it_and_removes_it(folder, alice):
    made = imported(alice)
    assert made.status_code == 201, made.json()
    assert made.json() | {"digest": ""} == {
        "name": "board",
        "host": "a board",
        "source": "",
        "flop_per_s": 7e9,
        "memory_byte_per_s": 1e9,
        "digest": "",
    }
    assert made.json()["digest"] == calibration_digest(BOARD.profile)
    assert alice.get("/machines").json() == [made.json()]
    names = [preset["name"] for preset in alice.get("/catalogue").json()["presets"]]
    assert "board" in names
    assert alice.delete("/machines/board").status_code == 204
    assert alice.get("/machines").json() == []
    assert list(folder.iterdir()) == []
    assert alice.delete("/machines/board").status_code == 404


@pytest.mark.parametrize(
    ("name", "calibration", "status", "words"),
    [
        ("laptop-core", None, 422, "is the name of a preset"),
        ("../board", None, 422, "name"),
        ("board", {"profile": {}}, 422, "missing"),
        (
            "board",
            json.loads(BOARD.to_json()) | {"device": {"name": "x", "flop_per_s": -1}},
            422,
            "flop_per_s",
        ),
        ("there", None, 409, "remove it first"),
    ],
)
def test_a_file_that_is_no_calibration_and_a_name_that_is_taken_are_refused(
    folder, alice, name, calibration, status, words
):
    (folder / "there.json").write_text(BOARD.to_json())
    answer = imported(alice, name, calibration)
    assert answer.status_code == status
    assert words in str(answer.json())
    assert [path.name for path in folder.iterdir()] == ["there.json"]


def test_a_viewer_sees_machines_and_changes_none(folder, victor):
    (folder / "there.json").write_text(BOARD.to_json())
    assert [row["name"] for row in victor.get("/machines").json()] == ["there"]
    assert imported(victor).status_code == 403
    assert victor.delete("/machines/there").status_code == 403
    assert (folder / "there.json").exists()


def test_the_palette_has_room_for_so_many_machines_and_no_more(folder, alice, monkeypatch):
    monkeypatch.setattr("webapp.clusters.machines.MOST_MACHINES", 1)
    assert imported(alice, "one").status_code == 201
    refused = imported(alice, "two")
    assert (refused.status_code, [path.name for path in folder.iterdir()]) == (409, ["one.json"])


def test_other_times_have_another_digest():
    (row,) = BOARD.profile.products
    slower = BOARD.profile.model_copy(update={"products": (row.model_copy(update={"s_per_flop": 2e-9}),)})
    assert calibration_digest(slower) != calibration_digest(BOARD.profile)
    assert calibration_digest(BOARD.profile.model_copy()) == calibration_digest(BOARD.profile)
