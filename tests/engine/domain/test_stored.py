"""Stored documents: each version is read as the present one, and what is unknown is said, not raised."""

import json

import pytest

from engine.domain import stored
from engine.domain.cluster import ClusterSpec
from engine.domain.errors import SpecError
from engine.domain.stored import Stored, read, read_spec, to_document, upgrade_events_text
from tests.support.small_cases import GPT2, spec_of, star

SPEC = spec_of("gpipe", GPT2, star((1e9, 1e9)))
NEWER = stored.SCHEMA + 1


def test_a_document_says_its_version_and_is_read_as_what_it_was() -> None:
    document = json.loads(json.dumps(to_document(SPEC)))
    assert document["schema"] == stored.SCHEMA
    assert read_spec(document, "the spec") == Stored(SPEC, "")


def test_a_document_without_a_version_is_read() -> None:
    spec = spec_of("single", GPT2, star((1e9, 1e9)))
    assert read_spec(spec.model_dump(mode="json"), "the spec") == Stored(spec, "")


def test_a_document_of_a_version_that_is_read_no_more_says_so() -> None:
    document = to_document(SPEC) | {"schema": stored.OLDEST - 1}
    assert read_spec(document, "The spec") == Stored(
        None,
        f"The spec was stored by an older version of EdgeLoom (document version {stored.OLDEST - 1}; this "
        f"program reads {stored.OLDEST} and {stored.SCHEMA}): read it with the version that stored it.",
    )


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


@pytest.mark.parametrize(("wrong", "got"), [({"name": "gpipe"}, "an object"), (["gpipe"], "a list")])
def test_what_no_step_expects_is_left_to_the_reader(wrong, got) -> None:
    document = {**SPEC.model_dump(mode="json"), "strategy": wrong}
    assert read_spec(document, "run.json").problem == f"run.json, strategy: expected a text, got {got}."


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


def test_whether_edgeformer_had_caches_becomes_one_of_the_workload() -> None:
    for decode, moved in (("recompute", {"kv_cache": False}), ("kv", {}), (None, {})):
        params = {"t_max": 0.7} | ({"decode": decode} if decode else {})
        old = {"schema": 5, "strategy": "edgeformer", "params": params, "workload": {"new_tokens": 9}}
        new = stored.upgrade_spec(old)
        assert new["params"] == {"t_max": 0.7}
        assert new["workload"] == {"new_tokens": 9, **moved}


@pytest.mark.parametrize(
    "workload",
    [
        {"new_tokens": 0},
        {"new_tokens": 4, "pattern": "poisson", "rate_per_s": 2.0, "scheduler": "continuous"},
        {"new_tokens": 4, "pattern": "serve"},
    ],
)
def test_old_workloads_that_cannot_be_without_caches_keep_them(workload) -> None:
    document = spec_of("edgeformer", GPT2, star((1e9, 1e9))).model_dump(mode="json") | {"schema": 5}
    document |= {"params": {"decode": "recompute"}, "workload": {"prompt_tokens": 8, **workload}}
    assert read_spec(document, "the spec").needed().workload.kv_cache


def test_reports_inside_events_take_the_step_of_reports() -> None:
    spec = {"strategy": "lime", "params": {"assumed_tokens": 160}, "workload": {"new_tokens": 9}}
    now = {"strategy": "lime", "params": {}, "workload": {"assumed_tokens": 160, "new_tokens": 9}}
    clock = {"type": "clock", "time_s": 1.0}
    text = json.dumps([{"type": "report", "spec": spec, "seed": 3}, clock])
    assert json.loads(upgrade_events_text(text, schema=5)) == [
        {"type": "report", "spec": now, "seed": 3},
        clock,
    ]


def test_events_of_the_present_or_a_newer_version_pass_as_they_are() -> None:
    for schema in (stored.SCHEMA, NEWER):
        assert upgrade_events_text("[ {} ]", schema) == "[ {} ]"
