"""The kept plans of random runs, and the table that compares others with them."""

from bench.strategies.plans import METHODS, RUNS, Planned, compared, draw, planned, read
from engine.strategies.registry import BUILT_IN


def test_the_kept_runs_are_those_drawn_and_of_methods_that_there_are() -> None:
    kept = read()
    assert [one.number for one in kept] == list(range(RUNS))
    assert set(METHODS) <= {method.name for method in BUILT_IN}
    for one in kept[::97]:
        spec, planner = draw(one.number)
        assert (spec.strategy, planner) == (one.method, one.planner)


def test_planning_the_same_run_twice_finds_the_same() -> None:
    index = METHODS.index("megatron")
    assert planned(index)[:-1] == planned(index)[:-1]


def test_a_run_counts_as_slower_or_faster_from_one_percent_on() -> None:
    before = Planned(0, "galaxy", "best", "a", 1.0, 0.5, 7, 0.1)
    kept = [before._replace(number=number) for number in range(5)]
    times = (1.0, 1.009, 1.02, 0.9, -1.0)
    now = [one._replace(total_s=time_s, plan="b") for one, time_s in zip(kept, times, strict=True)]
    (row,) = compared(kept, [kept[0], *now[1:]]).rows
    assert row[:6] == ("galaxy", "best", "5", "1", "1", "1")
    assert row[6:8] == ("0.900 … 1.020", "0 / 1")
