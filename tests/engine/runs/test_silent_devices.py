"""Which devices a run reports as silent: those whose process makes no sign, not those that are busy."""

import json

from engine.domain.events import ClockTicked, to_json
from tests.support.fake_devices import FakeClock, active_run, running_pool

TRIES = 5
"""A busy host may silence any device for a while, but none that makes a sign for all that it computes."""


def test_a_stopped_process_is_reported_until_it_goes_on_and_one_that_computes_for_long_is_not(
    tmp_path, in_a_copy
):
    for _ in range(TRIES):
        in_a_copy("silent_run", tmp_path / "result.json")
        found = json.loads((tmp_path / "result.json").read_text())
        assert found["operation_s"] > 3, "no device was quiet for longer than the limit"
        assert found["outcome"] == "cancelled", "the run went on until it was stopped on purpose"
        reported = [silent_s for silent_s in found["silent"] if silent_s]
        assert all(seconds >= 2 for silent_s in reported for seconds in silent_s.values())
        assert "d0" in reported[-1] and "d0" not in found["silent"][-1]
        if {device for silent_s in reported for device in silent_s} == {"d0"}:
            return
    raise AssertionError(f"other devices than the stopped one are silent, too: {found['silent']}")


def test_silence_is_counted_from_a_devices_last_message_to_the_last_reading():
    clock = FakeClock(100.0)
    pool = running_pool(clock, active_run(clock))
    clock.now_s = 103.0
    pool.devices[1].report(type="alive")
    pool.read(0.0)
    clock.now_s = 110.0  # nobody reads: what the devices sent since then is not known
    assert pool.silent_s(2.0) == {"d0": 3.0, "d2": 3.0}
    pool.read(0.0)
    assert pool.silent_s(8.0) == {"d0": 10.0, "d2": 10.0}
    pool.close(at_once=True)


def test_a_healthy_run_sends_nothing_about_silence():
    assert to_json([ClockTicked(time_s=1.0, wall_s=2.0)]) == [{"type": "clock", "time_s": 1.0, "wall_s": 2.0}]
    (silent,) = to_json([ClockTicked(time_s=1.0, wall_s=2.0, silent_s={"d1": 3.5})])
    assert silent["silent_s"] == {"d1": 3.5}
