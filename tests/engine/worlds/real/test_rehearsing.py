"""What a rehearsal leaves behind on a device: nothing."""

import threading
import time
from types import SimpleNamespace

from engine.models.weights.store import WeightStore
from engine.program.frames import EPOCHS
from engine.runs.predict import prepare
from engine.strategies.registry import strategy
from engine.worlds.real.connections import Connections
from engine.worlds.real.device import RealDevice
from engine.worlds.real.rehearsing import _restore, rehearse
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


class Played:
    """Two devices of a pipeline, in threads of this process, with weights and connections over loopback."""

    def __init__(self, tmp_path):
        self.prepared = prepare(small_spec(devices=2, strategy="gpipe"))
        spec, plan = self.prepared.spec, self.prepared.plan
        control = SimpleNamespace(has_message=lambda: False, receive=lambda: None, send=lambda message: None)
        self.devices = []
        for rank in range(2):
            weights = WeightStore(spec.model, spec.weights, spec.seed, tmp_path)
            for piece in plan.held_by(rank):
                weights.load(piece)
            connections = Connections(rank, "127.0.0.1")
            given = (spec, plan, lambda item: None, weights, True, frozenset(), connections, control)
            self.devices.append(RealDevice(rank, *given))
        first, second = (device.connections for device in self.devices)
        first.addresses, second.addresses = {1: ("127.0.0.1", second.port)}, {0: ("127.0.0.1", first.port)}
        assert first.open(1) and second.open(0)
        while not (first.num_connected and second.num_connected):
            first.wait(0.1), second.wait(0.1)
        for (
            device
        ) in self.devices:  # as in a run, before any of them says something: it throws away what comes
            device.warm_up()
        self.epochs = []

    def note_epochs(self):
        """Note the epoch of every message that a device reads."""
        for device in self.devices:
            wait = device.connections.wait

            def noted(timeout_s, wait=wait):
                messages, closed = wait(timeout_s)
                self.epochs.extend(message.header.epoch for message in messages)
                return messages, closed

            device.connections.wait = noted

    def rehearse(self, epoch):
        """What each device says of a rehearsal."""
        said, spec = {}, self.prepared.spec
        given = (strategy(spec.strategy), self.prepared.plan, self.prepared.requests, epoch)
        start_s = time.monotonic()

        def play(device):
            said[device.rank] = rehearse(device, *given, start_s, 2.0)

        threads = [threading.Thread(target=play, args=(device,)) for device in self.devices]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return said

    def close(self):
        for device in self.devices:
            own = device.connections
            for peer in tuple(own.sending):
                own.close(peer)
            for sock in (own.listener, own._woken, own._waker, *(each.sock for each in own.receiving)):
                sock.close()


def test_devices_rehearse_with_an_epoch_of_its_own_and_are_as_they_were(tmp_path):
    """A message of a rehearsal that comes late must be none of the run's; and some methods load and evict."""
    played = Played(tmp_path)
    played.note_epochs()
    first, second = played.devices
    loaded = next(iter(second.weights.held))
    first.weights.load(loaded)
    try:
        said = played.rehearse(-1)
    finally:
        played.close()
    tokens = [item["facts"]["index"] for item in said[0]["items"] if item.get("name") == "token_emitted"]
    assert tokens == [0, 1, 2] and all(one["rehearsal"]["operations"] for one in said.values())
    assert set(played.epochs) == {-1 % EPOCHS}
    for device in played.devices:
        assert set(device.weights.held) == set(played.prepared.plan.held_by(device.rank))
        assert device.epoch == 0 and not device.caches and not device.live
