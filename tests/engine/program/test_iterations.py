"""Requests that join and leave between two tokens: in time, in both worlds, with the tokens of one alone."""

from random import Random

import pytest

import engine.program.serve
from bench.fuzz.check import outputs_of
from engine.domain.errors import SpecError
from engine.domain.sampling import Sampling
from engine.domain.spec import RunSpec
from engine.domain.trace import Mark
from engine.domain.workload import Workload
from engine.program.order import Order
from engine.program.strategy import SequenceRows
from engine.runs.local import run_local
from engine.runs.predict import predict, prepare, simulate
from engine.schedulers.scheduler import Chunk, Iteration, Scheduler
from engine.strategies.registry import by_rule, strategy
from tests.support.small_cases import GPT2, LLAMA, star

RUN = ("single", "gpipe", "edgeshard", "megatron", "deepspeed", "accelerate", "cloud_only", "edge_only")
REFUSE = (
    *("galaxy", "voltage", "edgeformer", "lime", "adaptlink", "mcu", "tpi_llm", "tpi_llm_offload"),
    "pipeline_offload",
)


def rows_of(random, count):
    """Arrivals of unequal requests, close enough to each other that they meet."""
    at_s, rows = 0.0, []
    for _ in range(count):
        at_s += random.expovariate(1.0) * 10 ** random.uniform(-4, -1)
        rows.append(
            {"at_s": at_s, "prompt_tokens": random.randint(1, 12), "new_tokens": random.randint(1, 4)}
        )
    return rows


def spec_of(name, model=LLAMA, rows=None, devices=2, **workload):
    given = {"pattern": "trace", "trace": rows or rows_of(Random(1), 5), "max_batch": 3} | workload
    return RunSpec(
        cluster=star([1e9] * devices),
        model=model,
        strategy=name,
        params=by_rule(name),
        workload=Workload.parse(given, "test"),
        seed=5,
    )


def tokens_of(spec):
    """The tokens of every request in the calculated world."""
    found = outputs_of(prepare(spec))
    rows = {int(name.partition(".")[2]): value for name, value in found.items() if not name.startswith("p")}
    return {
        request: (value.argmax(-1) if value.is_floating_point() else value).tolist()
        for request, value in rows.items()
    }


def alone(spec):
    """The tokens of every request, one at a time on one device."""
    workload = spec.workload.model_copy(update={"scheduler": "fcfs", "max_batch": 1, "chunk_tokens": 64})
    return tokens_of(spec.model_copy(update={"strategy": "single", "params": {}, "workload": workload}))


def steps_of(spec):
    trace, outcome = simulate(prepare(spec))
    assert outcome.kind == "finished"
    return [item for item in trace if isinstance(item, Mark) and item.name == "step_scheduled"]


@pytest.mark.parametrize("name", RUN)
@pytest.mark.parametrize(
    "scheduler", [{"scheduler": "continuous"}, {"scheduler": "chunked", "chunk_tokens": 5}]
)
def test_every_request_gets_the_tokens_that_it_gets_alone(name, scheduler):
    random = Random(f"{name} {scheduler}")
    model = random.choice([GPT2, LLAMA])
    spec = spec_of(name, model, rows_of(random, 5), random.randint(1, 2), **scheduler)
    assert tokens_of(spec) == alone(spec)
    assert predict(spec).outcome.kind == "finished"


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize(("name", "head"), [("megatron", "columns"), ("gpipe", "last")])
def test_a_step_of_parts_of_prompts_alone_gives_no_token_wherever_tokens_are_chosen(name, head, terminal):
    """Prompts longer than a step, at a source with and without layers."""
    rows = [
        {"at_s": 0.0, "prompt_tokens": 9, "new_tokens": 2},
        {"at_s": 0.1, "prompt_tokens": 7, "new_tokens": 3},
    ]
    spec = spec_of(name, LLAMA, rows, scheduler="chunked", chunk_tokens=3)
    params, cluster = spec.params | {"head": head}, star([1e9, 1e9], terminal)
    spec = spec.model_copy(update={"cluster": cluster, "params": params})
    assert tokens_of(spec) == alone(spec)
    assert predict(spec).outcome.kind == "finished"


def test_a_member_without_heads_has_no_rows_to_keep_beside_those_of_others():
    """One request alone, whose step is a plain one, then two together."""
    rows = [{"at_s": at_s, "prompt_tokens": 4, "new_tokens": 6} for at_s in (0.0, 1e-4)]
    spec = spec_of("megatron", LLAMA, rows, scheduler="continuous")
    params = spec.params | {"shares": "proportional"}
    spec = spec.model_copy(update={"cluster": star([1e9, 1e7, 1e9]), "params": params})
    assert prepare(spec).plan.layout.heads_of(1)[0] == prepare(spec).plan.layout.heads_of(1)[1]
    assert tokens_of(spec) == alone(spec)


@pytest.mark.parametrize("name", ["single", "gpipe"])
def test_processes_over_sockets_give_the_tokens_of_transformers(name):
    """Two that are there from the start meet in a step, whenever the others come."""
    arrivals_s = (0.0, 0.0, 0.01, 0.02)
    rows = [
        {"at_s": at_s, "prompt_tokens": 3 + index, "new_tokens": 4} for index, at_s in enumerate(arrivals_s)
    ]
    spec = spec_of(name, GPT2, rows, scheduler="chunked", chunk_tokens=4)
    report, trace = run_local(spec.model_copy(update={"dilation": 2.0}))
    assert report["outcome"]["kind"] == "finished", report["outcome"]
    assert report["correctness"]["token_identical"] is True, report["correctness"]
    assert any(len(item["facts"]["requests"]) > 1 for item in trace if item.get("name") == "step_scheduled")


class Unkind(Scheduler):
    """Gives prompts in parts and preempts by the numbers that it sees, to try what others seldom do."""

    name = "unkind"
    title = summary = "for tests"

    def next(self, view):
        random = Random(f"{[job[:4] for job in view.running]} {len(view.waiting)}")
        victims = [job for job in view.running[1:] if random.random() < 0.2 and job.rows < 30]
        kept = [job for job in view.running if job not in victims]
        jobs = [*kept, *view.waiting[: view.max_batch - len(kept)]]
        chunks = [Chunk(job.request, random.randint(1, job.new_rows)) for job in jobs]
        random.shuffle(chunks)
        return Iteration(tuple(chunks), tuple(job.request for job in victims))


@pytest.mark.parametrize("name", ["single", "gpipe", "megatron"])
def test_preempted_requests_are_computed_again_to_the_same_tokens(name, monkeypatch):
    rows = [{"at_s": 0.0, "prompt_tokens": 3 + 2 * index, "new_tokens": 6 - index} for index in range(5)]
    spec = spec_of(name, LLAMA, rows, scheduler="continuous")
    expected = alone(spec)
    monkeypatch.setattr(engine.program.serve, "scheduler", lambda _: Unkind())
    assert tokens_of(spec) == expected
    assert any(mark.facts["preempted"] for mark in steps_of(spec))


def test_a_request_joins_others_at_the_next_step_and_waits_for_no_whole_answer():
    # two requests at time 0 and one that comes while they run: it is admitted in the step after its arrival
    rows = [{"at_s": at_s, "prompt_tokens": 4, "new_tokens": 8} for at_s in (0.0, 0.0, 1e-4)]
    steps = steps_of(spec_of("single", GPT2, rows, scheduler="continuous"))
    assert [mark.facts["requests"] for mark in steps][:2] == [[0, 1], [0, 1, 2]]
    assert [mark.facts["rows"] for mark in steps][:2] == [[4, 4], [1, 1, 4]]
    assert len(steps) == 9


def test_continuous_batching_answers_overlapping_requests_sooner_than_one_by_one():
    rows = [{"at_s": 0.0, "prompt_tokens": 4 + index, "new_tokens": 8} for index in range(3)]
    one_by_one, together = (
        predict(spec_of("single", GPT2, rows, scheduler=name)).latency_s for name in ("fcfs", "continuous")
    )
    assert together < one_by_one


@pytest.mark.parametrize("name", REFUSE)
def test_a_method_that_cannot_says_why_in_one_sentence(name):
    cluster = star([1e9] * 2, memory_bytes=4e8)
    spec = spec_of(name, LLAMA, scheduler="continuous").model_copy(update={"cluster": cluster})
    reason = strategy(name).why_not_ragged(prepare(with_fcfs(spec)).plan)
    assert reason is not None and reason.endswith(".") and ". " not in reason
    with pytest.raises(SpecError, match="takes in requests while others are answered") as refused:
        prepare(spec)
    assert reason in str(refused.value)


def with_fcfs(spec):
    return spec.model_copy(update={"workload": spec.workload.model_copy(update={"scheduler": "fcfs"})})


@pytest.mark.parametrize(
    "fields",
    [
        {"scheduler": "continuous", "prompt_tokens": 4},
        {
            "scheduler": "continuous",
            "prompt_tokens": 4,
            "new_tokens": 0,
            "pattern": "poisson",
            "rate_per_s": 1,
        },
        {"chunk_tokens": 8, "prompt_tokens": 4, "pattern": "poisson", "rate_per_s": 1},
    ],
)
def test_a_scheduler_that_has_nothing_to_decide_is_refused(fields):
    with pytest.raises(SpecError, match="scheduler"):
        Workload.parse(fields, "test")


class Idle(Unkind):
    def next(self, view):
        return Iteration()


class ShortestFirst(Scheduler):
    name, title, summary = "shortest", "Shortest prompt first", "Of those that wait, the shortest joins."

    def next(self, view):
        waiting = sorted(view.waiting, key=lambda job: job.new_rows)
        jobs = (*view.running, *waiting)[: view.max_batch]
        return Iteration(tuple(Chunk(job.request, job.new_rows) for job in jobs))


@pytest.mark.parametrize("asked", ["own", "auto"])
def test_a_method_may_have_a_scheduler_of_its_own(asked, monkeypatch):
    """Three are there at once, and one is answered at a time: the shorter its prompt, the sooner."""
    rows = [{"at_s": 0.0, "prompt_tokens": length, "new_tokens": 2} for length in (9, 3, 6)]
    spec = spec_of("gpipe", rows=rows, max_batch=1, scheduler=asked)
    with pytest.raises(SpecError, match="gpipe has no scheduler of its own"):
        prepare(spec_of("gpipe", rows=rows, scheduler="own"))
    monkeypatch.setattr(type(strategy("gpipe")), "scheduler", ShortestFirst())
    assert prepare(spec).spec.workload.scheduler == "own"
    orders = [step.facts["requests"] for step in steps_of(spec)]
    assert orders == [[1], [1], [2], [2], [0], [0]]
    assert tokens_of(spec) == alone(spec)
    monkeypatch.setattr(type(strategy("gpipe")), "why_not_ragged", lambda self, plan: "it cannot.")
    with pytest.raises(SpecError, match="scheduler is shortest, which takes in requests while others"):
        prepare(spec)


def test_a_scheduler_that_runs_nothing_ends_the_run_with_a_sentence(monkeypatch):
    monkeypatch.setattr(engine.program.serve, "scheduler", lambda _: Idle())
    report = predict(spec_of("single", scheduler="continuous"))
    assert report.outcome.kind == "failed"
    assert "The scheduler unkind runs nothing at" in report.outcome.sentence


def test_an_order_of_any_length_survives_the_way_as_numbers():
    sequences = tuple(
        SequenceRows(request=r, cache=f"r{r}", start=r % 7, rows=r + 1, index=r % 3, answers=bool(r % 2))
        for r in range(120)
    )
    sampled = ((7, Sampling(temperature=0.5, seed=2**62, stream=3)), (9, Sampling(temperature=2.0, seed=0)))
    for order in (Order((4, 2), sequences, sampled), Order((), sequences[:1], sampled[:1])):
        assert Order.of_numbers(order.as_numbers()) == order
    order = Order((4, 2), sequences)
    assert Order.of_numbers(order.as_numbers()) == order
    assert Order.of_numbers(Order((), ()).as_numbers()) == Order((), ())


def test_a_complaint_about_a_scheduler_is_an_outcome(monkeypatch):
    class Greedy(Unkind):
        def next(self, view):
            return Iteration(tuple(Chunk(job.request, job.new_rows + 1) for job in view.waiting))

    monkeypatch.setattr(engine.program.serve, "scheduler", lambda _: Greedy())
    report = predict(spec_of("single", scheduler="continuous"))
    assert report.outcome.kind == "failed" and "new ones" in report.outcome.sentence
