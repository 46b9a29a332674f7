"""A run that its machine cannot hold is refused before anything of it is started, with the arithmetic."""

import pytest

from engine.domain.errors import HostError
from engine.domain.network import LoopbackNetwork
from engine.ops.sizes import num_parameters
from engine.runs.execute import execute
from engine.runs.holds import Most, check_holds, weights_bytes
from engine.runs.predict import prepare
from tests.support.fake_devices import small_spec

PREPARED = prepare(small_spec(devices=3, strategy="single"))
MODEL = PREPARED.spec.model
WEIGHTS_BYTES = 4 * (2 * num_parameters(MODEL) + MODEL.vocab_size * MODEL.hidden_size)
"""float32: once on the only device that computes, whose head is a copy of the embedding, once for the
reference.
"""


def test_the_least_that_a_run_takes_is_its_session_its_devices_and_its_weights():
    spec, plan = PREPARED.spec, PREPARED.plan
    assert weights_bytes(spec, plan) == WEIGHTS_BYTES
    needed = 400e6 + 3 * 20e6 + WEIGHTS_BYTES
    check_holds(spec, plan, Most(needed, 36))
    with pytest.raises(HostError, match=r"needs at least 460 MB .* 3 devices of 20 MB each, .* 460 MB here"):
        check_holds(spec, plan, Most(needed - 1, 36))
    with pytest.raises(HostError, match=r"36 processes .*, 12 for each of 3 devices; .* at most 2 devices"):
        check_holds(spec, plan, Most(needed, 35))


def test_the_start_of_a_run_takes_half_a_second_of_a_core_for_each_device():
    spec, plan = PREPARED.spec, PREPARED.plan
    check_holds(spec, plan, Most(start_s=0.75, cores=2))
    words = (
        r"all 2 cores busy for 1 s: 3 devices × 0.5 s of a core each / 2. .* for 0.7 s .* at most 2 devices"
    )
    with pytest.raises(HostError, match=words):
        check_holds(spec, plan, Most(start_s=0.7, cores=2))


def test_what_cannot_be_held_is_refused_before_a_network_is_built():
    opened = []

    def open_network(spec, dilation):
        opened.append(dilation)
        return LoopbackNetwork(spec.cluster)

    with pytest.raises(HostError, match="One emulation may have 100 MB here"):
        execute(PREPARED.spec, open_network, most=Most(1e8))
    assert not opened
