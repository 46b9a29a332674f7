"""Sets link rates, and delays and losses where the kernel has netem; the only file that runs `tc`.

Each direction of a link is shaped where it is sent, by a token bucket (TBF). Against Mininet's HTB it
releases no bursts early (a 64 KB message takes 0.98–1.02 of size / rate, HTB 0.6–1.0), segments large
frames itself, so offloads may stay on, and can be changed live without dropping what is queued. Where
the kernel has netem, it sits below the bucket and adds delay, jitter and loss.

Every setting is read back and compared with what was asked.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from emulator.host.namespaces import NodeCommand, run_each, succeeds_apart
from engine.domain.errors import HostError
from engine.domain.token_bucket import (
    FRAME_BYTES,
    SEGMENT_BYTES,
    bucket_bit_per_s,
    burst_bytes,
    frames_per_piece,
)
from engine.domain.units import BITS_PER_BYTE, human

LIMIT_BYTES = 8_000_000  # queue: more than all senders' buffers together, so that nothing is dropped
NETEM_FRAMES = 100_000  # likewise
RATE_TOLERANCE = 1e-3


class Shape(NamedTuple):
    """The settings of one direction of a link, in wall time: payload bit/s, seconds, a fraction.

    Without `netem`, delay, jitter and loss are 0 here.
    """

    bit_per_s: float
    netem: bool = False
    delay_s: float = 0.0
    jitter_s: float = 0.0
    loss_frac: float = 0.0


class Port(NamedTuple):
    """An interface inside the namespace of process `pid`; `label` names the direction in messages."""

    pid: int
    interface: str
    label: str


def apply_shapes(shapes: Sequence[tuple[Port, Shape]]) -> None:
    """Shape interfaces that have no shape yet; raises `HostError` if a reading differs."""
    _batch([(port, line) for port, shape in shapes for line in tc_lines(port.interface, shape, "add")])
    _check(shapes)


def change_shapes(shapes: Sequence[tuple[Port, Shape]]) -> list[float]:
    """Change a running network without losing frames; returns the payload bit/s read back, in order."""
    _batch([(port, line) for port, shape in shapes for line in tc_lines(port.interface, shape, "change")])
    return _check(shapes)


def tc_lines(interface: str, shape: Shape, verb: str) -> tuple[str, ...]:
    """The lines of `tc -batch` that shape an interface; `verb` is add or change."""
    rate = bucket_bit_per_s(shape.bit_per_s)
    bucket = f"qdisc {verb} dev {interface} root handle 1: tbf rate {rate}bit burst {burst_bytes(rate)}"
    lines = [f"{bucket} limit {LIMIT_BYTES}"]
    if shape.netem:  # `replace` also puts one below a bucket that was alone
        impair = f"qdisc replace dev {interface} parent 1:1 handle 10: netem limit {NETEM_FRAMES}"
        impair += f" delay {round(shape.delay_s * 1e6)}us {round(shape.jitter_s * 1e6)}us"
        lines.append(f"{impair} loss {shape.loss_frac * 100:.6f}%")
    return tuple(lines)


def piece_limit(interface: str, shape: Shape) -> str:
    """The `ip -batch` line that makes TCP hand over pieces that the bucket passes whole."""
    return f"link set {interface} gso_max_segs {frames_per_piece(bucket_bit_per_s(shape.bit_per_s))}"


def kernel_has(qdisc: str) -> bool:
    """Whether the kernel has this qdisc, tried in a network namespace made for this one command."""
    options = {"netem": ("delay", "1ms"), "tbf": ("rate", "1mbit", "burst", "1600", "limit", "100000")}
    return succeeds_apart(("tc", "qdisc", "add", "dev", "lo", "root", qdisc, *options[qdisc]))


def _batch(lines: Sequence[tuple[Port, str]]) -> None:
    by_pid: dict[int, list[str]] = {}
    for port, line in lines:
        by_pid.setdefault(port.pid, []).append(line)
    run_each([NodeCommand(pid, ("tc", "-batch", "-"), "\n".join(own) + "\n") for pid, own in by_pid.items()])


def _check(shapes: Sequence[tuple[Port, Shape]]) -> list[float]:
    pids = sorted({port.pid for port, _ in shapes})
    outputs = run_each([NodeCommand(pid, ("tc", "-j", "qdisc", "show")) for pid in pids])
    readings = {pid: json.loads(output) for pid, output in zip(pids, outputs, strict=True)}
    return [check_reading(readings[port.pid], port, shape) for port, shape in shapes]


def check_reading(reading: list[dict[str, Any]], port: Port, shape: Shape) -> float:
    """Compare `tc -j qdisc show` with what was asked; the payload bit/s in force, or `HostError`."""
    own = {item["kind"]: item.get("options", {}) for item in reading if item.get("dev") == port.interface}
    asked = human(shape.bit_per_s, "bit/s")
    if "tbf" not in own:
        found = ", ".join(own) or "nothing"
        raise HostError(f"link {port.label}: asked for {asked} by tbf, the kernel shapes it with {found}.")
    frame_bit_per_s = own["tbf"]["rate"] * BITS_PER_BYTE
    actual = frame_bit_per_s * SEGMENT_BYTES / FRAME_BYTES
    # The kernel keeps whole bytes per second, which is coarse at very low rates.
    slack = bucket_bit_per_s(shape.bit_per_s) * RATE_TOLERANCE + BITS_PER_BYTE
    if abs(frame_bit_per_s - bucket_bit_per_s(shape.bit_per_s)) > slack:
        raise HostError(f"link {port.label}: asked for {asked}, the kernel set {human(actual, 'bit/s')}.")
    if own["tbf"]["burst"] < FRAME_BYTES:
        raise HostError(f"link {port.label}: {asked} is slower than the kernel can shape: raise the rate.")
    if shape.netem:
        _check_netem(own.get("netem"), port, shape)
    return float(actual)


def _check_netem(options: dict[str, Any] | None, port: Port, shape: Shape) -> None:
    if options is None:
        raise HostError(f"link {port.label}: asked for netem, the kernel has not applied it.")
    delay = options.get("delay", {})
    loss = options.get("loss-random", {}).get("loss", 0.0)
    pairs = (
        ("delay", shape.delay_s, delay.get("delay", 0.0), "s", 2e-6),
        ("jitter", shape.jitter_s, delay.get("jitter", 0.0), "s", 2e-6),
        ("loss", shape.loss_frac, loss, "", 1e-6),
    )
    for name, asked, actual, unit, slack in pairs:
        if abs(actual - asked) > slack + asked * RATE_TOLERANCE:
            raise HostError(f"{port.label}: asked for {name} {asked:g}{unit}, the kernel has {actual:g}.")
