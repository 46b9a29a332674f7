"""What a fresh TCP connection adds to the first message over a long path, by hand."""

import pytest

from engine.domain.scenario import Scenario
from engine.domain.spec import RunSpec
from engine.domain.trace import Span
from engine.domain.workload import Workload
from engine.reports.slow_start import slow_start_notes, slow_start_s
from engine.runs.predict import predict
from tests.support.small_cases import GPT2, star


def test_a_window_doubles_with_each_round_trip_until_the_message_is_out():
    """1 MB are 691 segments: 10, 20, 40, 80, 160 and 320 of them wait for a round trip of 0.2 s each, less
    the time in which 100 Mbit/s carry them; the last 61 wait for nothing.
    """
    carried_s = (10 + 20 + 40 + 80 + 160 + 320) * 1448 * 8 / 1e8
    assert slow_start_s(1e6, 1e8, 0.2) == pytest.approx(6 * 0.2 - carried_s)


def test_a_window_that_fills_the_path_waits_no_more():
    """At 1 Mbit/s and 0.2 s, 10 segments take 116 ms, 20 take 232: only the first window waits."""
    assert slow_start_s(1e6, 1e6, 0.2) == pytest.approx(0.2 - 10 * 1448 * 8 / 1e6)
    assert slow_start_s(1e6, 1e5, 0.2) == 0.0
    assert slow_start_s(14_480, 1e8, 0.2) == 0.0, "ten segments need no acknowledgement"


def far(delay_s, **more):
    cluster = star([1e9] * 3)
    links = tuple(link.model_copy(update={"delay_s": delay_s / 2, **more}) for link in cluster.links)
    return cluster.model_copy(update={"links": links})


def sent(size, number=0, peer="d1"):
    return Span("d0", "send", "x", -1, 0.0, 1.0, size, peer=peer, message=number)


def test_the_sentence_says_what_was_counted_and_what_a_fresh_connection_takes():
    (note,) = slow_start_notes(far(0.1), [sent(1_000_000), sent(5_000_000, 1), sent(100_000, 0, "d2")])
    assert note == (
        "The first message from d0 to d1, 1 MB over 100 ms of delay, counts as on a connection in use, which "
        "takes 180 ms; on a fresh one TCP's slow start makes that 1.31 s (so for 2 pairs of devices)."
    )


@pytest.mark.parametrize(
    ("cluster", "size"), [(far(0.02), 1_000_000), (far(0.1), 14_000), (far(0.1, loss_frac=0.01), 1_000_000)]
)
def test_nothing_is_said_of_short_paths_short_messages_and_losses_which_are_simulated(cluster, size):
    assert slow_start_notes(cluster, [sent(size)]) == ()


def test_a_prediction_over_a_long_path_says_it_beside_its_figures():
    spec = RunSpec(
        cluster=far(0.1),
        model=GPT2.model_copy(update={"max_positions": 512}),
        strategy="gpipe",
        params={"planner": "paper"},
        workload=Workload(prompt_tokens=400, new_tokens=2),
        scenario=Scenario(),
    )
    (note,) = predict(spec).fidelity.notes
    assert note.startswith(
        "The first message from d0 to d1, 51.3 kB over 100 ms of delay, counts as on a connection"
    )
