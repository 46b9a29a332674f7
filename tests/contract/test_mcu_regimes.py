"""Weights that come and go while chips compute: both worlds fetch the same bytes and keep the same memory."""

import pytest
from test_worlds_agree import operations, spec_of

from engine.domain.cluster import ClusterSpec
from engine.domain.events import to_json
from engine.runs.predict import predict, prepare, simulate

REGIMES = {"double-buffered": 2.0, "streamed": 1.9}
FAMILIES = ["tiny-gpt2", "tiny-bert", "tiny-llama"]
CASES = [(regime, family) for regime in REGIMES for family in FAMILIES]
IDS = ["-".join(case) for case in CASES]


def chips(on_chip_weight_bytes=None):
    chip = {
        "memory_bytes": 4e8,
        "memory_byte_per_s": 4e9,
        "flop_per_s": 1e10,
        "half_rows": 0.7,
        "on_chip_weight_bytes": on_chip_weight_bytes,
        "compute_model": "serial",
    }
    return ClusterSpec(
        name="chips",
        source="d0",
        devices=[{"name": f"d{i}", **chip} for i in range(2)],
        links=[{"a": "d0", "b": "d1", "bit_per_s": 1e8}],
    )


def case_of(regime, family):
    """Two chips whose memory for weights makes it this regime; three layers, so that not all fit in two."""

    def spec(cluster):
        made = spec_of("mcu", family, cluster, "one")
        model = made.model.model_copy(update={"num_layers": 3})
        return made.model_copy(update={"model": model})

    largest = max(prepare(spec(chips())).plan.layout.slice_bytes)
    chosen = spec(chips(REGIMES[regime] * largest))
    assert prepare(chosen).plan.layout.regime == regime
    return chosen


@pytest.fixture(scope="module")
def real_runs(play_for_real):
    return play_for_real({name: case_of(*case) for name, case in zip(IDS, CASES, strict=True)})


@pytest.mark.parametrize(("case", "name"), list(zip(CASES, IDS, strict=True)), ids=IDS)
def test_both_worlds_load_and_compute_the_same_and_the_real_one_is_right(case, name, real_runs):
    spec, report = case_of(*case), real_runs[name]["report"]
    trace, _ = simulate(prepare(spec))
    simulated, real = operations(to_json(trace)), operations(real_runs[name]["trace"])
    assert any(item[1] == "load" for item in simulated)
    assert simulated == real
    assert report["correctness"]["ok"], report["correctness"]
    peaks = {device.name: device.peak_memory_bytes for device in predict(spec).devices}
    assert {d["name"]: d["peak_memory_bytes"] for d in report["devices"]} == peaks
