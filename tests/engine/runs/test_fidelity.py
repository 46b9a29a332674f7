"""The verdict on a real run: what makes it invalid, what it says, what is not judged and why."""

import math
from dataclasses import replace

import pytest

from engine.domain.network import LinkMeasurement
from engine.domain.report import RequestReport
from engine.domain.scenario import (
    DropDevice,
    SlowDevice,
)
from engine.domain.trace import Mark, Span
from engine.runs.fidelity import (
    LATENCY_LIMIT,
    Played,
    fidelity_of_native,
)
from engine.runs.native import Simulated
from engine.worlds.real.trace_writer import TraceWriter
from tests.support.host_profiles import a_profile
from tests.support.verdicts import GOOD_LINK, PREDICTED, op, report, stats, verdict


def test_punctual_operations_and_true_links_make_a_run_valid():
    found = verdict()
    assert found.valid is True and found.why == () and found.notes == ()
    assert found.compute_error_mean == pytest.approx(0.005)
    assert found.link_error_max == pytest.approx(0.01)
    assert (found.model_error_mean, found.model_error_p95, found.compared_frac) == (0.0, 0.0, 1.0)
    assert (found.latency_error, found.latency_limit) == (0.0, LATENCY_LIMIT)


def test_the_95_percent_figure_is_the_high_end_of_the_errors():
    found = verdict(stats(errors=tuple(index / 1e4 for index in range(101))))
    assert found.compute_error_p95 == pytest.approx(0.0095)


def test_late_operations_are_named_with_the_remedy():
    found = verdict(stats(errors=(0.2, 0.3)))
    assert found.valid is False
    assert "25.0% of their time later" in found.why[0] and "raise the dilation" in found.why[0]


def test_the_remedy_is_the_dilation_that_would_do():
    # 1.4 of its time at D = 4: at D = 8 it is the 70 % that planning leaves an operation
    (why,) = verdict(stats(late=3, used=(1.4,) * 20)).why
    assert why.endswith("raise the dilation from 4 to 8.")
    # the runtime's own 300 µs for each of 40 operations are 12 ms: of 24 ms as much as half of the time
    (why,) = verdict(stats(late=3, used=(0.9,) * 20, target_s=0.024)).why
    assert why.endswith("raise the dilation from 4 to 8.")
    # whatever was measured, it must be clearly larger than what was not enough
    (why,) = verdict(stats(late=3, used=(0.1,) * 20)).why
    assert why.endswith("raise the dilation from 4 to 5.")
    (why,) = verdict(stats(late=3, used=())).why
    assert why.endswith("raise the dilation from 4 to 5.")


def test_the_more_devices_share_the_host_the_more_dilation_a_late_run_needs():
    """300 µs of the runtime for each of 40 operations, 19/7 as much where 14 devices find cold caches: 12 or
    32.6 ms beside 90 % of 24 ms.
    """
    one = stats(late=3, used=(0.9,) * 20, target_s=0.024)["desk"]
    raised = {}
    for devices in (2, 14):
        (why,) = verdict({f"d{index}": one for index in range(devices)}).why
        raised[devices] = float(why.rsplit(" ", 1)[1].rstrip("."))
    assert raised == {2: 8.0, 14: 13.0}  # 4 · 1.4 / 0.7, and 4 · 2.257 / 0.7 = 12.9


def test_a_verdict_has_the_largest_dilation_that_its_reasons_name_and_none_where_no_dilation_helps():
    found = verdict(stats(late=3, used=(1.4,) * 20), run=report(latency_s=5.0))
    assert [why.endswith(("from 4 to 8.", "from 4 to 160.")) for why in found.why] == [True, True]
    assert found.enough_dilation == 160.0
    slow = LinkMeasurement(2, False, 1e8, 0.8e8, "tbf")
    assert verdict(links=[slow]).why and verdict(links=[slow]).enough_dilation is None
    assert verdict().enough_dilation is None


def test_too_many_late_operations_make_it_invalid():
    assert verdict(stats(late=3)).valid is False
    assert verdict(stats(late=2)).valid is True


def test_operations_half_as_long_again_as_the_model_says_make_it_invalid_though_none_is_late():
    found = verdict(trace=[op(0.0, 0.15), op(0.15, 0.15), op(0.3, 0.3, "head")])
    assert found.valid is False
    assert found.model_error_mean == pytest.approx(0.5)
    assert found.why == (
        "operations took times that are 50.0% off their device's model (limit 10%): "
        "raise the dilation from 4 to 20.",  # at which the same wall time is 10 %
    )


def steps(device, took_s, start_s=0.0, token=0):
    """Five operations of one device, one after the other. Those of a decode step take fewer FLOPs."""
    flops = 10 if token else 100
    return [
        Span(device, "compute", "ffn", 0, at_s, at_s + took_s, flops=flops, bytes=10, token=token)
        for at_s in (start_s + index * took_s for index in range(5))
    ]


def test_operations_of_one_device_that_are_too_long_make_it_invalid_however_small_its_part():
    # the phone's 0.5 s are 5 % of all computing, so half as long again is 2.5 % on average
    model = [*steps("desk", 1.9), *steps("phone", 0.1)]
    found = verdict(trace=[*steps("desk", 1.9), *steps("phone", 0.15)], model=model)
    assert found.model_error_mean == pytest.approx(0.025)
    assert found.why == (
        "most operations of phone in the prefill took times that are 50.0% off its model "
        "or more (limit 10%): raise the dilation from 4 to 20.",
    )
    assert verdict(trace=model, model=model).valid is True


def answered(*times):
    """A run with a request for each pair: its arrival, and the seconds until its only token."""
    requests = [
        RequestReport(index=at, arrival_s=arrival_s, ttft_s=took_s, token_s=(took_s,), output_tokens=(1,))
        for at, (arrival_s, took_s) in enumerate(times)
    ]
    return report().model_copy(update={"requests": tuple(requests)})


@pytest.mark.parametrize(
    ("times", "most_s"),
    [
        (((0.0, 10.0),), 0.1),
        (((0.0, 1.0), (1000.0, 1.0)), 0.02),  # nobody waits in between
        (((0.0, 1.0), (0.5, 1.0)), 0.015),  # both wait at once
    ],
)
def test_a_device_is_not_judged_that_computes_for_a_hundredth_of_the_time_in_which_requests_wait(
    times, most_s
):
    model = [*steps("desk", 1.9), *steps("phone", most_s / 20)]
    pacing = stats() | {"phone": stats(late=40)["desk"]}
    enough, too_much = (
        verdict(
            pacing,
            run=answered(*times),
            trace=[*steps("desk", 1.9), *steps("phone", part * most_s / 5)],
            model=model,
        )
        for part in (0.99, 1.01)
    )
    assert enough.valid is True
    assert [note.partition(".")[0] for note in enough.notes] == [
        "Operations of phone took times that are more than 10% off their model"
    ]
    assert too_much.notes == () and len(too_much.why) == 2
    assert "50.0% of the operations overran" in too_much.why[0] and "of phone" in too_much.why[1]


def test_devices_that_compute_little_each_and_much_together_are_judged():
    """Each of twenty computes for 0.9 % of ten seconds, twice as long as it should."""
    phones = [f"phone-{number}" for number in range(20)]
    trace, model = (
        [*steps("desk", 1.9), *(span for phone in phones for span in steps(phone, took_s))]
        for took_s in (0.018, 0.009)
    )
    found = verdict(run=answered((0.0, 10.0)), trace=trace, model=model)
    assert found.valid is False and len(found.why) == 19, "but for one, all are judged"


def test_a_device_is_judged_by_all_that_it_computed_also_where_no_prediction_has_it():
    """After a failure a device did most under a plan that the prediction has not."""
    trace = [*steps("desk", 0.01), *(replace(span, name="other") for span in steps("desk", 1.8, 0.1))]
    found = verdict(stats(late=20), run=answered((0.0, 10.0)), trace=trace, model=steps("desk", 0.01))
    assert "50.0% of the operations overran" in found.why[0]


def test_operations_that_are_too_long_in_the_prefill_alone_make_it_invalid():
    decode = steps("desk", 1.9, start_s=10.0, token=1)
    found = verdict(trace=[*steps("desk", 0.15), *decode], model=[*steps("desk", 0.1), *decode])
    assert found.valid is False
    assert "most operations of desk in the prefill" in found.why[0]


def test_two_late_operations_of_five_are_this_hosts_delay_and_not_a_wrong_model():
    model = [*steps("desk", 1.9), *steps("phone", 0.1)]
    late = [replace(span, end_s=span.end_s + 0.08) for span in steps("phone", 0.1)[::4]]
    assert verdict(trace=[*steps("desk", 1.9), *steps("phone", 0.1)[1:4], *late], model=model).valid is True


def test_operations_that_one_device_did_not_do_make_it_invalid():
    model = [*steps("desk", 1.9), *steps("phone", 0.1)]
    found = verdict(trace=model[:-1], model=model)
    assert found.why == ("phone did not do 20.0% of the operations that the prediction has (limit 10%).",)
    # after a change or a failure others may have done them; a cancelled run has not come to them
    lost = report(changes=(DropDevice(at_s=0.1, device="shelf"),))
    slow = report(changes=(SlowDevice(at_s=0.1, device="desk", factor=1.0),))
    for run in (lost, slow, report(kind="cancelled")):
        assert verdict(trace=model[:-1], model=model, run=run).valid is True


def test_a_run_that_finished_though_its_prediction_did_not_is_invalid():
    found = verdict(predicted=report(kind="out_of_memory"))
    assert found.why == ("the run finished, but its prediction ran out of memory.",)
    lost = report(changes=(DropDevice(at_s=0.1, device="shelf"),))
    assert verdict(run=lost, predicted=report(kind="peer_lost")).valid is True


def test_operations_at_the_same_time_on_one_device_make_it_invalid():
    found = verdict(trace=[op(0.0, 0.1), op(0.05, 0.1), op(0.2, 0.2, "head")])
    assert found.valid is False
    # 0.05 s of 0.4 s
    assert found.why == ("devices ran two operations at once for 12.5% of their computing time (limit 5%).",)


def test_operations_that_the_prediction_has_not_make_it_invalid():
    found = verdict(trace=[*PREDICTED, op(0.4, 0.1, "other")])
    assert found.compared_frac == 0.75
    assert found.valid is False
    assert "only 3 of 4 operations occur in the prediction" in found.why[0]


def test_after_a_failure_plans_differ_so_fewer_operations_need_be_compared():
    lost = report(changes=(DropDevice(at_s=0.1, device="shelf"),))
    assert verdict(run=lost, trace=[*PREDICTED, op(0.4, 0.1, "other")]).valid is True
    assert verdict(run=lost, trace=[op(0.4, 0.1, "other")]).valid is False


def test_a_slowed_device_is_judged_by_its_new_speed():
    slow = report(changes=(SlowDevice(at_s=0.0, device="desk", factor=2.0),))
    mark = Mark(0.0, "device_changed", "desk", {"factor": 2.0})
    obeyed = [mark, op(1.0, 0.2), op(1.2, 0.2), op(1.4, 0.4, "head")]
    assert verdict(run=slow, trace=obeyed).model_error_mean == pytest.approx(0.0)
    # dilation 4: for 25 virtual ms a device may not know of it
    assert verdict(run=slow, trace=[mark, op(0.03, 0.1)]).model_error_mean == pytest.approx(0.5)
    assert verdict(run=slow, trace=[mark, op(0.02, 0.1)]).model_error_mean == pytest.approx(0.0)


def test_a_link_that_misses_its_rate_is_called_by_its_name():
    found = verdict(links=[GOOD_LINK, LinkMeasurement(2, False, 1e8, 0.8e8, "tbf")])
    assert found.valid is False
    assert found.why == ("link window--hub carries 80.0% of the rate asked for (limit ±5%).",)


def native(links=(GOOD_LINK,), on_host=None, run=None):
    run = run or report(9.0, dilation=None)
    return fidelity_of_native(run, Played([op(0.0, 7.0)], {}, links, "tbf"), on_host)


def test_a_native_run_is_judged_by_its_links_alone():
    found = native()
    assert found.valid is True
    assert (found.late_frac, found.model_error_mean, found.latency_error) == (None, None, None)
    assert native(links=(GOOD_LINK._replace(achieved_bit_per_s=5e7),)).valid is False


@pytest.mark.parametrize(
    ("run", "prediction", "words"),
    [
        ("deadlock", "finished", "the run ended in a deadlock"),
        ("finished", "failed", "the prediction failed"),
    ],
)
def test_a_native_run_is_compared_only_if_it_and_its_prediction_finished(run, prediction, words):
    predicted = Simulated(report(8.0, dilation=None, kind=prediction), [])
    found = native(on_host=predicted, run=report(9.0, dilation=None, kind=run))
    assert found.native == () and words in found.notes[0]


def test_a_native_run_stands_beside_its_prediction():
    found = native(on_host=Simulated(report(8.0, dilation=None), [op(0.0, 7.0)]))
    assert found.latency_error == pytest.approx(9 / 8 - 1)
    assert [part.name for part in found.native] == ["compute", "runtime", "link", "disk", "wait"]


def test_a_native_run_says_that_its_prediction_comes_from_a_calibration_beside_other_work():
    predicted = report(8.0, dilation=None)
    for core_frac, notes in ((1.0, 1), (0.71, 2)):
        profile = a_profile("here").model_copy(update={"core_frac": core_frac})
        of_host = predicted.model_copy(
            update={"spec": predicted.spec.model_copy(update={"profile": profile})}
        )
        found = native(on_host=Simulated(of_host, [op(0.0, 7.0)]))
        assert len(found.notes) == notes
    assert "with a core for 71% of its time" in found.notes[1]


def test_a_run_without_pacing_statistics_has_no_verdict():
    assert verdict({}).valid is None


class Listener:
    """The parent's end, as far as a trace writer sees it; it wants no sign of life."""

    sent_s = math.inf

    def __init__(self):
        self.messages = []

    def send(self, message):
        self.messages.append(message)


def test_all_that_was_emitted_has_been_sent_after_a_flush():
    heard = Listener()
    writer = TraceWriter(heard)  # its own thread flushes meanwhile
    for index in range(3000):
        writer.emit(Mark(float(index), "happened"))
        if index % 7 == 0:
            writer.flush()
    writer.flush()
    times = [item["time_s"] for message in heard.messages for item in message["items"]]
    assert times == [float(index) for index in range(3000)]


# Tokens that a change did not disturb ------------------------------------------------------------
