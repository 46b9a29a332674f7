"""Drawings of MiniEdit, in GraphML and in GML become clusters; any other text is refused with a reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import topologies
from engine.domain.errors import SpecError
from topologies import foreign
from topologies.foreign import Defaults, Kind

MINIEDIT: dict[str, Any] = {
    "application": {"dpctl": "", "ipBase": "10.0.0.0/8"},
    "controllers": [{"opts": {"hostname": "c0"}, "x": "10", "y": "10"}],
    "hosts": [
        {"number": "1", "opts": {"hostname": "h1", "nodeNum": 1, "sched": "host"}, "x": 100, "y": 300},
        {"number": "2", "opts": {"hostname": "Web Server", "nodeNum": 2}, "x": "220.0", "y": "300.0"},
    ],
    "links": [
        {"src": "h1", "dest": "s1", "opts": {"bw": 10, "delay": "5ms", "loss": 2, "jitter": "250us"}},
        {"src": "Web Server", "dest": "s1", "opts": {}},
    ],
    "switches": [{"number": "1", "opts": {"hostname": "s1"}, "x": "160.0", "y": "100.0"}],
    "version": "2",
}

GRAPHML = """<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="d0" for="node" attr.name="label" attr.type="string"/>
  <key id="d1" for="node" attr.name="type" attr.type="string"/>
  <key id="d2" for="node" attr.name="memory_bytes" attr.type="double"/>
  <key id="d3" for="edge" attr.name="LinkSpeedRaw" attr.type="double"/>
  <key id="d4" for="edge" attr.name="delay_s" attr.type="double"/>
  <graph edgedefault="EDGES">
    <node id="0"><data key="d0">Athens</data><data key="d2">2e9</data></node>
    <node id="1"><data key="d0">Athens</data></node>
    <node id="2"><data key="d0">core</data><data key="d1">router</data></node>
    <edge source="0" target="2"><data key="d3">1e9</data><data key="d4">0.002</data></edge>
    <edge source="2" target="1"/>
    <edge source="BACK_A" target="BACK_B"><data key="d3">5e8</data></edge>
  </graph>
</graphml>
"""

GML = """graph [
  label "Two and a hub"
  node [ id 1 label "left" graphics [ x 0 y 0 ] ]
  node [ id 2 label "right" preset "jetson-nano" graphics [ x 60 y 0 ] ]
  node [ id 3 label "hub" type "switch" graphics [ x 30 y 40 ] ]
  edge [ source 1 target 3 bit_per_s 2.0e7 ]
  edge [ source 2 target 3 delay "3ms" ]
]
"""


def graphml(edges: str, a: str, b: str) -> str:
    return GRAPHML.replace("EDGES", edges).replace("BACK_A", a).replace("BACK_B", b)


def read(text: str, kind: Kind, name: str = "") -> topologies.Drawn:
    return foreign.parse(text, kind, name or f"drawing.{kind}")


def test_a_drawing_of_miniedit_keeps_hosts_switches_links_and_places() -> None:
    spec, layout = read(json.dumps(MINIEDIT), "mn", "Campus Net.mn")
    assert spec.name == "campus-net"
    assert [device.name for device in spec.devices] == ["h1", "web-server"]
    assert [switch.name for switch in spec.switches] == ["s1"]
    assert spec.devices[0].flop_per_s == topologies.preset("raspberry-pi-4").flop_per_s
    first, second = spec.links
    assert (first.bit_per_s, first.delay_s, first.jitter_s, first.loss_frac) == (10e6, 5e-3, 250e-6, 0.02)
    assert (second.bit_per_s, second.delay_s) == (100e6, 0)
    # The nearest two are 120 apart and cards need 240: twice as far, and from the left upper corner.
    assert {name: (at.x, at.y) for name, at in layout.positions.items()} == {
        "h1": (0, 400),
        "web-server": (240, 400),
        "s1": (120, 0),
    }


def test_graphml_keeps_labels_attributes_and_parallel_links() -> None:
    spec, layout = read(graphml("undirected", "0", "2"), "graphml")
    assert [device.name for device in spec.devices] == ["athens", "athens-2"]
    assert spec.devices[0].memory_bytes == 2e9
    assert [switch.name for switch in spec.switches] == ["core"]
    assert {link.name: (link.bit_per_s, link.delay_s) for link in spec.links} == {
        "athens--core": (1e9, 0.002),
        "athens--core--2": (5e8, 0),
        "athens-2--core": (100e6, 0),
    }
    assert set(layout.positions) == {"athens", "athens-2", "core"}


def test_an_edge_back_of_a_directed_graph_is_the_other_direction_of_a_link() -> None:
    spec, _ = read(graphml("directed", "2", "0"), "graphml")
    assert [link.name for link in spec.links] == ["athens--core", "core--athens-2"]
    assert (spec.links[0].rate(True), spec.links[0].rate(False)) == (1e9, 5e8)


def test_gml_keeps_rates_delays_presets_and_places() -> None:
    spec, layout = read(GML, "gml")
    assert spec.title == "Two and a hub"
    assert spec.devices[1].flop_per_s == topologies.preset("jetson-nano").flop_per_s
    assert spec.links[0].bit_per_s == 2e7
    assert spec.links[1].delay_s == 3e-3
    assert (layout.positions["right"].x - layout.positions["left"].x) == pytest.approx(60 * 240 / 50)


def test_two_edges_between_the_same_nodes_of_gml_are_parallel_links() -> None:
    twice = GML.replace('delay "3ms" ]', 'delay "3ms" ]\n  edge [ source 2 target 3 ]')
    for text in (twice, twice.replace("graph [", 'Creator "yFiles"\ngraph\n[')):
        spec, _ = read(text, "gml")
        assert [link.name for link in spec.links] == ["left--hub", "right--hub", "right--hub--2"]


def test_letters_with_accents_keep_their_letter() -> None:
    spec, _ = read(GML.replace('"left"', '"München"').replace('"right"', '"é"'), "gml")
    assert [device.name for device in spec.devices] == ["munchen", "e"]


def test_too_large_a_graph_is_refused_before_it_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("networkx.parse_gml", lambda *_, **__: pytest.fail("parsed"))
    with pytest.raises(SpecError, match="has 1,001 nodes"):
        read("graph [" + " node [ ]" * 1001 + " ]", "gml")


def test_a_chain_of_a_thousand_devices_is_arranged() -> None:
    hosts = [{"number": str(number), "opts": {"hostname": f"h{number}"}} for number in range(1000)]
    links = [{"src": f"h{number}", "dest": f"h{number + 1}", "opts": {}} for number in range(999)]
    spec, layout = read(json.dumps({"hosts": hosts, "links": links}), "mn")
    assert len(spec.devices) == len(layout.positions) == 1000


def test_the_defaults_say_what_a_drawing_does_not() -> None:
    spec, _ = foreign.parse(json.dumps(MINIEDIT), "mn", "x.mn", Defaults("jetson-nano", 5e6))
    assert spec.devices[0].flop_per_s == topologies.preset("jetson-nano").flop_per_s
    assert [link.bit_per_s for link in spec.links] == [10e6, 5e6]


def test_the_command_line_reads_a_drawing_by_the_end_of_its_name(tmp_path: Path) -> None:
    (tmp_path / "net.mn").write_text(json.dumps(MINIEDIT), encoding="utf-8")
    (tmp_path / "net.gml").write_text(GML, encoding="utf-8")
    assert len(topologies.load(tmp_path / "net.mn").devices) == 2
    assert len(topologies.load(tmp_path / "net.gml").devices) == 2


BOMB = '<!DOCTYPE g [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><graphml>&b;</graphml>'


@pytest.mark.parametrize(
    ("text", "kind", "sentence"),
    [
        ("{", "mn", "is not JSON"),
        ("[" * 100_000, "mn", "is not JSON"),
        ("[]", "mn", "expected an object with hosts"),
        (json.dumps(MINIEDIT | {"links": 3}), "mn", "links: expected a list of objects"),
        (
            json.dumps(MINIEDIT | {"links": [{"src": "h1", "dest": "h9"}]}),
            "mn",
            "ends at h9",
        ),
        (json.dumps(MINIEDIT | {"hosts": [], "links": []}), "mn", "has no device"),
        (
            json.dumps(MINIEDIT).replace('"5ms"', '"soon"'),
            "mn",
            r"links\[0\]\.delay: expected a time",
        ),
        (json.dumps(MINIEDIT).replace('"300.0"', '"NaN"'), "mn", r"hosts\[1\]\.y: expected a number"),
        (json.dumps(MINIEDIT | {"links": []}), "mn", "cannot reach h1"),
        (BOMB, "graphml", "document type definition"),
        ("<graphml", "graphml", "no valid XML"),
        ("<graphml/>", "graphml", "no valid GraphML"),
        (GML.replace("graph [", "graph ["[:-1]), "gml", "no valid GML"),
        ("graph [ " + "x [ " * 5000 + "] " * 5000 + "]", "gml", "no valid GML"),
        (GML.replace("jetson-nano", "cray"), "gml", "node right: no device preset cray"),
        (GML.replace("bit_per_s 2.0e7", "bit_per_s -1.0"), "gml", r"links\[0\]\.bit_per_s"),
        ("graph [" + " node [ ]" * 1001 + " ]", "gml", "has 1,001 nodes, and the limit is 1,000"),
        ("graph [" + " edge\n[ ]" * 4001 + " ]", "gml", "has 4,001 links, and the limit is 4,000"),
        ("<graph>" + "<node/>" * 1001 + "</graph>", "graphml", "has 1,001 nodes"),
        ('<?xml version="1.0" encoding="utf-7"?><graphml/>', "graphml", "no valid XML"),
        ("<graphml>\ud800</graphml>", "graphml", "no valid XML"),
        (json.dumps(MINIEDIT).replace('"300.0"', "9" * 400), "mn", r"hosts\[1\]\.y: expected a number"),
        (json.dumps(MINIEDIT).replace("Web Server", "h1"), "mn", "h1 is the hostname of two nodes"),
    ],
)
def test_what_is_no_drawing_is_refused_with_a_reason(text: str, kind: Kind, sentence: str) -> None:
    with pytest.raises(SpecError, match=sentence):
        read(text, kind)


CLAB = """
name: edge
prefix: lab
topology:
  kinds: {linux: {image: "debian:12"}}
  nodes:
    pi1: {kind: linux, cpu: 2}
    pi2: {kind: linux}
    br1: {kind: bridge}
  links:
    - endpoints: ["pi1:eth1", "br1:eth1"]
    - {endpoints: ["pi2:eth1", "br1:eth2"], mtu: 1500}
"""


def test_a_topology_of_containerlab_is_a_cluster_that_says_what_was_not_read() -> None:
    spec = topologies.parse_drawing(CLAB, "two.clab.yml", "yaml", Defaults("raspberry-pi-5", 1e9)).spec
    assert [device.name for device in spec.devices] == ["pi1", "pi2"]
    assert [switch.name for switch in spec.switches] == ["br1"]
    assert [(link.name, link.bit_per_s) for link in spec.links] == [("pi1--br1", 1e9), ("pi2--br1", 1e9)]
    assert spec.description == "Not read of two.clab: cpu of nodes; kinds; mtu of links."
    with pytest.raises(SpecError, match=r"topology.links\[0\]: expected endpoints of two nodes"):
        topologies.parse_drawing(CLAB.replace('["pi1:eth1", "br1:eth1"]', "[pi1]"), "x", "yaml")


NETLAB = """
provider: clab
defaults.device: linux
nodes:
- r1
- name: r-2
  device: frr
- {name: br, role: bridge}
- r4
links:
- r1-r-2
- [ r1, r-2, r4 ]
- r4:
  br:
  bandwidth: 1000
- interfaces: [ { node: r1 }, { node: br } ]
- r4
"""


def test_a_topology_of_netlab_is_a_cluster_with_a_switch_for_every_link_of_several() -> None:
    spec = topologies.parse_drawing(NETLAB, "topology.yml", "yaml", Defaults("raspberry-pi-5", 1e9)).spec
    assert [device.name for device in spec.devices] == ["r1", "r-2", "r4"]
    assert [switch.name for switch in spec.switches] == ["br", "lan-2"]
    ends = [(link.a, link.b) for link in spec.links]
    assert ends == [
        ("r1", "r-2"),
        ("r1", "lan-2"),
        ("r-2", "lan-2"),
        ("r4", "lan-2"),
        ("r4", "br"),
        ("r1", "br"),
    ]
    left_out = "bandwidth of links; defaults.device; device of nodes; links of one node; provider"
    assert spec.description == f"Not read of topology: {left_out}."
    hyphens = topologies.parse_drawing("nodes: [a, a-b, c]\nlinks: [a-b-c, a-c]\n", "x.yml", "yaml").spec
    assert [(link.a, link.b) for link in hyphens.links] == [("a-b", "c"), ("a", "c")]
    as_keys = "nodes: { a: , b: {device: eos} }\nlinks: [ a-b ]\n"
    assert len(topologies.parse_drawing(as_keys, "x.yml", "yaml").spec.links) == 1
    with pytest.raises(SpecError, match=r"links\[0\]: expected nodes of it"):
        topologies.parse_drawing(NETLAB.replace("r1-r-2", "r1-r3"), "x.yml", "yaml")
    for odd in ("[[r1], {x: 1}]", "5", "null", "{interfaces: 5}", "{}"):
        with pytest.raises(SpecError, match=r"links\[0\]: expected nodes of it"):
            topologies.parse_drawing(NETLAB.replace("r1-r-2", odd), "x.yml", "yaml")
    with pytest.raises(SpecError, match="expected a list of links"):
        topologies.parse_drawing("nodes: [a, b]\nlinks: {x: [a-b]}\n", "x.yml", "yaml")


def test_what_a_miniedit_drawing_has_and_a_cluster_does_not_is_said() -> None:
    drawing = json.loads(json.dumps(MINIEDIT))
    drawing["hosts"][0]["opts"] |= {"cpu": 0.5, "cores": "0,1"}
    drawing["links"][0]["opts"]["max_queue_size"] = 100
    drawing |= {"stations": [{"opts": {"hostname": "sta1"}}], "aps": [{"opts": {"hostname": "ap1"}}]}
    drawing["links"].append({"src": "sta1", "dest": "ap1", "opts": {}})
    said = foreign.parse(json.dumps(drawing), "mn", "net.mn").spec.description
    assert "1 Wi-Fi stations, to be drawn as devices" in said and "(sta1); 1 Wi-Fi access points" in said
    assert "1 controllers (c0); 1 links of these; cpu of 1 hosts; cores of 1 hosts" in said
    assert said.endswith("max_queue_size of 1 links.")


LLAMA_BENCH = """| model         |     size |  params | backend | threads |  test |          t/s |
| ------------- | -------: | ------: | ------- | ------: | ----: | -----------: |
| llama 1B Q4_0 | 0.6 GiB | 1.24 B | CPU | 4 | tg128 | 12.5 ± 0.1 |
"""
IMUNES = "node n0 {\n    type router\n    canvas c0\n}\nlink l0 {\n    nodes {n0 n1}\n}\n"
NED = (
    "// two hosts\npackage net;\n\nimport inet.node.inet.StandardHost;\n\nnetwork Two\n{\n  submodules:\n}\n"
)
IPERF3 = """Connecting to host 10.0.0.2, port 5201
[ ID] Interval           Transfer     Bitrate         Retr
[  5]   0.00-1.00   sec  11.2 MBytes  94.1 Mbits/sec    0
"""
SNDLIB = '<?xml version="1.0"?>\n<network xmlns="http://sndlib.zib.de/network" version="1.0"/>'
DECLARED = '<?xml version="1.0"?>\n<!-- made by hand -->\n<!-- <lab> -->\n'


@pytest.mark.parametrize(
    ("file", "text", "name", "instead"),
    [
        (
            "a.gns3",
            '{"project_id": "1", "topology": {"nodes": []}, "name": "x"}',
            "a project of GNS3",
            "draw",
        ),
        (
            "a.json",
            '{"directed": false, "multigraph": false, "nodes": [], "links": []}',
            "node-link JSON of NetworkX",
            "write it as GraphML",
        ),
        ("state.json", '{"topology": {}, "instances": {}}', "the /state of exo", "draw its nodes"),
        ("a.json", '{"num_nodes": 1, "nodes": []}', "a cluster of LLMServingSim", "state its nodes"),
        (
            "a.json",
            '{"nodes": [{"id": 1}], "links": [{"source": 1}]}',
            "a graph of nodes and links",
            "write it as GraphML",
        ),
        ("a.yaml", "lab: {title: x}\nnodes: []\nlinks: []\n", "a lab of Cisco Modeling Labs", "draw"),
        ("a.yml", "services: {a: {}}\n", "a file of Fogify or Docker Compose", "state its nodes"),
        ("a.yml", "apiVersion: v1\nkind: Node\n", "an object of Kubernetes", "state its nodes"),
        ("a.yml", "apiVersion: v1\nkind: Node\n---\napiVersion: v1\n", "an object of Kubernetes", "state"),
        (
            "a.yaml",
            "provider: {type: local}\navailable_node_types: {}\n",
            "a cluster of Ray",
            "state its nodes",
        ),
        ("a.xml", '<?xml version="1.0"?>\n<scenario name="x"/>', "a scenario of CORE", "draw"),
        ("a.xml", DECLARED + '<scenario name="x"/>', "a scenario of CORE", "draw"),
        ("a.unl", DECLARED + '<lab name="x" version="1"/>', "a lab of EVE-NG", "draw"),
        ("a.xml", SNDLIB, "a network of SNDlib", "write it as GraphML"),
        ("a.txt", "?SNDlib native format; type: network; version: 1.0\n", "a network of SNDlib", "write it"),
        ("a.virl", '<topology xmlns="http://www.cisco.com/VIRL"/>', "a lab of Cisco VIRL", "draw"),
        (
            "a.xml",
            '<!DOCTYPE platform SYSTEM "s.dtd">\n<platform version="4.1"/>',
            "a platform of SimGrid",
            "draw",
        ),
        ("a.gexf", '<gexf version="1.3"/>', "GEXF of Gephi", "write it as GraphML"),
        ("a.drawio", '<mxfile host="x"/>', "a drawing of draw.io", "draw its nodes"),
        (
            "edge_devices.xml",
            "<edge_devices/>",
            "a device file of EdgeCloudSim or PureEdgeSim",
            "state its nodes",
        ),
        ("a.imn", IMUNES, "a network of IMUNES or of an old CORE", "draw"),
        ("a.ned", NED, "a network of OMNeT\\+\\+", "draw"),
        ("a.dot", "graph net {\n a -- b\n}", "a graph in DOT", "write it as GraphML"),
        ("a.gv", "/* my\n net */\nstrict digraph {\n a -> b\n}", "a graph in DOT", "write it as GraphML"),
        ("lab.conf", 'r1[0]="A"\nr1[1]="B"\n', "a lab of Kathará", "draw"),
        ("lab.conf", 'LAB_NAME="two"\n\nr1[0]="A"\nr1[image]="kathara/frr"\n', "a lab of Kathará", "draw"),
        (
            "net.py",
            "#!/usr/bin/python\nfrom mininet.net import Mininet\n",
            "a Python script of Mininet",
            "draw it in MiniEdit",
        ),
        ("net.cc", '#include "ns3/core-module.h"\nusing namespace ns3;\n', "a script of ns-3", "draw"),
        ("a.json", '{"start": {}, "intervals": [], "end": {}}', "the output of iperf3 --json", "--scenario"),
        ("iperf.txt", IPERF3, "what iperf prints", "--scenario FILE@LINK"),
        ("tc.json", '[{"kind": "netem", "dev": "eth0"}]', "the output of tc -j qdisc", "give its rate"),
        (
            "tc.txt",
            "qdisc netem 8001: dev eth0 root refcnt 2 limit 1000 delay 5ms",
            "the output of tc",
            "give",
        ),
        ("bench.md", LLAMA_BENCH, "the output of llama-bench", "device import"),
        (
            "bench.csv",
            "build_commit,model_type,n_gen,avg_ts\na,b,1,2\n",
            "the output of llama-bench",
            "device",
        ),
        ("bench.json", '[{"model_type": "a", "avg_ts": 1}]', "the output of llama-bench", "device import"),
        (
            "bench.jsonl",
            '{"model_type": 1, "avg_ts": 1}\n{"avg_ts": 1}',
            "the output of llama-bench",
            "device",
        ),
    ],
)
def test_a_file_of_another_program_is_refused_by_its_name_with_what_is_read(
    file: str, text: str, name: str, instead: str, tmp_path: Path
) -> None:
    (tmp_path / file).write_text(text, encoding="utf-8")
    with pytest.raises(
        SpecError, match=f"^{file}: is {name}.*, no cluster here: {instead}.*; expected a cluster"
    ):
        topologies.load(tmp_path / file)


def test_a_drawing_that_the_editor_takes_for_graphml_is_refused_by_its_name_too() -> None:
    with pytest.raises(SpecError, match=r"^x: is a scenario of CORE, no cluster here"):
        read(DECLARED + '<scenario name="x"/>', "graphml", "x")


def test_a_file_that_nobody_knows_is_refused_with_what_is_read(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("from,to\na,b\n", encoding="utf-8")
    with pytest.raises(
        SpecError, match=r"edges.csv: no valid TOML: .*; expected a cluster file \(TOML, YAML"
    ):
        topologies.load(tmp_path / "edges.csv")
