"""Paths against a search of all of them; clusters that make no sense are refused."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from engine.domain.cluster import complaints
from engine.domain.errors import SpecError
from tests.support.small_clusters import cluster, link

RATES = (1e6, 2e6, 5e6, 1e7)


def cost(drawn, nodes):
    """(hops, seconds of 65,536 bytes) of a walk over `nodes`, or None if it is none."""
    seconds = 0.0
    for a, b in itertools.pairwise(nodes):
        found = [x for x in drawn.links if {x.a, x.b} == {a, b}]
        if not found:
            return None
        forward = found[0].a == a
        seconds += found[0].delay(forward) + 65_536 * 8 / found[0].rate(forward)
    return len(nodes) - 1, seconds


def nodes_of(drawn, src, dst):
    at, nodes = drawn.devices[src].name, [drawn.devices[src].name]
    for hop in drawn.path(src, dst):
        here = drawn.links[hop.link]
        assert at == (here.a if hop.forward else here.b)
        at = here.b if hop.forward else here.a
        nodes.append(at)
    assert at == drawn.devices[dst].name
    return nodes


@st.composite
def clusters(draw):
    """A tree over three devices and two switches, and some more links, with random rates both ways."""
    names = ["a", "b", "c", "s", "t"]
    tree = [(names[index], names[draw(st.integers(0, index - 1))]) for index in range(1, 5)]
    others = [pair for pair in itertools.combinations(names, 2) if set(pair) not in map(set, tree)]
    rate, delay = st.sampled_from(RATES), st.sampled_from((0.0, 0.02, 0.3))
    links = [
        link(a, b, draw(rate), reverse_bit_per_s=draw(rate), delay_s=draw(delay))
        for a, b in [*tree, *draw(st.lists(st.sampled_from(others), unique=True, max_size=4))]
    ]
    return cluster("a b c", "s t", *links)


@settings(max_examples=60, deadline=None)
@given(clusters())
def test_a_path_has_the_fewest_hops_and_then_the_least_time_of_a_message(drawn):
    names = ["a", "b", "c", "s", "t"]
    for src, dst in itertools.permutations(range(3), 2):
        found = cost(drawn, nodes_of(drawn, src, dst))
        ends = names[src], names[dst]
        middle = [name for name in names if name not in ends]
        walks = (
            cost(drawn, (ends[0], *inside, ends[1]))
            for size in range(4)
            for inside in itertools.permutations(middle, size)
        )
        best = min(walk for walk in walks if walk is not None)
        assert found[0] == best[0]
        assert found[1] == pytest.approx(best[1])


def test_a_delay_adds_up_over_the_directions_of_a_path():
    drawn = cluster(
        "a b", "s", link("a", "s", delay_s=0.25, reverse_delay_s=0.5), link("b", "s", delay_s=1.0)
    )
    assert drawn.delay_s(0, 1) == 1.25
    assert drawn.delay_s(1, 0) == 1.5
    assert drawn.path(0, 0) == ()


def test_names_find_ranks_and_links_in_either_order():
    drawn = cluster("a b", "", link("a", "b"))
    assert (drawn.rank("b"), drawn.link_index("a--b"), drawn.link_index("b--a")) == (1, 0, 0)
    with pytest.raises(SpecError, match="has no device c: it has a, b"):
        drawn.rank("c")
    with pytest.raises(SpecError, match="has no link a--c: it has a--b"):
        drawn.link_index("a--c")


@pytest.mark.parametrize(
    ("devices", "switches", "links", "message"),
    [
        ("a a", "", [], "the name a is used twice"),
        ("a b", "", [("a", "c")], r"links\[0\] ends at c"),
        ("a b", "", [("a", "a")], r"links\[0\] connects a to itself"),
        ("a b", "", [("a", "b"), ("b", "a")], r"links\[1\] is a second link between b and a"),
        ("a b c", "s", [("a", "b"), ("c", "s")], "c cannot reach a"),
    ],
)
def test_a_cluster_that_makes_no_sense_is_refused(devices, switches, links, message):
    with pytest.raises(ValidationError, match=message):
        cluster(devices, switches, *(link(a, b) for a, b in links))


def test_of_parallel_links_the_fastest_in_each_direction_carries_everything():
    drawn = cluster(
        "a b",
        "",
        link("a", "b", 1e6, reverse_bit_per_s=9e6),
        link("b", "a", 5e6, reverse_bit_per_s=5e6, parallel=2),
        link("a", "b", 5e6, parallel=3),
    )
    assert [each.name for each in drawn.links] == ["a--b", "b--a--2", "a--b--3"]
    assert [(hop.link, hop.forward) for hop in (*drawn.path(0, 1), *drawn.path(1, 0))] == [
        (1, False),
        (0, False),
    ]
    assert [drawn.carries(index, forward) for index in range(3) for forward in (True, False)] == [
        *(False, True),
        *(False, True),
        *(False, False),
    ]
    assert drawn.link_index("a--b--2") == drawn.link_index("b--a--2") == 1


def test_of_parallel_links_one_with_a_long_delay_does_not_win_by_its_rate():
    """Wi-Fi of 1.2 Gbit/s and 10 ms beside a cable of 1 Gbit/s and 0.5 ms: activations are there first by
    cable.
    """
    drawn = cluster(
        "a b", "", link("a", "b", 1.2e9, delay_s=0.01), link("a", "b", 1e9, delay_s=0.0005, parallel=2)
    )
    assert [hop.link for hop in (*drawn.path(0, 1), *drawn.path(1, 0))] == [1, 1]


def test_every_complaint_about_a_cluster_is_listed():
    whole = cluster("a b c", "s", link("a", "s"), link("b", "s"), link("c", "s"))
    apart = whole.model_copy(update={"links": ()})
    assert [path for path, _ in complaints(apart)] == ["devices[1]", "devices[2]", "devices[0]"]
    assert list(complaints(whole)) == []
    pair = whole.model_copy(update={"links": (link("b", "s"), link("c", "s"))})
    assert [sentence for _, sentence in complaints(pair)] == ["a cannot reach b: add a link that connects it"]
    links = (link("a", "x"), link("b", "b"), link("a", "s"), link("s", "a"))
    wrong = whole.model_copy(update={"links": links, "source": "z"})
    assert [path for path, _ in complaints(wrong)] == ["source", "links[0]", "links[1]", "links[3]"]


def test_terminals_compute_nothing_and_one_device_must():
    drawn = cluster("a b c", "", link("a", "b"), link("b", "c"))
    assert drawn.without([1]).workers == (0, 2)
    data = drawn.without([0, 1]).model_dump()
    data["devices"][2]["role"] = "terminal"
    with pytest.raises(ValidationError, match="every device is a terminal"):
        type(drawn).model_validate(data)
