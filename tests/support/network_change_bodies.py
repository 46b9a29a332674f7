"""What the tests of live changes do inside private namespaces. Arguments and results are JSON."""

import socket
import struct
import time
from typing import Any

from emulator.network.measure import fill
from emulator.network.mininet_network import MininetNetwork
from engine.domain.network import LinkState
from engine.domain.scenario import DropDevice, JoinDevice, LinkDown, LinkUp, SetLoss, SetRate
from tests.support.network_bodies import NEAR, fastest, opened, qdiscs
from tests.support.network_stream import Stream, connection
from tests.support.tries import largest, tries

DATA_SEGMENTS_AT = 156  # in Linux's struct tcp_info: tcpi_data_segs_out
WINDOW_S = 0.2


def segments_around(spec: dict[str, Any], loss_frac: float) -> list[int]:
    """The segments in which an open connection sends two thousand bytes: at first, after the network is set
    to another dilation, and after a link has got a loss.
    """
    with opened(spec, 1.0) as network:
        sender, receiver = connection(network, 0, 1)
        with sender, receiver:
            counts = [_segments(sender, receiver)]
            network.dilate(4.0)
            counts.append(_segments(sender, receiver))
            network.apply(SetLoss(at_s=0.0, link=network.cluster.links[0].name, loss_frac=loss_frac))
            counts.append(_segments(sender, receiver))
            return counts


def _segments(sender: socket.socket, receiver: socket.socket) -> int:
    def sent() -> int:
        info = sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 192)
        return int(struct.unpack_from("I", info, DATA_SEGMENTS_AT)[0])

    before = sent()
    sender.sendall(bytes(2000))
    fill(receiver, bytearray(2000))
    return sent() - before


def drops(network: MininetNetwork) -> int:
    """The frames that the queues of all links have dropped. TCP repeats some that are only late, too."""
    ends = (end for both in network.layout.ends for end in both)
    return sum(qdisc["drops"] for end in ends for qdisc in qdiscs(network, end.name))


def rate_change(
    spec: dict[str, Any], link: str, direction: str, bit_per_s: float, expected_bit_per_s: float
) -> dict[str, Any]:
    """A stream from device 0 to device 1 while a rate changes: facts, the fastest bit/s after it, drops."""
    network = opened(spec)
    with network:
        stream = Stream(network, 0, 1)
        stream.wait_for(500_000)
        facts = network.apply(
            SetRate.model_validate({"at_s": 0, "link": link, "direction": direction, "bit_per_s": bit_per_s})
        )
        stream.wait_for(100_000)
        size = int(expected_bit_per_s / 8 * WINDOW_S)
        fastest_bit_per_s = largest(lambda: stream.bit_per_s(size), (1 - NEAR) * expected_bit_per_s)
        result = {
            "facts": facts,
            "bit_per_s": fastest_bit_per_s,
            "drops": drops(network),
            "kernel": {
                end.forward: qdiscs(network, end.name)[0]["options"]["rate"] * 8
                for end in network.layout.ends[network.cluster.link_index(link)]
            },
        }
        stream.close()
    return result


def live_measurement(spec: dict[str, Any], link: int, bit_per_s: float) -> dict[str, Any]:
    """Rates that `state` shows after a live change of a link that is in use all the time: before it is
    measured, and of several brief measurements those nearest to what is asked.
    """
    with opened(spec) as network:
        stream = Stream(network, 0, 1)
        stream.wait_for(200_000)
        network.apply(SetRate(at_s=0, link=network.cluster.links[link].name, bit_per_s=bit_per_s))

        def shown() -> dict[bool, LinkState]:
            return {state.forward: state for state in network.state() if state.link == link}

        def error(found: list[dict[bool, float]], forward: bool) -> float:
            return min(abs(one[forward] - bit_per_s) for one in found)

        def measure() -> dict[bool, float]:
            ends = {forward: state.probe_ends + 2 for forward, state in shown().items()}
            network.measure([link])
            while any(state.probe_ends < ends[forward] for forward, state in shown().items()):
                time.sleep(0.01)
            return {forward: state.measured_bit_per_s or 0.0 for forward, state in shown().items()}

        before = shown()[True].measured_bit_per_s
        # a pause between clock and counter makes a brief measurement too large as well as too small
        found = tries(measure, lambda all_: max(error(all_, True), error(all_, False)) <= NEAR * bit_per_s)
        stream.close()
    forward, backward = (
        min((one[way] for one in found), key=lambda rate: abs(rate - bit_per_s)) for way in (True, False)
    )
    return {"before": before, "forward": forward, "backward": backward}


def cut_and_restored(spec: dict[str, Any], link: str) -> dict[str, Any]:
    """Bytes that cross a cut link, whether the connection lives on, and the shape after it is restored."""
    network = opened(spec)
    with network:
        stream = Stream(network, 0, 1)
        stream.wait_for(200_000)
        down = network.apply(LinkDown(at_s=0, link=link))
        index = network.cluster.link_index(link)
        at_cut = sent(network, index)
        again = network.apply(LinkDown(at_s=0, link=link))
        time.sleep(0.3)  # the time in which nothing may happen
        during = sent(network, index) - at_cut
        shown = [s.up for s in network.state() if s.link == index]
        up = network.apply(LinkUp(at_s=0, link=link))
        stream.wait_for(200_000)
        shape = [qdiscs(network, end.name)[0]["kind"] for end in network.layout.ends[index]]
        stream.close()
        return {"down": down, "again": again, "during": during, "shown": shown, "up": up, "shape": shape}


def sent(network: MininetNetwork, link: int) -> int:
    return sum(s.sent_bytes for s in network.state() if s.link == link)


def dropped_device(spec: dict[str, Any], name: str) -> list[bool]:
    """Which links are up after a device is dropped."""
    with opened(spec) as network:
        network.apply(DropDevice(at_s=0, device=name))
        return [s.up for s in network.state() if s.forward]


def dropped_and_joined(
    spec: dict[str, Any], name: str, cut: str, slow: str, bit_per_s: float
) -> dict[str, Any]:
    """Device `name` is dropped and joins again; meanwhile the rate of link `slow` changes, and link `cut` is
    down for another reason. Which links are up at each step, what the network answers, and the rates then.
    """
    with opened(spec) as network:
        steps = (
            LinkDown(at_s=0, link=cut),
            DropDevice(at_s=0, device=name),
            SetRate(at_s=0, link=slow, bit_per_s=bit_per_s),
            JoinDevice(at_s=0, device=name),
        )
        facts, up = [], []
        for change in steps:
            facts.append(network.apply(change))
            up.append([s.up for s in network.state() if s.forward])
        measured = {(link, forward): achieved for link, forward, _, achieved in fastest(network)}
        network.apply(LinkUp(at_s=0, link=cut))
        sender, receiver = connection(network, 0, len(network.cluster.devices) - 1)
        with sender, receiver:
            sender.sendall(bytes(1000))
            fill(receiver, bytearray(1000))
        return {"facts": facts, "up": up, "rates": measured[network.cluster.link_index(slow), True]}
