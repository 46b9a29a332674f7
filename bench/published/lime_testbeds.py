"""The testbeds of LIME's evaluation (Sun et al., arXiv 2512.21835, Tables II to IV and section V-C).

Device rates are NVIDIA's module data; the paper publishes memory, power mode and peak TOPS, but neither disks
nor prompt lengths. SSD rates are assumed: 2 GB/s, on the Xavier NX 1 GB/s.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

from engine.domain.cluster import ClusterSpec, DeviceSpec, LinkSpec, SwitchSpec
from engine.domain.model import ModelSpec
from engine.models import catalogue

Jetson = Literal["orin64", "orin32", "xavier16"]
PROMPT_TOKENS = 128

# fp32 FLOP/s of the GPU without tensor cores, memory bytes and byte/s, disk byte/s
RATES: dict[Jetson, tuple[float, float, float, float]] = {
    "orin64": (5.3e12, 64e9, 204.8e9, 2e9),
    "orin32": (3.3e12, 32e9, 204.8e9, 2e9),
    "xavier16": (0.845e12, 16e9, 59.7e9, 1e9),
}


class Testbed(NamedTuple):
    """A model, and the devices it runs on; `taken_gb` is memory that is made unavailable, by device."""

    name: str
    model: str
    devices: tuple[Jetson, ...]
    taken_gb: Mapping[int, float] = MappingProxyType({})

    def cluster(self, bit_per_s: float) -> ClusterSpec:
        """The devices around one switch; the first one is the source."""
        devices = tuple(self._device(number, kind) for number, kind in enumerate(self.devices))
        links = tuple(LinkSpec(a=device.name, b="hub", bit_per_s=bit_per_s) for device in devices)
        return ClusterSpec(
            name=self.name.lower().replace(" ", "-"),
            source=devices[0].name,
            devices=devices,
            switches=(SwitchSpec(name="hub"),),
            links=links,
        )

    def _device(self, number: int, kind: Jetson) -> DeviceSpec:
        flop_per_s, memory_bytes, memory_byte_per_s, disk_byte_per_s = RATES[kind]
        return DeviceSpec(
            name=f"{kind}-{number}",
            flop_per_s=flop_per_s,
            memory_bytes=memory_bytes - 1e9 * self.taken_gb.get(number, 0.0),
            memory_byte_per_s=memory_byte_per_s,
            disk_byte_per_s=disk_byte_per_s,
            staging_byte_per_s=10e9,
            message_overhead_s=100e-6,
            op_overhead_s=15e-6,
        )

    def spec_of_model(self) -> ModelSpec:
        return catalogue.resolve(self.model, "random")[0]


FIVE: tuple[Jetson, ...] = ("orin64", "orin32", "orin32", "xavier16", "xavier16")
ENVIRONMENTS = (
    Testbed("E1", "llama-2-13b", ("orin32", "xavier16")),
    Testbed("E2", "qwen3-32b", ("orin64", "orin32", "xavier16")),
    Testbed("E3", "llama-3.3-70b", ("orin64", "orin64", "orin32", "xavier16")),
)
SETTINGS = (
    Testbed("Setting 1", "llama-3.3-70b", FIVE),
    Testbed("Setting 2", "llama-3.3-70b", FIVE, {4: 8.0}),
    Testbed("Setting 3", "llama-3.3-70b", FIVE, {4: 8.0, 2: 8.0}),
)
