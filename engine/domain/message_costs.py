"""What a message costs the devices at its two ends, besides what links take for it. Pure."""

from __future__ import annotations

from engine.domain.cluster import DeviceSpec


def sender_cost_s(device: DeviceSpec, size_bytes: float) -> float:
    """Virtual seconds from the call of `send` to the first byte on the wire: fixed cost, copies, staging.
    Messages to one receiver pay it one after the other.
    """
    return device.message_overhead_s + device.byte_overhead_s * size_bytes + staging_s(device, size_bytes)


def receiver_cost_s(device: DeviceSpec, size_bytes: float) -> float:
    """Virtual seconds from the last byte off the wire to its use: fixed cost, copies, staging."""
    return device.receive_overhead_s + device.byte_overhead_s * size_bytes + staging_s(device, size_bytes)


def staging_s(device: DeviceSpec, size_bytes: float) -> float:
    """Virtual seconds of copying a message between accelerator and network stack."""
    return size_bytes / device.staging_byte_per_s if device.staging_byte_per_s else 0.0
