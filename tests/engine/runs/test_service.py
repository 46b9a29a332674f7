"""What becomes of the requests that people send to a run: taken or refused, cancelled, ended at a limit."""

import pytest

from engine.domain.events import RequestRefused
from engine.domain.sampling import SEEDS, Sampling
from engine.domain.trace import Mark
from engine.domain.workload import Workload
from engine.models.inputs.prompts import requests_of
from engine.runs.active_run import ActiveRun
from engine.runs.predict import prepare
from engine.runs.service import MOST_CHARS_PER_TOKEN, Service, recorded
from tests.support.fake_devices import FakeClock, FakePool, small_spec

LIMITS = {
    "pattern": "serve",
    "prompt_tokens": 4,
    "new_tokens": 6,
    "requests": 3,
    "queue_limit": 2,
    "idle_wall_s": 10.0,
    "serve_wall_s": 100.0,
}


@pytest.fixture
def case():
    """Makes the only case of a test."""
    made = []

    def make(**workload):
        made.append(Case(**workload))
        return made[0]

    yield make
    made[0].pool.close(at_once=True)
    made[0].device.sock.close()


class Case:
    def __init__(self, **workload):
        spec = small_spec(workload=Workload.parse(LIMITS | workload, "test"))
        self.clock, self.events = FakeClock(), []
        self.pool = pool = FakePool(self.clock)
        prepared = prepare(spec)
        self.run = ActiveRun(spec, prepared.plan, (), 2.0, frozenset(), self.events.append, clock=self.clock)
        self.run.start_wall_s = self.clock()
        pool.fork(spec.cluster.source_rank, prepared.plan)
        self.device = pool.devices[spec.cluster.source_rank]
        self.service = Service(self.run, pool)
        self.service.check()

    def ask(self, name="a", **more):
        self.service.handle({"kind": "ask", "id": name, "tokens": [1, 2], "by": "carol"} | more)

    def end(self, request, how="finished"):
        self.service.note(Mark(0.0, f"request_{how}", "d0", {"request": request}))

    def refusals(self):
        return [event.reason for event in self.events if isinstance(event, RequestRefused)]

    def after_s(self, wall_s):
        self.clock.now_s += wall_s
        self.service.check()
        return self.service.closing


def test_a_request_goes_to_the_source_with_its_time_and_its_number(case):
    case = case()
    case.clock.now_s += 3.0  # 1.5 virtual seconds at dilation 2
    case.ask(new_tokens=5)
    (message,) = case.device.got()
    request = message["request"]
    assert (message["type"], request["index"], request["tokens"]) == ("ask", 0, [1, 2])
    assert (request["arrival_s"], request["new_tokens"]) == (1.5, 5)
    (mark,) = case.events
    assert mark.name == "request_accepted"
    assert {"id": "a", "by": "carol", "prompt_tokens": 2, "new_tokens": 5}.items() <= mark.facts.items()


def test_a_request_s_tokens_are_drawn_as_it_says_and_else_as_the_run_does(case):
    case = case(temperature=0.7, top_k=40, requests=4, queue_limit=9)
    case.ask("a")
    case.ask("b")
    case.ask("c", sampling={"temperature": 0.0, "top_p": 0.5})
    case.ask("d", sampling={"top_k": 0, "top_p": 0.9, "seed": -1})
    first, second, greedy, own = (request.sampling for request in case.run.requests)
    assert (first.temperature, first.top_k, first.seed) == (0.7, 40, case.run.spec.seed)
    assert first.stream != second.stream
    assert greedy is None
    assert own == Sampling(temperature=0.7, top_p=0.9, seed=SEEDS - 1)
    kept = [
        Mark(1.0, "token_emitted", "d0", {"request": index, "index": 0, "token": 1}) for index in (1, 2, 3)
    ]
    spec, _ = recorded(case.run.spec, case.run.requests, kept)
    assert [request.sampling for request in requests_of(spec)] == [second, greedy, own]


@pytest.mark.parametrize(
    ("command", "said", "blamed"),
    [
        ({"tokens": [1] * 5}, "has 5 tokens, and this run takes up to 4", "prompt"),
        ({"tokens": [1] * 10_000_000}, "has 5 tokens", "prompt"),
        ({"tokens": None, "text": "x" * (4 * MOST_CHARS_PER_TOKEN + 1)}, "characters", "prompt"),
        ({"tokens": None, "text": "hello"}, "has 5 tokens", "prompt"),
        ({"tokens": None, "text": ""}, "has no tokens", "prompt"),
        ({"tokens": ["1"]}, "whole numbers", "prompt"),
        ({"tokens": [-1]}, "expected 0 to", "prompt"),
        ({"new_tokens": 7}, "expected 1 to 6", "new_tokens"),
        ({"new_tokens": -1}, "expected 1 to 6", "new_tokens"),
        ({"id": "first"}, "no other request has", ""),
        ({"id": ""}, "no other request has", ""),
    ],
)
def test_what_a_run_cannot_answer_is_refused_with_the_reason(command, said, blamed, case):
    case = case()
    case.ask("first")
    case.device.got()
    case.ask(**command)
    (refusal,) = (event for event in case.events if isinstance(event, RequestRefused))
    assert said in refusal.reason
    assert refusal.field == blamed
    assert not case.device.got()
    assert len(case.run.requests) == 1


def test_only_so_many_wait_and_only_so_many_are_taken_in_all(case):
    case = case()
    for name in "abc":
        case.ask(name)
    assert ["answers as may (2)" in reason for reason in case.refusals()] == [True]
    case.end(0)
    case.ask("d")
    case.end(1, "cancelled")
    case.ask("e")
    assert "this run takes (3)" in case.refusals()[-1]
    assert not case.after_s(0.0), "the last one is not answered yet"
    case.end(2)
    assert "its limit of requests, 3." in case.after_s(0.0)
    case.ask("f")
    assert "No more requests are taken: The service ended at its limit of requests" in case.refusals()[-1]


def test_a_service_ends_when_nobody_has_asked_for_long_and_never_while_somebody_waits(case):
    case = case()
    case.ask()
    assert not case.after_s(50.0)
    case.end(0)
    assert not case.after_s(9.0)
    assert "nobody asked for 10 s" in case.after_s(2.0)
    assert [message["type"] for message in case.device.got()] == ["ask", "close"]


def test_a_service_ends_at_its_time_with_whoever_waits(case):
    case = case()
    case.ask()
    assert not case.after_s(99.0)
    assert "after 100 s" in case.after_s(2.0) or "1 min" in case.service.closing
    assert case.device.got()[-1]["type"] == "close"


def test_a_prompt_of_as_many_tokens_as_the_run_takes_and_of_the_last_id_is_taken(case):
    case = case()
    last = case.run.spec.model.num_text_tokens - 1
    case.ask(tokens=[0, 1, 2, last])
    assert case.run.requests[0].tokens == (0, 1, 2, last)
    case.ask("b", tokens=[last + 1])
    case.ask("c", tokens=[-1])
    assert case.refusals() == [f"tokens: expected 0 to {last}."] * 2


def test_a_request_is_withdrawn_once_and_again_after_a_new_plan_until_the_source_says_so(case):
    case = case()
    case.ask()
    case.service.handle({"kind": "withdraw", "id": "unknown"})
    case.service.handle({"kind": "withdraw", "id": "a", "by": "carol"})
    (_, withdrawn) = case.device.got()
    assert (withdrawn["request"], withdrawn["reason"]) == (0, "Cancelled by carol.")
    case.service.repeat()
    assert case.device.got() == [withdrawn]
    case.end(0, "cancelled")
    case.service.repeat()
    case.service.handle({"kind": "withdraw", "id": "a"})
    assert not case.device.got()


def test_a_conversation_becomes_what_the_chat_template_makes_of_it_and_text_without_one(case, monkeypatch):
    asked = []

    def templated(model, weights, messages, most_chars):
        asked.append((messages, most_chars))
        return (7, 8, 9) if messages[0]["role"] == "user" else None

    monkeypatch.setattr("engine.runs.service.chat_tokens", templated)
    case = case()
    case.ask("a", tokens=None, text="abcd", messages=[{"role": "user", "content": "abcd"}])
    case.ask("b", tokens=None, text="ab", messages=[{"role": "system", "content": "ab"}])
    assert [request.tokens for request in case.run.requests] == [(7, 8, 9), (97, 98)]
    assert asked[0] == ([{"role": "user", "content": "abcd"}], 4 * MOST_CHARS_PER_TOKEN)


def test_one_person_leaves_a_quarter_of_the_queue_to_others_and_two_share_it(case):
    case = case(requests=99, queue_limit=16)
    for number in range(16):
        case.ask(f"a{number}", by="ann")
    assert len(case.run.requests) == 12
    assert "12 of your requests wait" in case.refusals()[0]
    assert "the last 4 of 16 places" in case.refusals()[0]
    assert all(event.busy for event in case.events if isinstance(event, RequestRefused))
    for number in range(16):
        case.ask(f"b{number}", by="bob")
    assert [request.person for request in case.run.requests].count("bob") == 3
    for request in range(12):
        case.end(request)
        case.ask(f"c{request}", by="ann")
        case.ask(f"d{request}", by="bob")
    waiting = [case.run.requests[index].person for index in case.service.open]
    assert sorted((waiting.count("ann"), waiting.count("bob"))) == [6, 8]


def test_a_run_with_a_fixed_workload_takes_no_requests_and_has_no_end_of_service(case):
    case = case(pattern="sporadic")
    case.ask()
    assert "fixed workload" in case.refusals()[0]
    assert not case.after_s(1e6)


def test_the_record_has_the_requests_that_got_tokens_with_as_many_as_they_got(case):
    case = case()
    for name, tokens in (("a", [1, 2]), ("b", [3]), ("c", [4, 5, 6])):
        case.service.workload = case.service.workload.model_copy(update={"queue_limit": 9})
        case.ask(name, tokens=tokens)
    emitted = [(0, 0), (2, 0), (2, 1)]
    trace = [
        Mark(1.0, "token_emitted", "d0", {"request": request, "index": index, "token": 1})
        for request, index in emitted
    ]
    spec, kept = recorded(case.run.spec, case.run.requests, trace)
    assert [(row.tokens, row.new_tokens) for row in spec.workload.trace] == [((1, 2), 1), ((4, 5, 6), 2)]
    assert [row.person for row in spec.workload.trace] == ["carol", "carol"]
    assert [request.index for request in kept] == [0, 2]
