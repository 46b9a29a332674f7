"""Speculative decoding: its tokens are the model's own, whatever the draft model guesses."""

from functools import cache
from itertools import product

import pytest

from bench.fuzz.check import outputs_of
from engine.domain.errors import PlanError, SpecError
from engine.domain.model import with_draft
from engine.domain.scenario import DropDevice, Scenario
from engine.domain.trace import Mark, Span
from engine.domain.workload import Request, Workload
from engine.models import catalogue
from engine.models.inputs import text
from engine.models.inputs.text import check_draft_tokens
from engine.reports.verify import emitted_in
from engine.runs.predict import predict, prepare, simulate
from engine.strategies.registry import drafted, strategy
from engine.strategies.shared.verify import drafts_of
from engine.worlds.common.source import RealSource, SimulatedSource
from tests.support.memory_world import MemoryDevice, run_in_memory
from tests.support.small_cases import BERT, GPT2, LLAMA, plan_of, prompts, spec_of, star

TOKENS = 24
SLOW_SOURCE = star([1e9, 4e10, 2e10])
ALONE = star([1e10])


def with_layers(model, layers):
    """`model` with its first layers as its draft: none is always right, all of them are."""
    return with_draft(model, model.model_copy(update={"name": "draft", "num_layers": layers}))


def spec_with(model, layers, cluster=SLOW_SOURCE, length=4, **more):
    spec = spec_of("speculative", model, cluster, new_tokens=TOKENS, draft_length=length, **more)
    return spec.model_copy(update={"model": with_layers(model, layers)})


def spec_of_first(model, layers, cluster=SLOW_SOURCE, length=4, **more):
    """`spec_with`, where the model's own first layers draft in place of a copy of them."""
    more |= {"draft_length": length, "draft_layers": layers}
    return spec_of("speculative", model, cluster, new_tokens=TOKENS, **more)


def tokens_of(spec, requests=None):
    source, world = run_in_memory(spec, plan_of(spec), requests or prompts(spec), seed=1)
    assert not any(device.caches for device in world.devices), "a finished sequence's cache was kept"
    texts = source.texts or {
        request: [*prompts(spec)[request].tokens, *map(int, ids)] for request, ids in source.chosen.items()
    }
    return {request: ids[spec.workload.prompt_tokens :] for request, ids in texts.items()}, world


@cache
def expected_of(model, requests=2):
    return tokens_of(spec_of("single", model, ALONE, new_tokens=TOKENS, requests=requests))[0]


@pytest.mark.parametrize("model", [GPT2, LLAMA], ids=lambda model: model.family)
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_tokens_are_those_of_the_model_alone_whatever_the_draft(model, layers):
    for cluster, length, pattern in product((SLOW_SOURCE, ALONE), (1, 2, 7, 40), ("sporadic", "bursty")):
        spec = spec_with(model, layers, cluster, length, requests=2, pattern=pattern)
        tokens, _ = tokens_of(spec)
        assert tokens == expected_of(model), (cluster.name, length, pattern)


@pytest.mark.parametrize("model", [GPT2, LLAMA], ids=lambda model: model.family)
@pytest.mark.parametrize("layers", [1, 2])
def test_tokens_are_those_of_the_model_alone_where_its_first_layers_draft(model, layers):
    for cluster, (length, pattern) in product((SLOW_SOURCE, ALONE), ((2, "bursty"), (40, "sporadic"))):
        tokens, _ = tokens_of(spec_of_first(model, layers, cluster, length, requests=2, pattern=pattern))
        assert tokens == expected_of(model), (cluster.name, length, pattern)


def verifications_of(spec, monkeypatch):
    """Of each one on the devices of memory: the request, the number of its first token, what was drafted for
    it from there on, and how much of that was accepted.
    """
    heard, decide = [], MemoryDevice.decide

    def hear(device, name, choice, drafted, chosen):
        answer = decide(device, name, choice, drafted, chosen)
        heard.append((choice.request, choice.index, drafted[0].tolist(), answer[0]))
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(MemoryDevice, "decide", hear)
        tokens_of(spec)
    return heard


def test_a_draft_of_all_layers_is_accepted_and_one_of_few_is_refused_in_part(monkeypatch):
    shares = []
    for layers in (1, 2, 3):
        heard = verifications_of(spec_with(LLAMA, layers, requests=2), monkeypatch)
        shares.append(sum(right for *_, right in heard) / sum(len(drafted) for *_, drafted, _ in heard))
    assert shares[0] < shares[1] < shares[2] == 1


@pytest.mark.parametrize("cluster", [SLOW_SOURCE, ALONE], ids=["two", "one"])
def test_the_draft_model_guesses_what_it_says_alone_after_the_same_text(cluster, monkeypatch):
    """Its cache has the rows of the right tokens and no others, refused or accepted."""
    spec = spec_with(LLAMA, 2, cluster, length=2, requests=2)
    heard = verifications_of(spec, monkeypatch)
    assert {right for *_, right in heard} == {0, 1, 2}
    for request, index, guesses, _ in heard:
        text = (*prompts(spec)[request].tokens, *expected_of(LLAMA)[request][:index])
        alone = spec_of("single", spec.model.draft, ALONE, rows=len(text), new_tokens=len(guesses))
        source, _ = run_in_memory(alone, plan_of(alone), (Request(index=0, tokens=text),), seed=1)
        assert source.texts[0][len(text) :] == guesses, (request, index)


@pytest.mark.parametrize("cluster", [SLOW_SOURCE, ALONE], ids=["two", "one"])
def test_first_layers_guess_what_a_draft_model_of_them_guesses(cluster, monkeypatch):
    """Although their one cache is that of the verification, too, and loses the rows of refused tokens."""
    for layers in (1, 2):
        ours, copied = (
            verifications_of(make(LLAMA, layers, cluster, length=3, requests=2), monkeypatch)
            for make in (spec_of_first, spec_with)
        )
        assert ours == copied
        assert len({right for *_, right in ours}) > 1


def test_every_row_of_first_layers_is_computed_once_and_travels():
    """On the source the first two layers, on the other device the third: no row of a layer on both."""
    spec = spec_of_first(LLAMA, 2)
    trace, _ = simulate(prepare(spec))
    computed = {(item.device, item.layer) for item in trace if isinstance(item, Span) and item.layer >= 0}
    assert computed == {("d0", 0), ("d0", 1), ("d1", 2)}
    _, world = tokens_of(spec)
    row_bytes = LLAMA.hidden_size * LLAMA.element_bytes
    rows = [size / row_bytes for tag, size in world.sent[0, 1] if tag.startswith("hidden")]
    drafted = [size / 8 for tag, size in world.sent[0, 1] if tag.startswith("drafted")]
    assert rows[:2] == [11, 5]
    assert [row - 1 for row in rows[1:] if row > 1] == drafted


def test_only_tokens_travel():
    """8 bytes each, the draft and the newest token there; what was accepted and one more back."""
    _, world = tokens_of(spec_with(LLAMA, 3, length=4))
    there = [size for tag, size in world.sent[0, 1] if tag.startswith("drafted")]
    back = [size for tag, size in world.sent[1, 0] if tag.startswith("verified")]
    rounds = [5, 5, 5, 5, 3]  # 1 of the prompt, then 23
    assert there == [8 * size for size in (11, *rounds)]
    assert back == [8 * size for size in (1, *rounds)]


@pytest.mark.parametrize("at", range(6))
@pytest.mark.parametrize("spec", [spec_with(LLAMA, 3), spec_of_first(LLAMA, 2)], ids=["model", "layers"])
def test_a_stop_token_within_an_accepted_draft_ends_the_answer(spec, at):
    wanted = expected_of(LLAMA)[0]
    end = wanted.index(wanted[at]) + 1
    request = Request(index=0, tokens=prompts(spec)[0].tokens, stop_tokens=(wanted[at],))
    assert tokens_of(spec, (request,))[0][0] == wanted[:end]


@pytest.mark.parametrize(
    "spec",
    [spec_with(LLAMA, 1), spec_with(LLAMA, 3), spec_of_first(LLAMA, 2)],
    ids=["1", "3", "first layers"],
)
def test_requests_of_a_service_get_the_same_tokens_in_blocks(spec, monkeypatch):
    monkeypatch.setattr(RealSource, "expect_no_more", SimulatedSource.expect_no_more)
    monkeypatch.setattr(RealSource, "close", SimulatedSource.close)
    rows = [
        {"at_s": 0.0, "prompt_tokens": 11, "new_tokens": TOKENS, "tokens": one.tokens}
        for one in prompts(spec_of("single", LLAMA, ALONE, requests=2))
    ]
    served = {"pattern": "serve", "prompt_tokens": 11, "new_tokens": TOKENS, "requests": 2, "max_batch": 2}
    spec = spec.model_copy(update={"workload": Workload.parse(served | {"trace": rows}, "test")})
    assert emitted_in(spec, outputs_of(prepare(spec))) == list(expected_of(LLAMA).values())


def predicted(likely, length=4, requests=40):
    model = with_draft(LLAMA, LLAMA.model_copy(update={"num_layers": 1}), likely)
    spec = spec_of("speculative", LLAMA, SLOW_SOURCE, new_tokens=50, requests=requests, draft_length=length)
    return predict(spec.model_copy(update={"model": model}))


@pytest.mark.parametrize("likely", [0.0, 0.3, 0.7, 0.9, 1.0])
def test_a_prediction_accepts_as_many_tokens_as_the_paper_expects(likely):
    """Leviathan et al., equation 1: (1 - a^(k+1)) / (1 - a) tokens for each verification."""
    report = predicted(likely).method
    expected = sum(likely**power for power in range(5))
    assert 1 + report.accepted_per_verification == pytest.approx(expected, rel=0.06)
    assert report.likely_acceptance == pytest.approx(likely, abs=0.02)


def test_a_better_draft_is_faster_and_a_prediction_is_the_same_each_time():
    times = [predicted(likely, requests=3).latency_s for likely in (0.0, 0.2, 0.5, 0.8, 1.0)]
    assert times == sorted(times, reverse=True)
    assert len(set(times)) == len(times)
    assert predicted(0.5, requests=3).latency_s == times[2]


def test_the_report_counts_what_was_compared():
    """Three drafts of four: two right ones and a wrong one; four right ones; a wrong one."""
    trace = [
        Mark(float(at), "decided", "d1", {"decision": f"accepted.r0.t{at}.v0", "answer": [right, 4]})
        for at, right in enumerate((2, 4, 0))
    ]
    report = drafts_of(trace)
    assert (report.verifications, report.drafted, report.accepted) == (3, 12, 6)
    assert report.accepted_per_verification == 2
    assert report.accepted_share == 0.5
    assert report.likely_acceptance == 6 / 8
    assert drafts_of([]) is None


@pytest.mark.parametrize("make", [spec_with, spec_of_first])
@pytest.mark.parametrize("lost", ["d1", "d2"])
def test_after_a_failure_the_others_go_on_with_the_same_number_of_tokens(make, lost):
    spec = make(LLAMA, 1, requests=2)
    half_s = predict(spec).latency_s
    scenario = Scenario(changes=(DropDevice(at_s=half_s, device=lost),))
    trace, outcome = simulate(prepare(spec.model_copy(update={"scenario": scenario})))
    emitted = [item for item in trace if isinstance(item, Mark) and item.name == "token_emitted"]
    assert outcome.kind == "finished"
    assert len(emitted) == 2 * TOKENS


def test_who_drafts_and_who_verifies():
    layout = plan_of(spec_with(LLAMA, 1)).layout
    assert (layout.draft_device, layout.verify_device) == (0, 1)
    named = spec_with(LLAMA, 1, verify_device="d2")
    assert plan_of(named).layout.verify_device == 2


def test_the_source_has_the_draft_model_alone_and_the_other_device_the_whole_model():
    plan = plan_of(spec_with(LLAMA, 1))
    assert {held.slice.draft for held in plan.holdings if held.device == 0} == {True}
    assert {held.slice.draft for held in plan.holdings if held.device == 1} == {False}
    assert max(held.slice.layer for held in plan.holdings if held.device == 0) == 0


def test_a_source_that_has_room_by_the_plan_has_room_in_the_run():
    """A prompt of one token: drafts are the largest passes; all are accepted, so that two are unseen."""
    model = with_draft(LLAMA, LLAMA.model_copy(update={"name": "draft", "num_layers": 2}), 1.0)
    spec = spec_of("speculative", LLAMA, SLOW_SOURCE, rows=1, new_tokens=20, draft_length=1)
    source, *others = spec.cluster.devices
    ends = []
    for memory_bytes in range(60_000, 120_000, 100):
        small = source.model_copy(update={"memory_bytes": memory_bytes})
        cluster = spec.cluster.model_copy(update={"devices": (small, *others)})
        try:
            report = predict(spec.model_copy(update={"model": model, "cluster": cluster}))
        except PlanError:
            ends.append("refused")
            continue
        ends.append(report.outcome.kind)
        if report.outcome.kind == "finished":
            break
    assert set(ends) == {"refused", "finished"}


REFUSED = [
    ({"vocab_size": 51}, "the draft model draft has 51 tokens and small-llama has 50"),
    ({"draft": LLAMA}, "has one of its own"),
    ({"causal": False}, "draft does not generate text alone"),
]


@pytest.mark.parametrize(("other", "says"), REFUSED)
def test_a_draft_model_of_other_tokens_is_refused_in_a_sentence(other, says):
    with pytest.raises(SpecError, match=says):
        with_draft(LLAMA, LLAMA.model_copy(update={"name": "draft", **other}))


def test_a_draft_model_with_another_tokenizer_is_refused(monkeypatch):
    class Tokenizer:
        def __init__(self, directory):
            self.directory = directory

        def get_vocab(self):
            return {"a": 0, "b" if self.directory == "/one" else "c": 1}

    monkeypatch.setattr(text, "_tokenizer", Tokenizer)
    monkeypatch.setattr(text, "can_decode", lambda weights: weights.kind == "directory")
    spec = spec_with(LLAMA, 1)
    ours, same, other = (
        spec.weights.model_copy(update={"kind": "directory", "directory": directory})
        for directory in ("/one", "/one", "/other")
    )
    check_draft_tokens(spec.model_copy(update={"weights": ours, "draft_weights": same}))
    check_draft_tokens(spec.model_copy(update={"weights": ours}))
    with pytest.raises(SpecError, match="'b' is not the same token"):
        check_draft_tokens(spec.model_copy(update={"weights": ours, "draft_weights": other}))


def test_without_what_it_needs_it_says_so():
    chosen = strategy("speculative")
    with pytest.raises(PlanError, match="no draft model: choose one"):
        plan_of(spec_of("speculative", LLAMA, ALONE).model_copy(update={"model": LLAMA}))
    with pytest.raises(PlanError, match="draft_layers is 3, and small-llama has 3 layers"):
        plan_of(spec_of_first(LLAMA, 3))
    both = spec_of_first(LLAMA, 1).model_copy(update={"model": with_layers(LLAMA, 1)})
    with pytest.raises(PlanError, match="draft_layers is 1, and small-llama has the draft model draft"):
        plan_of(both)
    assert "computes no layers" in chosen.supports(star([1e10], terminal=True), drafted(chosen, LLAMA))
    assert chosen.supports(ALONE, drafted(chosen, BERT)) is not None
    assert chosen.supports(ALONE, catalogue.resolve("tiny-llava")[0]) is not None
    short = LLAMA.model_copy(update={"name": "short", "max_positions": 20})
    spec = spec_with(LLAMA, 1)
    spec = spec.model_copy(update={"model": LLAMA.model_copy(update={"draft": short})})
    with pytest.raises(PlanError, match="the draft model short has 20 positions"):
        plan_of(spec)
    with pytest.raises(SpecError, match="speculative verifies several rows of one sequence"):
        prepare(spec_with(LLAMA, 1, ALONE).model_copy(update={"workload": CONTINUOUS}))


CONTINUOUS = Workload(
    prompt_tokens=5, new_tokens=3, requests=2, pattern="poisson", rate_per_s=1, scheduler="continuous"
)


def test_other_methods_leave_the_draft_model_aside():
    spec = spec_of("single", LLAMA, ALONE)
    with_one = spec.model_copy(update={"model": with_layers(LLAMA, 1)})
    assert simulate(prepare(with_one)) == simulate(prepare(spec))
