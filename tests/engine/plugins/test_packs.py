"""Packs of data: devices, clusters, traces and models of an installed package are there like our own, none of
its code runs, and what is wrong with one is a sentence that harms nothing else.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import topologies
from engine.domain.scenario import Scenario, SetRate
from engine.models import catalogue
from engine.plugins.packs import packs
from tests.devtools.rooms import ROOT
from tests.support.outside import edgeloom, install
from topologies.files import clusters_of_packs
from topologies.left_out import left_out_of_packs
from topologies.presets import presets_of_packs
from topologies.traces import scenario_of, traces, traces_of_packs

GUIDE = (ROOT / "docs" / "guides" / "own-data.md").read_text(encoding="utf-8")
TABLES = {text.split("\n")[0]: text for text in re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)}
BOARD, MODEL = TABLES["[[device]]"], TABLES["[[model]]"]
"""The preset and the model of the guide, `my-board` and `my-gpt2`."""

ROOM = """name = "my-room"
source = "one"

[[device]]
name = "one"
preset = "my-board"

[[device]]
name = "two"
preset = "raspberry-pi-4"

[[link]]
a = "one"
b = "two"
bit_per_s = 1e8
delay_s = 1e-3
"""
CACHED = (
    packs,
    presets_of_packs,
    clusters_of_packs,
    traces_of_packs,
    catalogue.models_of_packs,
    catalogue._table,
)


def forget() -> None:
    for function in CACHED:
        function.cache_clear()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("LOOM_DATA", raising=False)
    forget()
    yield tmp_path
    monkeypatch.undo()
    forget()


def write_pack(site: Path, name: str = "my_lab", **files: str) -> Path:
    """A package with our board, room, trace and model, or `files` in their place."""
    folder = site / name
    for file, text in {
        "__init__.py": f"open({str(site / 'imported')!r}, 'w').close()\n",
        "devices.toml": BOARD,
        "clusters/my-room.toml": ROOM,
        "traces/bus.csv": "at_s,bit_per_s\n0,5000000\n2,9000000\n",
        "models.toml": MODEL,
        **{file.replace("__", "/").replace("_toml", ".toml"): text for file, text in files.items()},
    }.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    install(site, f"{name} = {name}", name.replace("_", "-"), "edgeloom.data")
    return folder


def test_what_a_pack_brings_is_there_after_our_own_and_its_code_is_not_imported(site: Path) -> None:
    write_pack(site)
    assert left_out_of_packs() == ()
    assert topologies.presets()[-1].name == "my-board" and topologies.names()[-1] == "my-room"
    room = topologies.load("my-room")
    assert room.devices[0].flop_per_s == 3e9
    assert catalogue.rows()[-1].name == "my-gpt2"
    spec, weights = catalogue.resolve("my-gpt2")
    assert (spec.num_layers, weights.kind) == (3, "random")
    assert not (site / "imported").exists() and "my_lab" not in sys.modules


def test_a_trace_of_a_pack_is_played_on_the_link_that_is_named(site: Path) -> None:
    write_pack(site)
    assert list(traces())[-1] == "bus"
    assert scenario_of("bus@one--two") == Scenario(
        changes=(
            SetRate(at_s=0, link="one--two", bit_per_s=5e6),
            SetRate(at_s=2, link="one--two", bit_per_s=9e6),
        )
    )


def test_the_command_predicts_with_a_cluster_a_model_and_a_trace_of_a_pack(site: Path) -> None:
    write_pack(site)
    words = ("my-room", "--model", "my-gpt2", "--strategy", "gpipe", "--prompt-tokens", "4")
    done = edgeloom(
        site, "predict", *words, "--scenario", "bus@one--two", "--json", "run.json", path=str(site)
    )
    assert done.returncode == 0, done.stderr
    changes = json.loads((site / "run.json").read_text())["scenario"]["changes"]
    assert [(change["link"], change["bit_per_s"]) for change in changes] == [
        ("one--two", 5e6),
        ("one--two", 9e6),
    ]
    done = edgeloom(site, "predict", *words, "--scenario", "tram@one--two", path=str(site))
    assert "There is no scenario tram@one--two: choose one of" in done.stderr
    assert "my-board" in edgeloom(site, "list", "devices", path=str(site)).stdout


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"devices_toml": "[[device]\n"}, "devices.toml: is no TOML that can be read"),
        ({"devices_toml": "[[board]]\n"}, "devices.toml: expected [[device]] tables and nothing else"),
        ({"devices_toml": BOARD.replace("3e9", "-1")}, "device[0], flop_per_s"),
        ({"devices_toml": BOARD + BOARD}, "the preset my-board is there twice"),
        ({"devices_toml": BOARD.replace("my-board", "jetson-nano")}, "of this name already: rename it"),
        ({"clusters__my-room_toml": ROOM.replace('"my-board"', '"no-board"')}, "no-board"),
        ({"clusters__lab-3_toml": ROOM}, "cluster lab-3: there is a cluster of this name already"),
        ({"models_toml": MODEL.replace('"gpt2"', '"gpt9"')}, "gpt9"),
        ({"models_toml": MODEL.replace("source", "sauce")}, "got name, title, sauce, config"),
        ({"models_toml": MODEL.replace('"my-gpt2"', "[1]")}, "expected the texts name, title and source"),
        (
            {"models_toml": MODEL.replace("my-gpt2", "gpt2-large")},
            "model gpt2-large: there is a model of this",
        ),
        (
            {"traces__walk.csv": "at_s,bit_per_s\n0,5e6\n"},
            "trace walk: there is a trace of this name already",
        ),
        ({"traces__bus.json": "{}"}, "traces/bus.json: there is a trace of this name already"),
        ({"traces__README.md": "Buses."}, "README.md"),
        ({"traces__two.csv": "at_s,link,bit_per_s\n0,a--b,5e6\n0,b--c,5e6\n"}, "of one link"),
        (
            {"traces__lost_toml": "[[change]]\nkind = 'drop_device'\nat_s = 1.0\ndevice = 'a'\n"},
            "changes of one link and of nothing else",
        ),
    ],
)
def test_what_is_wrong_with_a_pack_is_one_sentence_and_harms_no_other(
    site: Path, files: dict[str, str], says: str
) -> None:
    write_pack(site, **files)
    write_pack(
        site,
        "other_lab",
        devices_toml=BOARD.replace("my-board", "other-board"),
        **{"clusters__my-room_toml": ROOM.replace("my-board", "other-board")},
        models_toml=MODEL.replace("my-gpt2", "other-gpt2"),
    )
    (site / "other_lab/traces/bus.csv").rename(site / "other_lab/traces/tram.csv")
    (site / "other_lab/clusters/my-room.toml").rename(site / "other_lab/clusters/other-room.toml")
    reasons = [one.reason for one in left_out_of_packs() if one.name == "my_lab"]
    assert any(says in reason for reason in reasons), reasons
    assert all(reason.endswith(".") and "\n" not in reason for reason in reasons)
    assert "other-board" in {device.name for device in topologies.presets()}
    assert "other-room" in topologies.names() and "tram" in traces() and "other-gpt2" in catalogue.names()
    assert not [one for one in left_out_of_packs() if one.name == "other_lab"]


def test_a_pack_that_is_not_named_is_not_used(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_pack(site)
    monkeypatch.setenv("LOOM_DATA", "their_lab")
    forget()
    assert "my-room" not in topologies.names()
    (lacking,) = left_out_of_packs()
    assert lacking.reason.startswith("LOOM_DATA names their_lab, and no installed package declares it")


def test_a_pack_without_a_folder_is_named(site: Path) -> None:
    install(site, "lost = nothing_of_this_name", "lost", "edgeloom.data")
    (one,) = left_out_of_packs()
    assert "there is no folder nothing_of_this_name" in one.reason
