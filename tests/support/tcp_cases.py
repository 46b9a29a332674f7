"""One TCP message over a path on which chosen transmissions are lost."""

from random import Random

from engine.worlds.simulated.tcp.connection import TcpConnection
from engine.worlds.simulated.tcp.path import PathConditions

SEGMENT_S = 0.001
HALF = 0.5
"""The fraction lost that `LosesThese` stands for."""


def path(delay_s=0.0, loss_frac=0.0, ack_loss_frac=0.0, segment_s=SEGMENT_S):
    return PathConditions(segment_s, delay_s, delay_s, loss_frac, ack_loss_frac)


class LosesThese(Random):
    """In place of chance: loses the transmissions with these numbers (0 is the first), and no others."""

    def __init__(self, *transmissions):
        super().__init__(0)
        self.left = sorted(transmissions)
        self.last = -1

    def random(self):
        # a draw r stands for floor(log(1 - r) / log(1 - p)) segments until the next loss, here p = 1/2
        if not self.left:
            return 1 - 2.0**-50
        gap = self.left[0] - self.last - 1
        self.last = self.left.pop(0)
        return 1 - 2.0 ** -(gap + 0.5)


class Draws(Random):
    """In place of chance: these numbers, one after the other."""

    def __init__(self, *numbers):
        super().__init__(0)
        self.numbers = list(numbers)

    def random(self):
        return self.numbers.pop(0)


def delivered(segments, *lost, delay_s=0.0, cwnd=20.0, followed=False):
    """The connection and the delivery of a message whose transmissions `lost` are lost."""
    tcp = TcpConnection()
    tcp.congestion.cwnd = cwnd
    return tcp, tcp.deliver(segments, path(delay_s, HALF), LosesThese(*lost), followed)
