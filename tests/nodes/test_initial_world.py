"""The environment of containers at their start."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import NoReturn

import pytest
import pytest_asyncio

from steersman.api.core.v1 import (
    ConfigMap,
    ConfigMapEnvSource,
    ConfigMapKeySelector,
    ConfigMapVolumeSource,
    Container,
    DownwardAPIVolumeFile,
    DownwardAPIVolumeSource,
    EnvFromSource,
    EnvVar,
    EnvVarSource,
    KeyToPath,
    ObjectFieldSelector,
    Pod,
    PodIP,
    PodSpec,
    PodStatus,
    ResourceFieldSelector,
    ResourceRequirements,
    Secret,
    SecretKeySelector,
    SecretVolumeSource,
    Service,
    ServicePort,
    ServiceSpec,
    Volume,
    VolumeMount,
)
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.client import Client
from steersman.client.in_process import InProcessTransport
from steersman.client.resources import CONFIG_MAPS, SECRETS, SERVICES
from steersman.client.transport import Fields, Unreachable
from steersman.nodes.initial_world import command_of, initial_world
from steersman.nodes.references import CONFIG_MAP, Source
from steersman.nodes.sources import Sources
from steersman.nodes.variables import expanded
from steersman.testing import Environment

STATUS = PodStatus(pod_ip="10.128.0.2", pod_ips=[PodIP(ip="10.128.0.2")])


@pytest_asyncio.fixture
async def client() -> AsyncIterator[Client]:
    async with Environment() as environment:
        server = environment.plane.server
        assert server is not None
        found = Client(InProcessTransport(server.handler, environment.token()), "kubelet")
        metadata = ObjectMeta(name="m", namespace="default")
        await found.create(CONFIG_MAPS, ConfigMap(metadata=metadata, data={"a": "1", "b": "2"}))
        await found.create(SECRETS, Secret(metadata=metadata, data={"key": b"hidden"}))
        yield found


def pod(container: Container, *volumes: Volume, **more: object) -> Pod:
    metadata = ObjectMeta(name="web", namespace="default", labels={"app": "x"}, uid="u")
    return Pod(metadata=metadata, spec=PodSpec(containers=[container], volumes=list(volumes)), status=STATUS)


async def test_variables_come_from_everywhere(client: Client) -> None:
    def of(**source: object) -> EnvVarSource:
        return EnvVarSource(**source)  # type: ignore[arg-type]

    container = Container(
        name="c",
        env_from=[EnvFromSource(prefix="P_", config_map_ref=ConfigMapEnvSource(name="m"))],
        resources=ResourceRequirements(limits={"cpu": "1500m", "memory": "64Mi"}),
        env=[
            EnvVar(name="PLAIN", value="v"),
            EnvVar(name="BOTH", value="$(PLAIN)-$(P_a)-$(NO)-$$(PLAIN)"),
            EnvVar(name="IP", value_from=of(field_ref=ObjectFieldSelector(field_path="status.podIP"))),
            EnvVar(name="APP", value_from=of(field_ref=ObjectFieldSelector(field_path="metadata.labels['app']"))),
            EnvVar(name="CPU", value_from=of(resource_field_ref=ResourceFieldSelector(resource="limits.cpu"))),
            EnvVar(
                name="MEM",
                value_from=of(resource_field_ref=ResourceFieldSelector(resource="limits.memory", divisor="1Mi")),
            ),
            EnvVar(name="B", value_from=of(config_map_key_ref=ConfigMapKeySelector(name="m", key="b"))),
            EnvVar(name="S", value_from=of(secret_key_ref=SecretKeySelector(name="m", key="key"))),
            EnvVar(name="GONE", value_from=of(secret_key_ref=SecretKeySelector(name="nope", key="key"))),
        ],
    )
    found = (await initial_world(client, pod(container), container)).environment
    assert found["HOSTNAME"] == "web"
    wanted = {
        "P_a": "1",
        "P_b": "2",
        "PLAIN": "v",
        "BOTH": "v-1-$(NO)-$(PLAIN)",
        "IP": "10.128.0.2",
        "APP": "x",
        "CPU": "2",
        "MEM": "64",
        "B": "2",
        "S": "hidden",
    }
    assert {name: found.get(name) for name in wanted} == wanted
    assert "GONE" not in found


async def test_who_has_no_limit_may_use_what_the_node_has(client: Client) -> None:
    source = EnvVarSource(resource_field_ref=ResourceFieldSelector(resource="limits.cpu"))
    container = Container(name="c", env=[EnvVar(name="CPU", value_from=source)])
    world = await initial_world(client, pod(container), container, allocatable={"cpu": "8"})
    assert world.environment["CPU"] == "8"


async def test_files_are_those_of_the_volumes(client: Client) -> None:
    items = [DownwardAPIVolumeFile(path="labels", field_ref=ObjectFieldSelector(field_path="metadata.labels"))]
    volumes = (
        Volume(name="m", config_map=ConfigMapVolumeSource(name="m", items=[KeyToPath(key="a", path="in/a")])),
        Volume(name="s", secret=SecretVolumeSource(secret_name="m")),
        Volume(name="d", downward_api=DownwardAPIVolumeSource(items=items)),
    )
    mounts = [
        VolumeMount(name="m", mount_path="/cfg"),
        VolumeMount(name="s", mount_path="/one", sub_path="key"),
        VolumeMount(name="d", mount_path="/info"),
        VolumeMount(name="nope", mount_path="/nope"),
    ]
    container = Container(name="c", volume_mounts=mounts)
    world = await initial_world(client, pod(container, *volumes), container)
    assert world.files["/cfg/in/a"] == b"1"
    assert "/cfg/b" not in world.files
    assert world.files["/one"] == b"hidden"
    assert world.files["/info/labels"] == b'app="x"'
    assert world.files["/etc/hostname"] == b"web\n"
    assert b"10.128.0.2\tweb\n" in world.files["/etc/hosts"]


@pytest.mark.parametrize(
    ("text", "made"), [("$(A)", "1"), ("$$(A)", "$(A)"), ("$(B)", "$(B)"), ("$A $(A)b", "$A 1b"), ("$(", "$(")]
)
def test_references_are_expanded_as_a_kubelet_does(text: str, made: str) -> None:
    assert expanded(text, {"A": "1"}) == made
    assert command_of(Container(name="c", command=["x"], args=[text]), {"A": "1"}) == ["x", made]


async def test_services_are_found_unless_they_are_not_wanted(client: Client) -> None:
    metadata = ObjectMeta(name="db", namespace="default")
    made = await client.create(SERVICES, Service(metadata=metadata, spec=ServiceSpec(ports=[ServicePort(port=5432)])))
    container = Container(name="c", env=[EnvVar(name="AT", value="$(DB_SERVICE_HOST):$(DB_SERVICE_PORT)")])
    it = pod(container)
    assert (await initial_world(client, it, container)).environment["AT"] == f"{made.spec.cluster_ip}:5432"
    it.spec.enable_service_links = False
    found = (await initial_world(client, it, container)).environment
    assert "DB_SERVICE_HOST" not in found
    assert found["KUBERNETES_SERVICE_PORT_HTTPS"] == "443"


async def test_references_in_long_values_are_expanded_in_worker_threads(client: Client) -> None:
    env = [EnvVar(name=f"E{number}", value="$(NONE)" * 15_000) for number in range(8)]
    container = Container(name="c", env=env)
    pod = Pod(metadata=ObjectMeta(name="p", namespace="default"), spec=PodSpec(containers=[container]), status=STATUS)
    loop, process = time.thread_time(), time.process_time()
    world = await initial_world(client, pod, container)
    assert (time.thread_time() - loop) < (time.process_time() - process) / 2
    assert world.environment["E7"] == "$(NONE)" * 15_000


class Recorded:
    """A transport of a server that is never reached; records the paths that are requested."""

    def __init__(self) -> None:
        self.targets: list[str] = []

    async def send(self, method: str, target: str, fields: Fields, body: bytes) -> NoReturn:
        self.targets.append(target)
        raise Unreachable("no server")

    async def aclose(self) -> None:
        """Do nothing."""


async def test_no_request_is_made_for_names_that_no_object_can_have() -> None:
    name = "n" * 1_000_000
    key = EnvVarSource(config_map_key_ref=ConfigMapKeySelector(name=name, key="a"))
    container = Container(
        name="c",
        env=[EnvVar(name="E", value_from=key)],
        env_from=[EnvFromSource(config_map_ref=ConfigMapEnvSource(name=name))],
        volume_mounts=[VolumeMount(name="v", mount_path="/v")],
    )
    volume = Volume(name="v", secret=SecretVolumeSource(secret_name=name))
    spec = PodSpec(containers=[container], volumes=[volume], enable_service_links=False)
    pod = Pod(metadata=ObjectMeta(name="p", namespace="default"), spec=spec, status=STATUS)
    transport = Recorded()
    client = Client(transport, "kubelet")
    assert not (await Sources(client).finder(pod))(Source(CONFIG_MAP, name))
    assert transport.targets == []
    with pytest.raises(Unreachable):
        await initial_world(client, pod, container)
    assert transport.targets == ["/api/v1/namespaces/default/services/kubernetes"]
