"""Configuration of a cluster: nodes, their stages, and initial objects (`steersman up --config FILE`)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, field
from ipaddress import IPv4Network
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from steersman.api.core.v1 import Taint
from steersman.cluster.load_configuration import CurveEntry, LoadError, MetricEntry, UsageEntry, load_of
from steersman.machinery.selectors.labels import SelectorError
from steersman.machinery.suggestions import explain_validation_error
from steersman.machinery.validation.formats import is_valid_label_value
from steersman.machinery.values.quantity import QuantityError, parse
from steersman.nodes.devices.slices import DeviceSet, DeviceSets
from steersman.nodes.load import Load
from steersman.nodes.node_set import Networks, NodeSet
from steersman.nodes.rehearsal import Unknown
from steersman.nodes.simulated_node import CAPACITY, NodeTemplate, SimulatedNode

if TYPE_CHECKING:
    from steersman.dumps.reading import Dump

HOSTS: Final = IPv4Network("172.16.0.0/12")
"""Addresses of simulated nodes."""
PODS: Final = IPv4Network("10.128.0.0/9")
"""Addresses of pods on simulated nodes."""
MOST_NODES: Final = PODS.num_addresses >> 8
"""Nodes of a cluster; each has 256 addresses for its pods."""


class ConfigurationError(ValueError):
    """The configuration is invalid. The text says what is wrong and where."""


class NodeGroup(msgspec.Struct, forbid_unknown_fields=True):
    """Group of nodes that differ only in their names, `NAME-0`, `NAME-1` and so on."""

    name: str = "node"
    count: int = 1
    capacity: dict[str, str | int | float] = {}
    """Differences from the default capacity: 32 CPUs, 256Gi of memory, 110 pods."""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    taints: list[Taint] = []
    architecture: str = "amd64"


class _File(msgspec.Struct, forbid_unknown_fields=True):
    nodes: list[NodeGroup] = msgspec.field(default_factory=lambda: [NodeGroup()])
    objects: list[str] = []
    stages: list[str] = []
    seed: int | None = None
    serve_local: bool = msgspec.field(name="serveLocal", default=False)
    missing_images: list[str] = msgspec.field(name="missingImages", default_factory=list)
    manage_all_nodes: bool = msgspec.field(name="manageAllNodes", default=False)
    unknown_programs: Unknown | None = msgspec.field(name="unknownPrograms", default=None)
    answer_webhooks: bool = msgspec.field(name="answerWebhooks", default=False)
    log_files: str = msgspec.field(name="logFiles", default="")
    devices: list[DeviceSet] = []
    curves: list[CurveEntry] = []
    usage: list[UsageEntry] = []
    metrics: list[MetricEntry] = []


@dataclass(frozen=True, slots=True)
class Configuration:
    """Nodes of a cluster, and the manifests that are applied when it has started."""

    nodes: tuple[NodeGroup, ...] = field(default_factory=lambda: (NodeGroup(),))
    _: KW_ONLY
    file: Path | None = None
    """File that the configuration was read from, for error messages."""
    objects: tuple[Path, ...] = ()
    """Files and folders of manifests."""
    stages: tuple[Path, ...] = ()
    """Files and folders with stages of pods and nodes (`stage_files`)."""
    documents: tuple[Any, ...] = ()
    """Further documents of the file, which may be stages, too."""
    seed: int | None = None
    """Seed of random choices in stages; None for a different one each time."""
    dump: Path | None = None
    """Dump of a cluster with whose objects this one begins."""
    begins_with: Dump | None = None
    """Objects with which the cluster begins, in place of those of `dump`."""
    pod_range: IPv4Network = PODS
    """Addresses of pods on simulated nodes."""
    schedules: bool = True
    """True if the cluster has a scheduler."""
    pools: bool = False
    """True if groups of nodes are NodePool objects, which users may also make."""
    kwok: bool = False
    """True if the cluster has kwok's kinds, such as Stage."""
    serve_local: bool = False
    """True if annotations may forward ports of pods to addresses that this machine can reach."""
    missing_images: tuple[str, ...] = ()
    """Names of images that no registry has, with registry and tag; `*` matches anything."""
    manage_all_nodes: bool = False
    """True if every Node object created through the API is simulated, False if only those that ask for it."""
    unknown_programs: Unknown | None = None
    """Treatment of programs that are not simulated; None for the default of each container."""
    log_files: Path | None = None
    """Folder whose files Logs and Attach objects may name; None for no files."""
    answer_webhooks: bool = False
    """True if pods serve as webhooks that allow everything, and as API servers without resources."""
    devices: DeviceSets = field(default_factory=DeviceSets)
    """Devices of nodes."""
    simulated_load: Load = field(default_factory=Load)
    """Usage of containers, and values of metrics."""

    @classmethod
    def load(cls, path: Path) -> Configuration:
        """Read a YAML file, in which paths are relative to its folder. Raises ConfigurationError."""
        from steersman.machinery.codec.yaml_files import YAMLFileError, read_documents

        try:
            documents = [each for each in read_documents(path) if each is not None]
            own = [each for each in documents if not _is_object(each)]
            if len(own) > 1:
                raise ConfigurationError(f"{len(own)} documents say what the cluster is")
            plain = own[0] if own else {}
            found = msgspec.convert(plain, _File)
        except YAMLFileError as error:
            raise ConfigurationError(str(error)) from None
        except msgspec.ValidationError as error:
            raise ConfigurationError(f"{path}: {explain_validation_error(error, _File)}") from None
        except ConfigurationError as error:
            raise ConfigurationError(f"{path}: {error}") from None
        objects = tuple(path.parent / each for each in found.objects)
        stages = tuple(path.parent / each for each in found.stages)
        for each in (*objects, *stages):
            if not each.exists():
                raise ConfigurationError(f"{path}: {each} is not there")
        return cls(
            tuple(found.nodes),
            file=path,
            objects=objects,
            stages=stages,
            documents=tuple(each for each in documents if _is_object(each)),
            seed=found.seed,
            serve_local=found.serve_local,
            missing_images=tuple(found.missing_images),
            manage_all_nodes=found.manage_all_nodes,
            unknown_programs=found.unknown_programs,
            answer_webhooks=found.answer_webhooks,
            log_files=path.parent / found.log_files if found.log_files else None,
            devices=_devices(path, found),
            simulated_load=_load(path, found),
        )

    def error(self, why: object) -> ConfigurationError:
        """Return an error about the content of the file."""
        return ConfigurationError(f"{self.file}: {why}" if self.file is not None else str(why))

    def simulated_nodes(self) -> list[SimulatedNode]:
        """Return the nodes, each with its addresses. Raises ConfigurationError."""
        try:
            return self._simulated_nodes()
        except ConfigurationError as error:
            raise self.error(error) from None

    def _simulated_nodes(self) -> list[SimulatedNode]:
        nodes: list[SimulatedNode] = []
        names: set[str] = set()
        for group in self.nodes:
            template = _template(group, self.missing_images, self.unknown_programs)
            if group.count < 0 or len(nodes) + group.count > min(MOST_NODES, self.pod_range.num_addresses >> 8):
                raise ConfigurationError(f"{group.count} nodes: from 0 to {MOST_NODES} can be simulated")
            for number in range(group.count):
                name = f"{group.name}-{number}"
                if name in names:
                    raise ConfigurationError(f"two nodes are called {name}")
                names.add(name)
                nodes.append(SimulatedNode(name, len(nodes), template, HOSTS, self.pod_range))
        return nodes

    def node_set(self, nodes: Iterable[SimulatedNode]) -> NodeSet:
        """Return the set of `simulated_nodes`, which adopts nodes that are created through the API."""
        usual = NodeTemplate(missing_images=self.missing_images, unknown_programs=self.unknown_programs)
        return NodeSet(nodes, Networks(HOSTS, self.pod_range), adopts_all=self.manage_all_nodes, usual=usual)


def _load(path: Path, found: _File) -> Load:
    """Return the configured load. Raises ConfigurationError."""
    try:
        return load_of(found.curves, found.usage, found.metrics, folder=path.parent, seed=found.seed or 0)
    except LoadError as error:
        raise ConfigurationError(f"{path}: {error}") from None


def _devices(path: Path, found: _File) -> DeviceSets:
    """Return the configured devices. Raises ConfigurationError."""
    if found.devices:
        from steersman.cluster.device_configuration import fault_in

        if fault := fault_in(found.devices):
            raise ConfigurationError(f"{path}: {fault}")
    try:
        return DeviceSets(found.devices)
    except SelectorError as error:
        raise ConfigurationError(f"{path}: devices: {error}") from None


def _is_object(document: Any) -> bool:
    return isinstance(document, dict) and "kind" in document


def _template(group: NodeGroup, missing_images: tuple[str, ...], unknown_programs: Unknown | None) -> NodeTemplate:
    capacity = {name: str(quantity) for name, quantity in group.capacity.items()}
    for name, quantity in capacity.items():
        try:
            parse(quantity)
        except QuantityError as error:
            raise ConfigurationError(f"capacity of nodes {group.name!r}: {name}: {error}") from None
    return NodeTemplate(
        capacity={**CAPACITY, **capacity},
        labels=group.labels,
        annotations=group.annotations,
        taints=tuple(group.taints),
        architecture=group.architecture,
        missing_images=missing_images,
        unknown_programs=unknown_programs,
        group="" if is_valid_label_value(group.name) else group.name,
    )
