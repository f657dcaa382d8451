"""The tables of docs/annotations.md and the annotations that the simulation reads are the same."""

from __future__ import annotations

import re

from steersman.cluster.node_pools.plan import FAILS_AFTER, INTERRUPTED_AFTER
from steersman.net.ascii import lower
from steersman.nodes.behaviour import PREFIX
from steersman.nodes.context import LIVENESS, READINESS, STARTUP
from steersman.nodes.devices.preparation import ERROR
from steersman.nodes.eviction import CONDITIONS
from steersman.nodes.node_set import OF_KWOK, SIMULATED, UNREACHABLE
from steersman.nodes.server.servers import WEBHOOKS
from steersman.nodes.simulated_node import GROUP
from steersman.nodes.usage import RESOURCES
from steersman.simulated_metrics.configured_metrics import ANNOTATION
from tests.docs.markdown_documents import ROOT, Document, plain

DOCUMENT = Document(ROOT / "docs" / "annotations.md")
SOURCES = "\n".join(path.read_text() for path in sorted((ROOT / "src" / "steersman").rglob("*.py")))
_OF_CONTAINERS = re.compile(r"\bannotation(?:_of\(pod, container\.name, |\()\"([a-z-]+)\"\)")
_OTHERS = re.compile(r"said\.get\(f\"\{PREFIX\}([a-z-]+)\"")


def documented(heading: str) -> dict[str, str]:
    """Names in a table, and the objects that have them."""
    return {plain(name): on for name, on, *_ in DOCUMENT.table(heading)}


def test_annotations_of_containers_are_those_that_are_read() -> None:
    names = {
        *_OF_CONTAINERS.findall(SOURCES),
        *(f"fails-{lower(kind)}" for kind in (STARTUP, LIVENESS, READINESS)),
        *RESOURCES,
    }
    assert documented("Containers") == {PREFIX + name: "container" for name in names}


def test_annotations_of_pods_and_other_objects_are_those_that_are_read() -> None:
    assert '_SERVE: Final = f"{PREFIX}serve."' in SOURCES
    assert documented("Pods and other objects") == {
        WEBHOOKS: "Pod",
        f"{PREFIX}serve.PORT": "Pod",
        ERROR: "Pod, ResourceClaim",
        f"{ANNOTATION}NAME": "any object",
    }


def test_annotations_of_nodes_are_those_that_are_read() -> None:
    names = {*_OTHERS.findall(SOURCES), *CONDITIONS.values()}
    known = {OF_KWOK: "Node", SIMULATED: "Node", UNREACHABLE: "Node", GROUP: "Node"}
    known |= dict.fromkeys((FAILS_AFTER, INTERRUPTED_AFTER), "Node of a pool")
    assert documented("Nodes") == {**known, **{PREFIX + name: "Node" for name in names}}


def test_every_use_of_the_prefix_is_one_that_is_looked_for() -> None:
    """A further way to name an annotation needs a line in the tests above."""
    of_nodes = r"start-delay|ready-after|group|unreachable|simulated"
    known = rf"(?:{of_nodes}|serve\.|webhooks|run-for|exit-code|logs|prepare-error|\{{resource\}}|\{{what\}})"
    used = re.findall(r"\{PREFIX\}[^\"\s),]*", "\n".join(_files_of_nodes()))
    assert [each for each in used if not re.match(r"\{PREFIX\}" + known, each)] == []


def _files_of_nodes() -> list[str]:
    return [path.read_text() for path in sorted((ROOT / "src" / "steersman" / "nodes").rglob("*.py"))]
