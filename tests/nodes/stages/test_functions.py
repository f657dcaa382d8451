"""Functions for templates of stages."""

from __future__ import annotations

from ipaddress import IPv4Network

from steersman.api.core.v1 import Pod, PodSpec
from steersman.api.meta.v1 import ObjectMeta
from steersman.machinery.values import times
from steersman.nodes.simulated_node import NodeTemplate, SimulatedNode
from steersman.nodes.stages.declaration import NODES, PODS
from steersman.nodes.stages.functions import functions_of_kind, functions_of_node, functions_of_pod, moment_text
from steersman.nodes.stages.go_template.template import Template, data_of

DATA = data_of('{"text": "a \\"b\\" <c>", "number": 3, "real": 1.0, "map": {"b": [1, null], "a": "yes"}}')


def render(template: str) -> str:
    return Template(template, functions_of_kind(PODS)).render(DATA)


def node(number: int) -> SimulatedNode:
    hosts, pods = IPv4Network("172.16.0.0/12"), IPv4Network("10.128.0.0/9")
    return SimulatedNode(f"node-{number}", number, NodeTemplate(), hosts, pods)


def test_quotes_are_those_of_json() -> None:
    assert render("{{ Quote .text }} {{ .number | Quote }} {{ Quote .none }} {{ Quote .map.b }}") == (
        '"a \\"b\\" <c>" "3" "null" "[1,null]"'
    )


def test_yaml_is_indented_by_two_spaces_a_level() -> None:
    assert render("{{ YAML .map }}") == 'a: "yes"\nb:\n- 1\n- null\n'
    assert render("x: {{ YAML .map.b 1 }}") == "x: \n  - 1\n  - null\n  "
    assert render("{{ YAML .real }}") == "1\n"


def test_the_conditions_of_a_node_that_is_well() -> None:
    text = render("{{ range NodeConditions }}{{ .type }}={{ .status }} {{ end }}")
    assert text.split() == [
        "Ready=True",
        "MemoryPressure=False",
        "DiskPressure=False",
        "PIDPressure=False",
        "NetworkUnavailable=False",
    ]


def test_times_have_as_many_digits_as_they_need() -> None:
    assert moment_text(0.0) == "1970-01-01T00:00:00Z"
    assert moment_text(1.5) == "1970-01-01T00:00:01.5Z"
    assert abs(times.parse(render("{{ Now }}")).timestamp() - times.unix_now()) < 5
    assert times.parse(render("{{ StartTime }}")).timestamp() <= times.unix_now()
    assert render("kwok-{{ Version }}") == "kwok-v0.8.0"


def test_a_pod_has_one_address_however_often_it_is_asked_for() -> None:
    nodes = {each.name: each for each in (node(0), node(1))}
    pod = Pod(metadata=ObjectMeta(name="a", namespace="n"), spec=PodSpec(node_name="node-1"))
    functions = functions_of_pod(pod, nodes)
    template = Template(
        '{{ NodeIP }} {{ NodeIPWith "node-0" }} {{ NodeIPsWith "node-1" }} {{ NodeIPWith "other" }} {{ PodIP }} '
        '{{ PodIPWith "node-1" false "" "a" "n" }} {{ PodIPsWith "node-1" false "" "a" "n" }} '
        '{{ PodIPWith "node-1" true "" "a" "n" }} {{ PodIPWith "node-0" false "" "b" "n" }}',
        functions_of_kind(PODS),
    )
    for _ in range(2):
        assert template.render(None, functions) == (
            "172.16.0.3 172.16.0.2 [172.16.0.3] 172.16.0.3 10.128.1.2 10.128.1.2 [10.128.1.2] 172.16.0.3 10.128.0.2"
        )
    assert nodes["node-1"].pod_at("10.128.1.2") == ("n", "a")


def test_what_is_known_of_a_node() -> None:
    template = Template("{{ NodeName }} {{ NodeIP }}:{{ NodePort }}", functions_of_kind(NODES))
    assert template.render(None, functions_of_node(node(0))) == "node-0 172.16.0.2:10250"
