"""The simulated network without devices: what is sent when, and when it departs and arrives."""

from engine.worlds.simulated.kernel import FAULT, SimulationKernel
from engine.worlds.simulated.message import SimulatedMessage
from engine.worlds.simulated.network import SimulatedNetwork

MEGABYTE = 1_000_000


class Scene:
    """A network, and when messages departed and arrived, by name."""

    def __init__(self, cluster, seed=0):
        self.kernel = SimulationKernel()
        self.departed, self.arrived, self.numbers = {}, {}, {}
        self.network = SimulatedNetwork(
            cluster,
            self.kernel,
            lambda message: self.departed.update({message.tag: self.kernel.now_s}),
            lambda message: self.arrived.update({message.tag: self.kernel.now_s}),
            seed,
        )

    def send(self, name, src, dst, size_bytes=MEGABYTE, at_s=0.0):
        def send():
            number = self.numbers[src, dst] = self.numbers.get((src, dst), -1) + 1
            facts = {"bytes": size_bytes, "message": number}
            self.network.send(SimulatedMessage(src, dst, name, 0, None, (), at_s, facts))

        self.kernel.schedule(at_s, send)
        return self

    def change(self, change):
        self.kernel.schedule(change.at_s, lambda: self.network.change(change), FAULT)

    def run(self):
        self.kernel.run(is_over=lambda: False, when_idle=lambda: False)
        return self
