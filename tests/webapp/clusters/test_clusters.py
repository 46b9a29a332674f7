"""Clusters over HTTP."""

from __future__ import annotations

from contextlib import suppress
from io import BytesIO
from itertools import combinations
from typing import Any

import pytest
from django.core.management import call_command
from django.http import HttpRequest
from hypothesis import given
from hypothesis import strategies as st

import topologies
from edgeloom import Client
from engine.domain.cluster import LinkSpec
from engine.domain.errors import SpecError
from tests.support.web import Browser
from topologies.layout import CanvasLayout, arrange, enabled
from topologies.shapes import copies, shape
from topologies.showcases import showcases
from webapp.clusters.api import ImportIn, import_drawing
from webapp.clusters.models import Cluster


def drawing(name: str = "lab-3", **changes: Any) -> dict[str, Any]:
    spec = topologies.load(name).model_dump(mode="json")
    return {"spec": spec | changes, "layout": {"positions": {"pi": {"x": 1.5, "y": 2}}, "disabled": []}}


def test_a_cluster_is_stored_and_read_back_as_it_was_drawn(alice: Browser) -> None:
    response = alice.post("/clusters", drawing())
    assert response.status_code == 201
    stored = alice.get(f"/clusters/{response.json()['id']}").json()
    assert stored["spec"] == drawing()["spec"]
    assert stored["layout"] == drawing()["layout"] | {"bends": {}, "groups": []}
    assert (stored["num_devices"], stored["owner"], stored["version"]) == (3, "alice", 1)
    assert [row["name"] for row in alice.get("/clusters").json()] == ["lab-3"]


def test_an_edit_counts_the_version_up(alice: Browser) -> None:
    number = alice.post("/clusters", drawing()).json()["id"]
    edited = alice.put(f"/clusters/{number}", {**drawing(title="Mine"), "version": 1})
    assert edited.status_code == 200
    assert (edited.json()["title"], edited.json()["version"]) == ("Mine", 2)


def test_an_edit_of_an_old_version_conflicts_and_changes_nothing(alice: Browser) -> None:
    number = alice.post("/clusters", drawing()).json()["id"]
    alice.put(f"/clusters/{number}", {**drawing(title="First"), "version": 1})
    response = alice.put(f"/clusters/{number}", {**drawing(title="Second"), "version": 1})
    assert response.status_code == 409
    assert "changed meanwhile" in response.json()["detail"]
    assert alice.get(f"/clusters/{number}").json()["title"] == "First"


def test_a_name_is_given_once(alice: Browser) -> None:
    alice.post("/clusters", drawing())
    other = alice.post("/clusters", drawing("lab-4")).json()["id"]
    for response in (
        alice.post("/clusters", drawing()),
        alice.put(f"/clusters/{other}", {**drawing(), "version": 1}),
    ):
        assert response.status_code == 422
        assert response.json()["fields"] == [{"path": "spec.name", "message": "is taken"}]


def test_a_deleted_cluster_is_gone(alice: Browser) -> None:
    number = alice.post("/clusters", drawing()).json()["id"]
    assert alice.delete(f"/clusters/{number}").status_code == 204
    response = alice.get(f"/clusters/{number}")
    assert response.status_code == 404
    assert response.json()["detail"] == f"There is no cluster {number}."


def bad_drawings() -> list[tuple[str, dict[str, Any]]]:
    base = drawing()
    links = base["spec"]["links"]
    loop = [{**links[0], "b": links[0]["a"]}, *links[1:]]
    return [
        ("spec.links[0].bit_per_s", drawing(links=[{**links[0], "bit_per_s": -1}, *links[1:]])),
        ("spec.colour", drawing(colour="red")),
        ("spec", drawing(links=links[1:])),
        ("spec", drawing(links=loop)),
        ("spec.devices", drawing(devices=[])),
        ("layout.positions.pi.x", {**base, "layout": {"positions": {"pi": {"x": "left", "y": 0}}}}),
    ]


@pytest.mark.parametrize(("path", "bad"), bad_drawings())
def test_a_bad_drawing_is_refused_with_the_field(alice: Browser, path: str, bad: dict[str, Any]) -> None:
    response = alice.post("/clusters", bad)
    assert response.status_code == 422
    assert path in [field["path"] for field in response.json()["fields"]]
    assert response.json()["detail"].startswith(path)
    assert not Cluster.objects.exists()


@pytest.mark.parametrize("form", topologies.FORMATS)
@pytest.mark.parametrize("name", topologies.names())
def test_a_cluster_survives_export_and_import(alice: Browser, name: str, form: str) -> None:
    number = alice.post("/clusters", drawing(name)).json()["id"]
    exported = alice.get(f"/clusters/{number}/{form}")
    assert exported.headers["Content-Disposition"] == f'attachment; filename="{name}.{form}"'
    assert exported.headers["Content-Type"] == f"application/{form}; charset=utf-8"
    imported = alice.post("/clusters/import", {"text": exported.content.decode(), "kind": form})
    assert imported.json()["spec"] == drawing(name)["spec"]


def test_a_notebook_stores_a_cluster_and_gets_its_file(alice: Browser) -> None:
    class Notebook(Client):
        def _open(self, method: str, path: str, body: Any) -> Any:
            return BytesIO(alice.send(method, path.removeprefix("/api"), body).content)

    notebook = Notebook("http://testserver", "")
    text = topologies.dump_toml(topologies.load("lab-3"))
    number = notebook.new_cluster(text)
    stored = notebook.cluster_file(number, "yaml")
    assert stored.startswith("name: lab-3\n")
    spec, layout = topologies.parse_drawing(stored, "stored", "yaml")
    assert spec == topologies.load("lab-3")
    assert set(layout.positions) == {"desk", "shelf", "window", "hub"}
    assert notebook.cluster_file(number).startswith('name = "lab-3"\n')


def test_there_are_no_other_formats(alice: Browser) -> None:
    number = alice.post("/clusters", drawing()).json()["id"]
    response = alice.get(f"/clusters/{number}/docx")
    assert response.status_code == 422
    assert "'toml', 'json' or 'yaml'" in response.json()["detail"]


@pytest.mark.parametrize("form", topologies.FORMATS)
def test_export_and_import_return_the_same_drawing(alice: Browser, form: str) -> None:
    layout = {
        "positions": {
            name: {"x": 10.5 * rank, "y": 3} for rank, name in enumerate(("desk", "shelf", "window", "hub"))
        },
        "disabled": ["window", "shelf--hub"],
        "bends": {"desk--hub": [{"x": 1, "y": 2}]},
        "groups": [{"name": "Rack", "members": ["desk", "hub"], "collapsed": True}],
    }
    links = drawing()["spec"]["links"]
    spec = drawing()["spec"] | {"links": [*links, {**links[0], "parallel": 2, "bit_per_s": 1e6}]}
    number = alice.post("/clusters", {"spec": spec, "layout": layout}).json()["id"]
    exported = alice.get(f"/clusters/{number}/{form}").content.decode()
    imported = alice.post("/clusters/import", {"text": exported, "kind": form}).json()
    assert imported == {"spec": spec, "layout": layout}


def test_a_drawing_of_another_program_is_imported_and_a_large_one_refused(alice: Browser) -> None:
    text = 'graph [ node [ id 1 label "a" ] node [ id 2 label "b" ] edge [ source 1 target 2 ] ]'
    body = {"text": text, "kind": "gml", "name": "my net.gml", "preset": "jetson-nano", "bit_per_s": 5e6}
    made = alice.post("/clusters/import", body).json()
    assert made["spec"]["name"] == "my-net"
    assert made["spec"]["devices"][0]["title"] == topologies.preset("jetson-nano").title
    assert made["spec"]["links"][0]["bit_per_s"] == 5e6
    assert set(made["layout"]["positions"]) == {"a", "b"}
    large = alice.post("/clusters/import", {"text": "#" * 1_000_001, "kind": "gml"})
    assert large.status_code == 422
    assert "text: 1,000,001 characters, and the limit is 1,000,000" in large.json()["detail"]


def test_an_import_names_the_wrong_field(alice: Browser) -> None:
    text = topologies.dump_toml(topologies.load("lab-3")).replace("bit_per_s = ", "bit_per_s = -", 1)
    response = alice.post("/clusters/import", {"text": text})
    assert response.status_code == 422
    assert [field["path"] for field in response.json()["fields"]] == ["link[0].bit_per_s"]


@pytest.mark.parametrize(
    ("kind", "text", "sentence"),
    [
        ("toml", "[[device", "no valid TOML"),
        ("toml", "a" + ".a" * 400_000 + " = 1", "has more than 30 parts"),
        ("json", '{"title": "\\ud800"}', "U+D800"),
        ("json", "[" * 100_000, "nested too deeply"),
        ("yaml", "a: &x [1]\nb: *x", "cluster file: no valid YAML: the alias *x is not read"),
        ("yaml", "- " * 100_000, "nested too deeply"),
    ],
)
def test_a_text_that_is_no_cluster_file_is_refused(
    alice: Browser, kind: str, text: str, sentence: str
) -> None:
    response = alice.post("/clusters/import", {"text": text, "kind": kind})
    assert response.status_code == 422
    assert sentence in response.json()["detail"]


def test_a_refusal_names_the_file(alice: Browser) -> None:
    response = alice.post("/clusters/import", {"text": "a: b: c", "kind": "yaml", "name": "net.yaml"})
    assert response.json()["detail"].startswith("net.yaml: no valid YAML: mapping values are not allowed")


START = {
    "toml": 'name = "x"\nsource = "a"\n[[device]]\nname = "a"\n',
    "json": '{"name": "x", "source": "a", "device": [{"name": "a", "preset": "mcu"}], ',
    "yaml": "name: x\nsource: a\ndevice:\n- name: a\n  ",
}
signs = st.sampled_from(
    [
        *"abn=:-[]{}'\"#&*!|>%@,.~\n\t 019",
        "\\ud800",
        "\\u0000",
        "1e999",
        ".inf",
        "nan",
        "0xff",
        "copies",
        "at",
    ]
)


@pytest.mark.parametrize("kind", topologies.FORMATS)
@given(text=st.lists(signs, max_size=30).map("".join), begun=st.booleans())
def test_no_text_breaks_the_import(kind: str, text: str, begun: bool) -> None:
    body = ImportIn(text=(START[kind] if begun else "") + text, kind=kind)
    with suppress(SpecError):
        import_drawing(HttpRequest(), body).model_dump_json().encode()


def test_validation_lists_problems_instead_of_refusing(victor: Browser) -> None:
    links = drawing()["spec"]["links"][1:]
    answer = victor.post("/clusters/validate", {"spec": drawing(links=links)["spec"]}).json()
    assert len(answer["problems"]) == 1
    assert "cannot reach" in answer["problems"][0]["message"]


def test_validation_sees_the_cluster_without_what_is_switched_off(victor: Browser) -> None:
    body = {"spec": drawing()["spec"], "layout": {"disabled": [topologies.load("lab-3").switches[0].name]}}
    problems = victor.post("/clusters/validate", body).json()["problems"]
    assert [problem["path"] for problem in problems] == ["devices[1]", "devices[2]", "devices[0]"]
    assert all("add" in problem["message"] for problem in problems)


def test_three_separate_nodes_are_three_problems(victor: Browser) -> None:
    """Two of the devices have no link; links[0] ends nowhere useful only once these are linked."""
    spec = drawing()["spec"] | {"links": []}
    problems = victor.post("/clusters/validate", {"spec": spec}).json()["problems"]
    assert [(problem["path"], problem["message"].split()[0]) for problem in problems] == [
        ("devices[1]", "shelf"),
        ("devices[2]", "window"),
        ("devices[0]", "desk"),
    ]


def test_a_problem_of_a_link_names_it_as_the_drawing_counts_it(victor: Browser) -> None:
    links = drawing()["spec"]["links"]
    body = {
        "spec": drawing()["spec"] | {"links": [*links, {**links[2], "bit_per_s": 1e6}]},
        "layout": {"disabled": ["desk--hub"]},
    }
    [problem] = victor.post("/clusters/validate", body).json()["problems"][:1]
    assert problem["path"] == "links[2]"
    assert problem["message"].startswith("link window--hub is a second link between window and hub")


def test_validation_says_per_device_whether_the_weights_fit(victor: Browser) -> None:
    spec = drawing()["spec"]
    body = {"spec": spec, "model": "demo-lm", "strategy": "voltage"}
    answer = victor.post("/clusters/validate", body).json()
    assert answer["fits"]["fits"] is True
    assert set(answer["fits"]["devices"]) == {device["name"] for device in spec["devices"]}
    assert all(row["need_bytes"] > 0 for row in answer["fits"]["devices"].values())
    small = [{**device, "memory_bytes": 1e6} for device in spec["devices"]]
    answer = victor.post("/clusters/validate", body | {"spec": spec | {"devices": small}}).json()
    assert answer["fits"]["fits"] is False
    assert spec["devices"][0]["name"] in answer["fits"]["sentence"]


def test_validation_without_a_strategy_compares_totals(victor: Browser) -> None:
    answer = victor.post("/clusters/validate", {"spec": drawing()["spec"], "model": "llama-2-13b"}).json()
    assert answer["fits"]["fits"] is False
    assert answer["fits"]["model_bytes"] > 10e9


def test_whether_a_model_fits_is_asked_with_the_bits_of_its_weights(victor: Browser) -> None:
    """Llama 2 13B in 16 bits has 26 GB; in 4 bits and scales of groups of 128, 4.125 / 16 of its matrices."""
    body = {"spec": drawing()["spec"], "model": "llama-2-13b"}
    whole, few = (
        victor.post("/clusters/validate", body | bits).json()["fits"] for bits in ({}, {"weight_bits": 4})
    )
    assert few["model_bytes"] == pytest.approx(whole["model_bytes"] * 4.125 / 16, rel=0.01)
    assert (whole["weight_bits"], few["weight_bits"]) == (None, 4)
    assert "of weights in 4 bits, " in few["sentence"]


def test_validation_of_an_unknown_model_says_which_there_are(victor: Browser) -> None:
    answer = victor.post("/clusters/validate", {"spec": drawing()["spec"], "model": "gpt-9"}).json()
    assert answer["problems"][0]["path"] == "model"
    assert "demo-lm" in answer["fits"]["sentence"]


@pytest.mark.parametrize("name", ["star", "ring", "mesh", "tree"])
def test_a_shape_is_made_of_equal_devices_at_different_places(victor: Browser, name: str) -> None:
    preset = topologies.presets()[0]
    body = {"shape": name, "devices": 5, "preset": preset.name, "bit_per_s": 5e7, "delay_s": 0.002}
    made = victor.post("/clusters/shape", body).json()
    assert len(made["spec"]["devices"]) == 5
    assert {device["flop_per_s"] for device in made["spec"]["devices"]} == {preset.flop_per_s}
    assert {(link["bit_per_s"], link["delay_s"]) for link in made["spec"]["links"]} == {(5e7, 0.002)}
    places = [(place["x"], place["y"]) for place in made["layout"]["positions"].values()]
    assert len(set(places)) == len(made["spec"]["devices"]) + len(made["spec"]["switches"])


def test_a_shape_of_an_unknown_preset_is_refused(victor: Browser) -> None:
    response = victor.post("/clusters/shape", {"shape": "star", "devices": 2, "preset": "abacus"})
    assert response.status_code == 422
    assert "abacus" in response.json()["detail"]


def test_the_demo_clusters_are_made_once(db: None) -> None:
    call_command("ensure_demo")
    call_command("ensure_demo")
    names = list(Cluster.objects.values_list("name", flat=True))
    assert len(set(names)) == len(names)
    assert set(names) >= {"lab-3", "lab-4", "voltage-6", "mcu-8", "mcu-64"}
    assert {each.spec.cluster.name for each in showcases()} <= set(names)


def test_disabled_devices_and_links_take_no_part() -> None:
    spec = topologies.load("voltage-6")
    kept = enabled(spec, CanvasLayout(disabled=("vm-6", "vm-5")))
    assert [device.name for device in kept.devices] == ["vm-1", "vm-2", "vm-3", "vm-4", "terminal"]
    assert all("vm-6" not in (link.a, link.b) for link in kept.links)
    assert enabled(spec, CanvasLayout()) == spec


@given(name=st.sampled_from(["star", "ring", "mesh", "tree"]), count=st.integers(1, 24))
def test_no_two_nodes_are_drawn_on_top_of_each_other(name: str, count: int) -> None:
    devices = copies(topologies.presets()[0], count)
    places = arrange(shape(name)(devices, LinkSpec(a="a", b="b", bit_per_s=1e8))).positions.values()
    for one, other in combinations(places, 2):
        assert (one.x - other.x) ** 2 + (one.y - other.y) ** 2 > 100**2
