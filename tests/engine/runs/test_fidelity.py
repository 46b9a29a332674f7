"""The verdict on a real run: what makes it invalid, what it says, and when there is none."""

import pytest

import topologies
from engine.domain.network import LinkMeasurement
from engine.domain.report import Outcome
from engine.domain.trace import Mark
from engine.runs.fidelity import fidelity_of
from engine.runs.supervisor import RealResult
from engine.worlds.real.device_process import TraceWriter

LAB = topologies.load("lab-3")
GOOD_LINK = LinkMeasurement(0, True, 1e8, 0.99e8, "tbf")


def verdict(pacing, links=(GOOD_LINK,), dilation=4.0):
    return fidelity_of(LAB, RealResult([], Outcome(), (), pacing, 0.1), links, "tbf", dilation)


def stats(errors=(0.0, 0.01), late=0, used=(0.5, 0.5), target_s=1e6):
    return {"desk": {"operations": 40, "late": late, "errors": errors, "used": used, "target_s": target_s}}


def test_punctual_operations_and_true_links_make_a_run_valid():
    found = verdict(stats())
    assert found.valid is True and found.why == ()
    assert found.compute_error_mean == pytest.approx(0.005)
    assert found.link_error_max == pytest.approx(0.01)


def test_slow_operations_are_named_with_the_remedy():
    found = verdict(stats(errors=(0.2, 0.3)))
    assert found.valid is False
    assert "25.0% longer" in found.why[0] and "raise the dilation" in found.why[0]


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


def test_too_many_late_operations_make_it_invalid():
    assert verdict(stats(late=3)).valid is False
    assert verdict(stats(late=2)).valid is True


def test_a_link_that_misses_its_rate_is_called_by_its_name():
    found = verdict(stats(), [GOOD_LINK, LinkMeasurement(2, False, 1e8, 0.8e8, "tbf")])
    assert found.valid is False
    assert found.why == ("link window--hub carries 80.0% of the rate asked for (limit ±5%).",)


def test_a_run_whose_devices_told_no_pacing_has_no_verdict():
    assert verdict({}).valid is None
    assert verdict({}, dilation=None).valid is True


class Listener:
    """The parent's end, as far as a trace writer sees it."""

    def __init__(self):
        self.messages = []

    def tell(self, message):
        self.messages.append(message)


def test_all_that_was_emitted_has_been_told_after_a_flush():
    heard = Listener()
    writer = TraceWriter(heard)  # its own thread flushes meanwhile
    for index in range(3000):
        writer.emit(Mark(float(index), "happened"))
        if index % 7 == 0:
            writer.flush()
    writer.flush()
    times = [item["time_s"] for message in heard.messages for item in message["items"]]
    assert times == [float(index) for index in range(3000)]
