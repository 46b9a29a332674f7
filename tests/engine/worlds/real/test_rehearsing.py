"""What a rehearsal leaves behind on a device: nothing."""

from types import SimpleNamespace

from engine.models import catalogue
from engine.models.weights.store import WeightStore
from engine.runs.predict import prepare
from engine.worlds.real.rehearsing import _restore
from tests.support.fake_devices import small_spec


def test_afterwards_a_device_holds_the_weights_that_the_plan_begins_with() -> None:
    spec = small_spec(devices=1, strategy="single")
    plan = prepare(spec).plan
    first, *others = plan.held_by(0)
    weights = WeightStore(spec.model, catalogue.resolve("tiny-gpt2", "random")[1], 0)
    part = first.model_copy(update={"stop": first.start + 1}) if first.stop > 1 else first
    for piece in (*others, part):
        weights.load(piece)
    _restore(SimpleNamespace(rank=0, weights=weights), plan)
    assert set(weights.held) == {first, *others}
