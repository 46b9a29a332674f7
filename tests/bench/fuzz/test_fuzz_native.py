"""Random runs as processes of this machine, beside programs that keep it busy."""

import pytest

from bench.fuzz import native
from bench.fuzz.busy import busy_machine
from bench.fuzz.native import check_natively
from engine.domain.errors import PlanError
from engine.models import catalogue
from tests.support.small_cases import spec_of, star


def test_a_run_with_a_ring_gives_the_tokens_of_transformers_on_a_busy_machine():
    model, weights = catalogue.resolve("tiny-llama", "random")
    spec = spec_of("megatron", model, star((1e9, 1e9)), all_reduce="ring")
    with busy_machine() as busy:
        assert check_natively(spec.model_copy(update={"weights": weights})).end == "equal"
        assert all(loop.poll() is None for loop in busy), "they last as long as the run"
    assert all(loop.poll() is not None for loop in busy), "and end with it"


@pytest.mark.parametrize(
    ("outcome", "correctness", "end"),
    [
        ({"kind": "finished"}, {"checked": True, "ok": True, "lossy": False, "why": ""}, "equal"),
        ({"kind": "finished"}, {"checked": True, "ok": None, "lossy": True, "why": ""}, "lossy"),
        (
            {"kind": "finished"},
            {"checked": True, "ok": False, "lossy": False, "why": "tokens"},
            "wrong",
        ),
        ({"kind": "finished"}, {"checked": False, "ok": None, "lossy": False, "why": ""}, "wrong"),
        ({"kind": "out_of_memory", "sentence": "d0 needs."}, {}, "out of memory"),
        ({"kind": "deadlock", "sentence": "All wait."}, {}, "wrong"),
    ],
)
def test_how_a_report_ends_a_case(monkeypatch, outcome, correctness, end):
    report = {"outcome": {"sentence": "", **outcome}, "correctness": correctness}
    monkeypatch.setattr(native, "run_local", lambda spec: (report, []))
    model, _ = catalogue.resolve("tiny-llama", "random")
    assert check_natively(spec_of("single", model, star((1e9,)))).end == end


def test_a_plan_that_is_none_is_refused(monkeypatch):
    def run_local(spec):
        raise PlanError("single: no device is left.")

    monkeypatch.setattr(native, "run_local", run_local)
    model, _ = catalogue.resolve("tiny-llama", "random")
    assert check_natively(spec_of("single", model, star((1e9,)))).end == "refused"
