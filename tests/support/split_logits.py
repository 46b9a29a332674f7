"""Runs in which no logits reach the source: the proof puts them together from what devices keep."""

from bench.fuzz.check import check, outputs_of
from engine.runs.predict import prepare


def prove(spec):
    """Tokens and all logits of `spec` are those of `transformers`, though the source never has the logits."""
    verdict = check(spec)
    assert verdict.end == "equal", verdict.sentence
    assert verdict.correctness.max_rel_error is not None, "the logits were compared, not the tokens alone"
    got = outputs_of(prepare(spec))
    assert any(name.startswith("piece.") for name in got)
    assert not any(name.startswith("logits.") for name in got), "no logits reach the source"
