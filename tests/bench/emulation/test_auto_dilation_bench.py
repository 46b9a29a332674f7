"""The benchmark of dilations: it says what faster products change, and which rule asks for the dilation."""

from bench.emulation.auto_dilation import dilation_table
from bench.emulation.clusters import star
from engine.domain.host_times import HostProfile, MeasuredRow


def host(s_per_flop: float) -> HostProfile:
    return HostProfile(
        host="made",
        products=(MeasuredRow(rows=1, s_per_flop=s_per_flop),),
        elementwise_s_per_element=1e-9,
        op_overhead_s=1e-6,
        memory_byte_per_s=1e12,
    )


def test_a_host_of_twice_the_speed_needs_about_half_the_dilation_where_the_cores_bind():
    table = dilation_table((star(2, 1e11, 1e9),), host(2e-10), host(1e-10))
    assert [row[:3] for row in table.rows] == [
        ("star-2", "2", strategy) for strategy in ("gpipe", "voltage", "megatron")
    ]
    dilation, rule, cores, faster, faster_rule, faster_cores = table.rows[0][3:]
    assert rule == faster_rule == "cores"
    assert 0.4 * float(dilation) < float(faster) < 0.6 * float(dilation)
    assert 0.4 * float(cores) < float(faster_cores) < 0.6 * float(cores)
