"""Who realises delay, jitter and loss, and what is refused rather than ignored."""

import pytest
from small_clusters import cluster, link, star

from emulator.backend import choose_backend
from emulator.shaping import Shape
from engine.errors import HostError


def machine(*names: str):
    return lambda name: name in names


def test_bandwidth_alone_needs_only_buckets() -> None:
    assert choose_backend(star(2), machine()).name == "tbf"


def test_delay_is_the_receivers_where_the_kernel_has_no_netem() -> None:
    backend = choose_backend(star(2, delay_s=0.01), machine("nft"))
    assert backend.name == "tbf+delay-line"
    assert backend.holds_delay
    assert backend.shape(star(2, delay_s=0.01).links[0], 1e6, 4.0) == Shape(0.25e6)


def test_delay_is_the_kernels_where_it_has_netem() -> None:
    backend = choose_backend(star(2, delay_s=0.01, loss_frac=0.1), machine("netem", "nft"))
    assert backend.name == "tbf+netem"
    assert not backend.holds_delay
    shape = backend.shape(star(2, delay_s=0.01, loss_frac=0.1).links[0], 1e6, 4.0)
    assert shape == Shape(0.25e6, delay_s=0.04, loss_frac=0.1)


def test_loss_alone_is_dropped_by_nft() -> None:
    backend = choose_backend(star(2, loss_frac=0.1), machine("nft"))
    assert backend.drops_by_nft
    assert not backend.holds_delay


@pytest.mark.parametrize(
    ("made", "has", "sentence"),
    [
        (star(2, jitter_s=0.001), ("nft",), r"link n0--hub has jitter_s 0.001, .*no netem: set it to 0"),
        (
            cluster("a b c", "", link("a", "b", delay_s=0.01), link("b", "c", loss_frac=0.1)), ("nft",),
            r"link b--c has loss_frac 0.1 and link a--b has delay_s 0.01, .*set one of them to 0",
        ),
        (star(2, loss_frac=0.1), (), r"link n0--hub has loss_frac 0.1, .*install nftables"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_sentence(made, has, sentence) -> None:
    with pytest.raises(HostError, match=sentence) as refused:
        choose_backend(made, machine(*has))
    assert "\n" not in str(refused.value)
