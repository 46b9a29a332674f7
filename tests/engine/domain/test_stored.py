"""Stored documents: each version is read as the present one, and what is unknown is said, not raised."""

import json

import pytest

from engine.domain import stored
from engine.domain.cluster import ClusterSpec
from engine.domain.errors import SpecError
from engine.domain.stored import Stored, read, read_spec, to_document, upgrade_event, upgrade_events_text
from tests.support.small_cases import GPT2, spec_of, star

SPEC = spec_of("gpipe", GPT2, star((1e9, 1e9)))
NEWER = stored.SCHEMA + 1


def test_a_document_says_its_version_and_is_read_as_what_it_was() -> None:
    document = json.loads(json.dumps(to_document(SPEC)))
    assert document["schema"] == stored.SCHEMA
    assert read_spec(document, "the spec") == Stored(SPEC, "")


def test_a_document_without_a_version_is_of_the_first() -> None:
    spec = spec_of("single", GPT2, star((1e9, 1e9)))
    assert read_spec(spec.model_dump(mode="json"), "the spec") == Stored(spec, "")


def test_unknown_keys_are_ignored_wherever_they_stand() -> None:
    document = to_document(SPEC) | {"added": 1}
    document["cluster"]["devices"][0]["added"] = {"a": 2}
    document["scenario"]["changes"] = [{"kind": "link_down", "at_s": 1.0, "link": "d0--s1", "added": 3}]
    read_one = read_spec(document, "the spec")
    assert read_one.problem == ""
    assert read_one.needed().cluster == SPEC.cluster
    assert [change.kind for change in read_one.needed().scenario.changes] == ["link_down"]


def test_what_cannot_be_read_is_a_sentence() -> None:
    document = to_document(SPEC)
    del document["model"]["hidden_size"]
    read_one = read_spec(document, "The spec of run 7")
    assert read_one == Stored(None, "The spec of run 7, model.hidden_size: missing.")
    with pytest.raises(SpecError, match="hidden_size"):
        read_one.needed()


@pytest.mark.parametrize("wrong", [{"strategy": {"name": "gpipe"}}, {"strategy": ["gpipe"]}, {"schema": 0}])
def test_what_no_step_expects_is_left_to_the_reader(wrong) -> None:
    document = {**SPEC.model_dump(mode="json"), **wrong}
    said = "" if "schema" in wrong else "run.json, strategy: Input should be a valid string."
    assert read_spec(document, "run.json").problem == said


def test_a_newer_document_is_read_as_far_as_it_can_be_and_says_so() -> None:
    read_one = read_spec(to_document(SPEC) | {"schema": NEWER, "added": 1}, "The spec")
    assert read_one.value == SPEC
    assert read_one.problem == (
        f"The spec was stored by a newer version of EdgeLoom (document version {NEWER}; this program reads "
        f"{stored.SCHEMA}): what is new in it is not shown."
    )


def test_a_newer_document_that_cannot_be_read_says_that_it_is_newer() -> None:
    answer = read(ClusterSpec, {"schema": NEWER, "nodes": []}, "The cluster lab")
    assert answer.value is None
    assert answer.problem.startswith("The cluster lab was stored by a newer version")
    assert answer.problem.endswith("and cannot be read here.")


def test_a_chain_takes_one_step_per_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def append(text):
        return lambda document: {**document, "name": document["name"] + text}

    monkeypatch.setattr(stored, "SCHEMA", 4)
    monkeypatch.setattr(stored, "_SPEC_STEPS", {1: append("a"), 2: append("b"), 3: append("c")})
    for schema, name in ((1, "abc"), (2, "bc"), (3, "c"), (4, ""), (9, "")):
        old = {"schema": schema, "name": ""}
        assert stored.upgrade_spec(old)["name"] == name
        assert old == {"schema": schema, "name": ""}, "the document itself stays as it was"


OLD_PLAN = {
    "strategy": "gpipe",
    "holdings": [],
    "work": [],
    "version": 1,
    "extra": {"stages": [], "view": "x"},
}
PLAN = {
    "strategy": "gpipe",
    "holdings": [],
    "work": [],
    "version": 1,
    "layout": {"kind": "pipeline", "stages": []},
}


@pytest.mark.parametrize(
    ("strategy", "old", "new"),
    [
        ("gpipe", {"by": "flops"}, {"planner": "paper", "by": "flops"}),
        ("megatron", {}, {"planner": "paper"}),
        ("galaxy", {"planner": "balance"}, {"planner": "paper", "division": "balance"}),
        ("galaxy", {}, {}),
        ("voltage", {"ratio": "search"}, {"planner": "best", "last_layer_rows": "all"}),
        ("voltage", {"ratio": "proportional"}, {"ratio": "proportional"}),
        ("single", {}, {}),
    ],
)
def test_a_run_of_version_3_is_planned_as_it_was(strategy, old, new) -> None:
    spec = {"strategy": strategy, "params": old}
    assert stored.upgrade_spec({"schema": 3, **spec})["params"] == new
    assert stored.upgrade_report({"schema": 3, "spec": spec})["spec"]["params"] == new


def test_the_length_that_lime_assumed_becomes_one_of_the_workload() -> None:
    old = {"strategy": "lime", "params": {"assumed_tokens": 160, "mode": "dp"}, "workload": {"new_tokens": 9}}
    new = {
        "strategy": "lime",
        "params": {"mode": "dp"},
        "workload": {"assumed_tokens": 160, "new_tokens": 9},
    }
    schema = {"schema": stored.SCHEMA}
    assert stored.upgrade_spec({"schema": 5, **old}) == new | schema
    assert stored.upgrade_report({"schema": 5, "spec": old}) == {"spec": new} | schema


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"type": "plan", **OLD_PLAN}, {"type": "plan", **PLAN}),
        ({"type": "report", "plan": OLD_PLAN, "seed": 3}, {"type": "report", "plan": PLAN, "seed": 3}),
        ({"type": "report", "plan": None}, {"type": "report", "plan": None}),
        (
            {"type": "mark", "name": "replanned", "time_s": 1.0, "facts": {"reason": "x", "plan": OLD_PLAN}},
            {"type": "mark", "name": "replanned", "time_s": 1.0, "facts": {"reason": "x", "plan": PLAN}},
        ),
        ({"type": "clock", "time_s": 1.0}, {"type": "clock", "time_s": 1.0}),
    ],
)
def test_plans_inside_events_of_version_1_get_a_layout(old, new, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "SCHEMA", 2)
    before = json.dumps(old)
    assert upgrade_event(old, schema=1) == new
    assert json.loads(upgrade_events_text(json.dumps([old]), schema=1)) == [new]
    assert json.dumps(old) == before


def test_events_of_the_present_or_a_newer_version_pass_as_they_are() -> None:
    for schema in (stored.SCHEMA, NEWER):
        assert upgrade_events_text("[ {} ]", schema) == "[ {} ]"


def test_what_a_plan_of_version_1_says_stays_and_what_it_does_not_say_gets_its_old_value() -> None:
    old = {"strategy": "voltage", "extra": {"order": "reorder", "causal_trim": True}}
    layout = stored.upgrade_plan(old)["layout"]
    assert (layout["order"], layout["causal_trim"]) == ("reorder", True)
    assert (layout["last_layer_rows"], layout["repartition"]) == ("all", False)


def test_parameters_of_version_2_get_their_present_names_and_idle_ones_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(stored.PARAMS_2_TO_3, "gpipe", {"old": "new", "idle": None})
    monkeypatch.setitem(stored.ADDED_DURING_VERSION_2, "pipeline", {"added": 7, "kept": 0})
    spec = {"schema": 2, "strategy": "gpipe", "params": {"old": 1, "idle": 2, "same": 3}}
    assert stored.upgrade_spec(spec)["params"] == {"planner": "paper", "new": 1, "same": 3}
    assert stored.upgrade_spec({**spec, "strategy": "single"})["params"] == spec["params"]
    plan = {"schema": 2, "strategy": "gpipe", "layout": {"kind": "pipeline", "kept": 1}}
    layout = {"kind": "pipeline", "kept": 1, "added": 7}
    assert stored.upgrade_plan(plan)["layout"] == layout
    report = stored.upgrade_report({"schema": 2, "spec": spec, "plan": plan})
    assert (report["spec"]["params"], report["plan"]["layout"]) == (
        {"planner": "paper", "new": 1, "same": 3},
        layout,
    )
