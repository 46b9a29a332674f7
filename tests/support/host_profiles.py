"""The least times of a host that a calibration may have."""

from __future__ import annotations

from engine.domain.host_times import HostProfile, MeasuredRow


def a_profile(host: str) -> HostProfile:
    return HostProfile(
        host=host,
        products=(MeasuredRow(rows=1, s_per_flop=1e-9),),
        elementwise_s_per_element=1e-9,
        op_overhead_s=1e-6,
        memory_byte_per_s=1e10,
    )
