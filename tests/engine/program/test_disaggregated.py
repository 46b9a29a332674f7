"""Prompts on one device while another computes tokens: the same tokens, and the times that a hand gets."""

from random import Random

import pytest

import engine.program.serve
from engine.domain.cluster import ClusterSpec
from engine.domain.errors import SpecError
from engine.domain.scenario import DropDevice, Scenario
from engine.domain.trace import Mark, Span
from engine.runs.local import run_local
from engine.runs.predict import predict, prepare, simulate
from engine.schedulers.disaggregated import Disaggregated
from engine.schedulers.scheduler import Chunk, Iteration
from tests.engine.program.test_iterations import alone, rows_of, spec_of, tokens_of
from tests.support.small_cases import GPT2, LLAMA

APART = {"scheduler": "disaggregated"}


def star(rates_bit_per_s, source, flop_per_s=1e9, terminal=False, **device):
    """Workers d0, d1, …, each with a link of its own rate to a switch; the source may be a terminal."""
    common = {"memory_byte_per_s": 4e9, "memory_bytes": 4e8, "flop_per_s": flop_per_s, **device}
    devices = [{"name": f"d{index}", **common} for index in range(len(rates_bit_per_s))]
    links = [{"a": f"d{index}", "b": "s", "bit_per_s": rate} for index, rate in enumerate(rates_bit_per_s)]
    if terminal:
        devices.append({"name": "term", "role": "terminal", **common})
        links.append({"a": "term", "b": "s", "bit_per_s": 1e9})
    return ClusterSpec(name="star", source=source, devices=devices, switches=[{"name": "s"}], links=links)


def apart(cluster, model, rows, **workload):
    spec = spec_of("disaggregated", model, rows, **(APART | workload))
    return spec.model_copy(update={"cluster": cluster})


@pytest.mark.parametrize("seed", range(12))
def test_every_request_gets_the_tokens_that_it_gets_alone_over_links_of_any_rate(seed):
    # over a slow link the first token is there long before the KV cache
    random = Random(seed)
    rates = [10 ** random.uniform(5, 9) for _ in range(random.randint(2, 3))]
    source = random.choice(["term", *(f"d{index}" for index in range(len(rates)))])
    cluster = star(rates, source, terminal=source == "term")
    rows = rows_of(random, random.randint(2, 7))
    spec = apart(cluster, random.choice([GPT2, LLAMA]), rows, max_batch=random.randint(1, 4))
    assert tokens_of(spec) == alone(spec)
    assert predict(spec).outcome.kind == "finished"


def test_users_who_wait_for_their_answers_get_the_same_tokens():
    spec = apart(star([1e8, 1e8], "d1"), LLAMA, None, max_batch=2)
    fields = {"pattern": "users", "users": 3, "think_s": 0.01, "trace": (), "requests": 7}
    sizes = {"prompt_tokens": 9, "new_tokens": 4}
    spec = spec.model_copy(update={"workload": spec.workload.model_copy(update=fields | sizes)})
    assert tokens_of(spec) == alone(spec)


@pytest.mark.parametrize("lost", ["d0", "d1"])
def test_after_the_failure_of_either_device_the_answers_go_on_with_the_same_tokens(lost):
    """A prompt's device, or that of tokens, fails; the worker that is left has both phases."""
    rows = [{"at_s": 0.0, "prompt_tokens": 9, "new_tokens": 6} for _ in range(5)]
    spec = apart(star([1e7] * 2, "term", terminal=True), GPT2, rows, max_batch=3)
    layout = prepare(spec).plan.layout
    assert (layout.prompt_device, layout.token_device) == (0, 1)
    change = DropDevice(at_s=predict(spec).latency_s / 2, device=lost)
    failing = spec.model_copy(update={"scenario": Scenario(changes=(change,)), "dilation": 4.0})
    trace, outcome = simulate(prepare(failing))
    assert outcome.kind == "finished", outcome
    emitted = [(mark.facts["request"], mark.facts["index"]) for mark in marks_of(trace, "token_emitted")]
    assert sorted(emitted) == [(request, index) for request in range(5) for index in range(6)]
    report, _ = run_local(failing)
    assert report["outcome"]["kind"] == "finished", report["outcome"]
    assert report["correctness"]["token_identical"] is True, report["correctness"]


def marks_of(trace, name):
    return [item for item in trace if isinstance(item, Mark) and item.name == name]


P_ROWS, NEW, COUNT = 48, 4, 5


def measured_alone(cluster):
    """Seconds of one request's prompt, and of each of its later tokens."""
    report = predict(apart(cluster, LLAMA, [{"at_s": 0.0, "prompt_tokens": P_ROWS, "new_tokens": NEW}]))
    return report.ttft_s, report.tpot_s


@pytest.mark.parametrize("max_batch", [1, 3])
def test_a_hand_gets_the_same_times_to_first_tokens_and_the_same_makespan(max_batch):
    """A prompt takes P and a token D, with 3 D < P: the later tokens of each request are ready before the
    next one's first. So prompts follow each other, request i has its first token after (i + 1) P, and the
    last token comes after 5 P + 3 D. With one request in work nothing overlaps: i (P + 3 D) + P, 5 (P + 3 D).
    """
    cluster = star([1e9, 1e9], "d1", flop_per_s=1e6)
    prompt_s, token_s = measured_alone(cluster)
    assert 3 * token_s < prompt_s
    rows = [{"at_s": 0.0, "prompt_tokens": P_ROWS, "new_tokens": NEW}] * COUNT
    trace, outcome = simulate(prepare(apart(cluster, LLAMA, rows, max_batch=max_batch)))
    assert outcome.kind == "finished"
    emitted = marks_of(trace, "token_emitted")
    first_s = [mark.time_s for mark in emitted if mark.facts["index"] == 0]
    apart_s = prompt_s + (3 * token_s if max_batch == 1 else 0)
    assert first_s == pytest.approx([number * apart_s + prompt_s for number in range(COUNT)], rel=0.01)
    assert emitted[-1].time_s == pytest.approx((COUNT - 1) * apart_s + prompt_s + 3 * token_s, rel=0.01)


def test_both_devices_compute_at_the_same_time_and_each_its_own_phase():
    rows = [{"at_s": 0.0, "prompt_tokens": 20, "new_tokens": 12} for _ in range(8)]
    trace, _ = simulate(prepare(apart(star([1e9] * 2, "d1", flop_per_s=1e7), LLAMA, rows, max_batch=8)))
    blocks = [item for item in trace if isinstance(item, Span) and item.kind == "compute" and item.layer >= 0]
    assert {item.device for item in blocks if item.name == "block" and item.token == 0} == {"d0"}
    assert {item.device for item in blocks if item.name == "block" and item.token > 0} == {"d1"}
    busy_s = {
        name: sum(one.end_s - one.start_s for one in blocks if one.device == name) for name in ("d0", "d1")
    }
    assert max(one.end_s for one in blocks) < 0.8 * sum(busy_s.values())


def test_processes_over_sockets_overlap_the_phases_and_give_the_tokens_of_transformers():
    rows = [{"at_s": 0.0, "prompt_tokens": 5 + index, "new_tokens": 6} for index in range(4)]
    spec = apart(star([1e8, 1e8], "d1"), GPT2, rows, max_batch=4)
    report, trace = run_local(spec.model_copy(update={"dilation": 2.0}))
    assert report["outcome"]["kind"] == "finished", report["outcome"]
    assert report["correctness"]["token_identical"] is True, report["correctness"]
    steps = [item["facts"] for item in trace if item.get("name") == "step_scheduled"]
    prompts = [number for number, step in enumerate(steps) if step["phase"] == "prefill"]
    assert len(prompts) == 4 and prompts != [0, 1, 2, 3]


@pytest.mark.parametrize("name", ["single", "gpipe", "voltage"])
def test_a_method_that_computes_both_phases_on_the_same_devices_says_so(name):
    with pytest.raises(SpecError, match=f"{name} computes prompts and tokens on the same devices"):
        prepare(spec_of(name, GPT2, **APART))


def test_one_worker_cannot_compute_apart_and_steps_with_both_phases_have_no_device():
    with pytest.raises(SpecError, match="only one worker with room"):
        prepare(apart(star([1e9], "d0"), GPT2, None))
    with pytest.raises(SpecError, match="no device for a step with prompts and tokens"):
        prepare(apart(star([1e9] * 2, "d0"), GPT2, None, scheduler="continuous"))


class Hasty(Disaggregated):
    """Runs the rows of all requests in steps over tokens, also of those whose prompt is under way."""

    def next(self, view):
        if view.phase == "prefill":
            return super().next(view)
        return Iteration(tuple(Chunk(job.request, job.new_rows) for job in view.running))


def test_a_scheduler_that_takes_rows_out_of_a_step_under_way_ends_the_run_with_a_sentence(monkeypatch):
    monkeypatch.setattr(engine.program.serve, "scheduler", lambda _: Hasty())
    report = predict(apart(star([1e8] * 2, "d1"), GPT2, None))
    assert report.outcome.kind == "failed"
    assert "runs or preempts request 0, which is in a step that is under way" in report.outcome.sentence
