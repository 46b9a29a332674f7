"""What a rehearsal leaves behind on a device: nothing."""

from types import SimpleNamespace

from engine.runs.predict import prepare
from engine.worlds.real.rehearsing import _restore
from tests.support.fake_devices import small_spec


class Weights:
    """Which slices a device holds."""

    def __init__(self, held):
        self.held = dict.fromkeys(held)

    def load(self, piece):
        self.held[piece] = None

    def evict(self, piece):
        del self.held[piece]


def test_afterwards_a_device_holds_the_weights_that_the_plan_begins_with():
    plan = prepare(small_spec(devices=1, strategy="single")).plan
    evicted, *others = plan.held_by(0)
    loaded = evicted.model_copy(update={"layer": 99})
    weights = Weights((*others, loaded))
    _restore(SimpleNamespace(rank=0, weights=weights), plan)
    assert set(weights.held) == {evicted, *others}
