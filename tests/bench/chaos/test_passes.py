"""What devices did, pass by pass: which passes count, what each cost, and how two runs are compared."""

from bench.chaos.passes import Pass, Work, as_it_happened, passes_of, unequal, unmatched
from engine.domain.scenario import DropDevice, JoinDevice, LinkDown, SetRate
from engine.domain.trace import Mark, Span

NONE = frozenset[str]()


def compute(device, end_s, token, flops=10, request=0):
    return Span(device, "compute", "ffn", 0, end_s - 0.1, end_s, flops=flops, request=request, token=token)


def send(device, end_s, token, size=100, request=0):
    return Span(device, "send", "x", 0, end_s - 0.1, end_s, size, request=request, token=token, peer="a")


def emitted(time_s, token, request=0):
    return Mark(time_s, "token_emitted", "a", {"request": request, "index": token})


def mark(time_s, name, device=""):
    return Mark(time_s, name, device)


def test_a_pass_has_the_operations_flops_and_bytes_of_every_device():
    trace = [compute("a", 0.1, 0), compute("a", 0.2, 0, flops=5), send("b", 0.3, 0), emitted(0.4, 0)]
    assert passes_of(trace) == {Pass(0, NONE, 0, 0, True): {"a": Work(2, 15, 0), "b": Work(0, 0, 100)}}


def test_a_send_that_ends_after_the_token_belongs_to_its_pass():
    passes = passes_of([compute("a", 0.1, 0), emitted(0.2, 0), send("a", 0.3, 0), compute("a", 0.4, 1)])
    assert passes == {Pass(0, NONE, 0, 0, True): {"a": Work(1, 10, 100)}}


def test_a_pass_without_its_token_does_not_count_and_one_under_a_new_plan_begins_anew():
    trace = [
        compute("a", 0.1, 0),
        emitted(0.2, 0),
        compute("a", 0.3, 1),
        mark(0.4, "loss_detected", "b"),
        mark(0.4, "replanned"),
        send("a", 0.45, 1),  # on its way already
        compute("a", 0.5, 1, flops=70),
        emitted(0.6, 1),
        compute("a", 0.7, 2),
        emitted(0.8, 2),
        mark(0.9, "device_joined", "b"),
        mark(0.9, "replanned"),
        compute("b", 1.0, 3, flops=80),
        emitted(1.1, 3),
    ]
    failed = frozenset("b")
    assert passes_of(trace) == {
        Pass(0, NONE, 0, 0, True): {"a": None, "b": None},  # the last pass before a failure
        Pass(1, failed, 0, 1, True): {"a": Work(1, 70, 0)},
        Pass(1, failed, 0, 2, False): {"a": None},
        Pass(2, NONE, 0, 3, True): {"b": Work(1, 80, 0)},
    }


def test_what_a_device_did_under_the_plan_in_which_it_failed_is_unknown():
    trace = [
        compute("a", 0.1, 0),
        compute("b", 0.1, 0),
        emitted(0.2, 0),
        compute("a", 0.3, 1),
        emitted(0.4, 1),
        mark(0.5, "loss_detected", "b"),
        compute("a", 0.6, 2),
        emitted(0.7, 2),
    ]
    assert passes_of(trace) == {
        Pass(0, NONE, 0, 0, True): {"a": Work(1, 10, 0), "b": None},
        Pass(0, NONE, 0, 1, False): {"a": None, "b": None},
        Pass(0, frozenset("b"), 0, 2, False): {"a": Work(1, 10, 0), "b": None},
    }


def test_an_encoders_pass_ends_with_its_request():
    trace = [compute("a", 0.1, 0), Mark(0.2, "request_finished", "a", {"request": 0})]
    assert passes_of(trace) == {Pass(0, NONE, 0, 0, True): {"a": Work(1, 10, 0)}}


def test_the_last_token_and_the_end_of_its_request_are_one_pass():
    trace = [compute("a", 0.1, 0), emitted(0.2, 0), Mark(0.2, "request_finished", "a", {"request": 0})]
    assert len(passes_of(trace)) == 1


def test_a_device_that_did_less_is_named_with_both_figures():
    key = Pass(1, NONE, 0, 3, False)
    real, predicted = {key: {"a": Work(4, 40, 7)}}, {key: {"a": Work(4, 40, 7), "b": Work(2, 20, 5)}}
    assert unequal(real, predicted) == [
        "token 3 of request 0 under plan 1: b did 0 operations, 0 FLOP, 0 B sent; "
        "predicted are 2 operations, 20 FLOP, 5 B sent"
    ]
    assert unequal(real, real) == []


def test_what_is_unknown_in_one_run_is_not_compared():
    key = Pass(0, NONE, 0, 0, True)
    assert unequal({key: {"a": None}}, {key: {"a": Work(1, 10, 0), "b": None}}) == []


def test_passes_of_one_run_alone_are_listed():
    first, second = Pass(0, NONE, 0, 1, False), Pass(1, NONE, 0, 1, True)
    assert unmatched({first: {}}, {second: {}}) == [
        "token 1 of request 0 under plan 0: not in the prediction",
        "token 1 of request 0 under plan 1: only in the prediction",
    ]
    assert unmatched({first: {}}, {first: {}}) == []


def test_changes_get_the_times_at_which_they_happened():
    changes = (
        DropDevice(at_s=1.0, device="b"),
        LinkDown(at_s=1.5, link="c--s"),
        JoinDevice(at_s=2.0, device="b"),
        SetRate(at_s=3.0, link="c--s", bit_per_s=1e6),
        DropDevice(at_s=9.0, device="b"),  # after the end
    )
    trace = [
        Mark(1.1, "device_lost", "b"),
        Mark(1.6, "link_down", "", {"link": "c--s"}),
        Mark(1.7, "device_lost", "c"),  # by itself
        Mark(2.3, "device_joined", "b"),
        Mark(3.1, "link_changed", "", {"link": "c--s"}),
    ]
    assert [change.at_s for change in as_it_happened(changes, trace)] == [1.1, 1.6, 2.3, 3.1]


def test_a_device_that_joins_takes_effect_when_the_others_stop_for_the_new_plan():
    changes = (JoinDevice(at_s=2.0, device="b"), SetRate(at_s=2.2, link="c--s", bit_per_s=1e6))
    trace = [
        Mark(2.1, "device_joined", "b"),
        compute("a", 2.15, 0),
        Mark(2.3, "link_changed", "", {"link": "c--s"}),
        compute("a", 2.4, 0),
        Mark(2.5, "replanned", "", {"reason": "b joined at 2.450 s."}),
        compute("a", 2.9, 0),
    ]
    happened = as_it_happened(changes, trace)
    assert [(change.kind, change.at_s) for change in happened] == [("set_rate", 2.3), ("join_device", 2.4)]


def test_a_device_that_fails_again_before_a_plan_has_it_joined_when_it_did():
    changes = (JoinDevice(at_s=2.0, device="b"), DropDevice(at_s=2.3, device="b"))
    trace = [
        Mark(2.1, "device_joined", "b"),
        compute("a", 2.2, 0),
        Mark(2.3, "device_lost", "b"),
        Mark(2.5, "replanned", "", {"reason": "b failed at 2.300 s."}),
    ]
    assert [change.at_s for change in as_it_happened(changes, trace)] == [2.1, 2.3]
