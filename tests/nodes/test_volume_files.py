"""Modes and file systems of files in volumes."""

from __future__ import annotations

from steersman.api.core.v1 import (
    ConfigMapProjection,
    ConfigMapVolumeSource,
    Container,
    EmptyDirVolumeSource,
    KeyToPath,
    Pod,
    PodSecurityContext,
    PodSpec,
    ProjectedVolumeSource,
    SecretVolumeSource,
    ServiceAccountTokenProjection,
    Volume,
    VolumeMount,
    VolumeProjection,
)
from steersman.nodes.volume_files import file_systems, folders_with_contents, modes

CONTAINER = Container(
    name="c",
    volume_mounts=[VolumeMount(name=each, mount_path=f"/{each}") for each in ("m", "s", "p", "e", "t", "no")],
)


def pod(group: int | None = None) -> Pod:
    config_map = ConfigMapVolumeSource(name="m", items=[KeyToPath(key="a", path="in/a", mode=0o400)])
    sources = [
        VolumeProjection(config_map=ConfigMapProjection(name="m", items=[KeyToPath(key="a", path="a", mode=0o444)])),
        VolumeProjection(service_account_token=ServiceAccountTokenProjection(path="token")),
    ]
    return Pod(
        spec=PodSpec(
            containers=[CONTAINER],
            security_context=PodSecurityContext(fs_group=group),
            volumes=[
                Volume(name="m", config_map=config_map),
                Volume(name="s", secret=SecretVolumeSource(secret_name="s", default_mode=0o600)),
                Volume(name="p", projected=ProjectedVolumeSource(sources=sources)),
                Volume(name="e", empty_dir=EmptyDirVolumeSource()),
                Volume(name="t", empty_dir=EmptyDirVolumeSource(medium="Memory")),
            ],
        )
    )


PATHS = ["/m/in/a", "/m/b", "/s/key", "/p/a", "/p/token", "/etc/hosts", "/e/x"]


def test_modes_are_those_of_items_and_else_of_volumes() -> None:
    assert modes(pod(), CONTAINER, PATHS) == {
        "/m/in/a": 0o400,
        "/m/b": 0o644,
        "/s/key": 0o600,
        "/p/a": 0o444,
        "/p/token": 0o644,
        "/e": 0o777,
        "/t": 0o777,
    }


def test_the_group_of_a_pod_reads_them() -> None:
    found = modes(pod(1001), CONTAINER, PATHS)
    assert (found["/m/in/a"], found["/s/key"], found["/p/token"]) == (0o440, 0o640, 0o640)


def test_a_part_of_a_volume_has_the_modes_of_the_part() -> None:
    container = Container(name="c", volume_mounts=[VolumeMount(name="m", mount_path="/one", sub_path="in/a")])
    assert modes(pod(), container, ["/one"]) == {"/one": 0o400}


def test_what_is_in_memory() -> None:
    found = file_systems(pod(), CONTAINER)
    assert found == {"/m": "ext4", "/s": "tmpfs", "/p": "tmpfs", "/e": "ext4", "/t": "tmpfs"}
    assert folders_with_contents(pod(), CONTAINER) == ("/m", "/s", "/p")
