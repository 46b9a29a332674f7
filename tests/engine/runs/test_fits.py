"""A prediction that cannot fit into memory is refused before it begins."""

import gc
import tracemalloc

import pytest

from engine.domain.errors import SpecError
from engine.domain.spec import RunSpec
from engine.domain.workload import Workload
from engine.models import catalogue
from engine.runs import fits
from engine.runs.predict import predict, prepare, simulate
from tests.support.small_cases import star


def spec(requests: int, strategy: str = "gpipe", new_tokens: int = 2) -> RunSpec:
    model, weights = catalogue.resolve("tiny-gpt2", "random")
    return RunSpec(
        cluster=star((1e8, 1e8)),
        model=model,
        weights=weights,
        strategy=strategy,
        workload=Workload(prompt_tokens=8, new_tokens=new_tokens, requests=requests),
    )


def test_what_does_not_fit_is_refused_with_the_arithmetic_and_the_most_that_fits() -> None:
    with pytest.raises(
        SpecError, match=r"is 1,000,000, and a prediction keeps \d+ events of .* free"
    ) as raised:
        fits.check_fits(spec(1_000_000), 1 << 30)
    ((place, words),) = raised.value.fields
    most = int(words.removeprefix("at most ").split()[0].replace(",", ""))
    assert place == "workload.requests"
    fits.check_fits(spec(most), 1 << 30)
    with pytest.raises(SpecError):
        fits.check_fits(spec(most + 1), 1 << 30)


def test_few_requests_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fits, "prepare", None)
    assert fits.check_fits(spec(fits.MANY // 2 - 1), 0) == 0.0


@pytest.mark.parametrize("strategy", ["gpipe", "megatron", "voltage"])
def test_a_prediction_takes_no_more_memory_than_was_counted(
    monkeypatch: pytest.MonkeyPatch, strategy: str
) -> None:
    few, many = 20, 70
    peaks = []
    predict(spec(few, strategy))
    for requests in (few, many):
        gc.collect()  # what other tests left would be counted, or not, by when the collector runs
        tracemalloc.start()
        predict(spec(requests, strategy))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    each_bytes = (peaks[1] - peaks[0]) / (many - few)
    monkeypatch.setattr(fits, "MANY", 0)
    fits.check_fits(spec(1000, strategy), int(1e12))
    with pytest.raises(SpecError):
        fits.check_fits(spec(1000, strategy), int(1000 * each_bytes))


def test_long_answers_are_foreseen_from_short_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """By brute force: the events of the whole prediction."""
    trace, _ = simulate(prepare(spec(3, "voltage", new_tokens=40)))
    played = []
    monkeypatch.setattr(
        fits, "simulate", lambda few: played.append(few.spec.workload.new_tokens) or simulate(few)
    )
    each = fits.foreseen(spec(3, "voltage", new_tokens=40))
    assert each.events == pytest.approx(len(trace) / 3, rel=0.01)
    assert max(played) <= fits.LONG_ANSWER
    assert each.wall_s > 0


def test_one_request_that_does_not_fit_is_refused_by_its_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fits, "MANY", 0)
    with pytest.raises(SpecError, match=r"ask for at most [\d,]+ new tokens") as raised:
        fits.check_fits(spec(1, new_tokens=50), 10_000)
    assert raised.value.fields[0][0] == "workload.new_tokens"


@pytest.mark.parametrize("lengths", [(3,), (1, 40)])
def test_a_trace_is_foreseen_from_requests_of_all_its_parts(lengths):
    rows = [
        {"at_s": 10.0 * number, "prompt_tokens": 4, "new_tokens": lengths[number * len(lengths) // 60]}
        for number in range(60)
    ]
    asked = spec(60)
    asked = asked.model_copy(update={"workload": Workload(pattern="trace", trace=rows)})
    trace, _ = simulate(prepare(asked))
    assert fits.foreseen(asked).events == pytest.approx(len(trace) / 60, rel=0.05)
