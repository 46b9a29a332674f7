"""Who realises delay, jitter and loss, and what is refused rather than ignored."""

import pytest

from emulator.network.backend import Backend, check_live, choose_backend
from engine.domain.errors import HostError
from engine.domain.scenario import SetDelay, SetLoss
from tests.support.small_clusters import cluster, link, star


def machine(*names: str):
    return lambda name: name in names


def chosen(made, *has, changes=()) -> tuple[Backend, str]:
    backend = choose_backend(made, machine(*has), changes)
    return backend, backend.name(made.links)


def test_bandwidth_alone_needs_only_buckets() -> None:
    assert chosen(star(2)) == (Backend(), "tbf")
    assert chosen(star(2), "netem", "nft", "tun") == (Backend(), "tbf")


def test_delay_is_the_receivers_where_the_kernel_has_no_netem() -> None:
    backend, name = chosen(star(2, delay_s=0.01), "nft", "tun")
    assert name == "tbf+delay-line"
    assert not backend.in_network(0)


def test_all_is_the_kernels_where_it_has_netem() -> None:
    made = star(2, delay_s=0.01, loss_frac=0.1, jitter_s=0.001)
    assert chosen(made, "netem", "nft", "tun") == (Backend(netem=True), "tbf+netem")


def test_loss_alone_is_nfts() -> None:
    assert chosen(star(2, loss_frac=0.1), "nft", "tun") == (Backend(), "tbf+nft")
    assert chosen(star(2, loss_frac=0.1), "tun")[1] == "tbf+relay"


def test_relays_carry_all_impaired_links_once_jitter_or_loss_with_delay_is_asked() -> None:
    lossy = cluster(
        "a b c d", "", link("a", "b", delay_s=0.01), link("b", "c", loss_frac=0.1), link("c", "d")
    )
    assert chosen(lossy, "nft", "tun") == (Backend(relayed=frozenset({0, 1})), "tbf+relay")
    jittery = cluster("a b c", "", link("a", "b", jitter_s=0.01), link("b", "c"))
    assert chosen(jittery, "nft", "tun")[0].relayed == {0}


def test_timed_changes_are_asked_for_too() -> None:
    made = cluster("a b c", "", link("a", "b", delay_s=0.01), link("b", "c"))
    loss = SetLoss(at_s=1, link="b--c", loss_frac=0.1)
    over = SetLoss(at_s=2, link="b--c", loss_frac=0.0)
    assert chosen(made, "nft", "tun", changes=[loss, over])[0].relayed == {0, 1}
    late = SetDelay(at_s=1, link="b--c", delay_s=0.1)
    assert chosen(made, "nft", "tun", changes=[late])[0].relayed == set()


@pytest.mark.parametrize(
    ("made", "has", "sentence"),
    [
        (star(2, jitter_s=0.001), ("nft",), r"link n0--hub has jitter_s 0.001, .*set it to 0"),
        (
            cluster("a b c", "", link("a", "b", delay_s=0.01), link("b", "c", loss_frac=0.1)),
            ("nft",),
            r"link b--c has loss_frac 0.1, which needs netem or TUN devices",
        ),
        (star(2, loss_frac=0.1), (), r"link n0--hub has loss_frac 0.1, .*loom doctor"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_sentence(made, has, sentence) -> None:
    with pytest.raises(HostError, match=sentence) as refused:
        choose_backend(made, machine(*has))
    assert "\n" not in str(refused.value)


def test_a_running_network_takes_loss_from_nft_and_delay_from_receivers_but_not_both() -> None:
    lossy, late = star(2, loss_frac=0.1).links, star(2, delay_s=0.1).links
    check_live(lossy, 0, Backend(), machine("nft"))
    check_live(late, 0, Backend(), machine())
    with pytest.raises(HostError, match=r"n0--hub cannot lose packets while the run goes on, without nft"):
        check_live(lossy, 0, Backend(), machine())
    with pytest.raises(HostError, match=r"n0--hub cannot get this .* delay and loss together"):
        check_live((lossy[0], late[1]), 0, Backend(), machine("nft"))
