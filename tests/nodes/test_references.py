"""Messages of kubelets about missing ConfigMaps and Secrets."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.core.v1 import (
    ConfigMapEnvSource,
    ConfigMapKeySelector,
    ConfigMapProjection,
    ConfigMapVolumeSource,
    Container,
    EnvFromSource,
    EnvVar,
    EnvVarSource,
    KeyToPath,
    Pod,
    PodSpec,
    ProjectedVolumeSource,
    SecretEnvSource,
    SecretKeySelector,
    SecretProjection,
    SecretVolumeSource,
    Volume,
    VolumeProjection,
)
from steersman.nodes.mounting import FailedSetup, set_up_volumes
from steersman.nodes.references import CONFIG_MAP, SECRET, Keys, Source, config_error, sources_of, volume_error


def keys(*names: str) -> Keys:
    return Keys(frozenset({*names, "binary"}), frozenset(names))


THERE = {Source(CONFIG_MAP, "map"): keys("a"), Source(SECRET, "secret"): keys("a")}


def variable(**source: Any) -> Container:
    return Container(name="c", env=[EnvVar(name="X", value_from=EnvVarSource(**source))])


def from_all(**source: Any) -> Container:
    return Container(name="c", env_from=[EnvFromSource(**source)])


@pytest.mark.parametrize(
    ("container", "said"),
    [
        (from_all(config_map_ref=ConfigMapEnvSource(name="map")), ""),
        (from_all(config_map_ref=ConfigMapEnvSource(name="no")), 'configmap "no" not found'),
        (from_all(config_map_ref=ConfigMapEnvSource(name="no", optional=True)), ""),
        (from_all(secret_ref=SecretEnvSource(name="no")), 'secret "no" not found'),
        (from_all(secret_ref=SecretEnvSource(name="secret")), ""),
        (variable(config_map_key_ref=ConfigMapKeySelector(name="map", key="a")), ""),
        (variable(config_map_key_ref=ConfigMapKeySelector(name="no", key="a")), 'configmap "no" not found'),
        (
            variable(config_map_key_ref=ConfigMapKeySelector(name="map", key="b")),
            "couldn't find key b in ConfigMap ns/map",
        ),
        (
            variable(config_map_key_ref=ConfigMapKeySelector(name="map", key="binary")),
            "couldn't find key binary in ConfigMap ns/map",
        ),
        (variable(config_map_key_ref=ConfigMapKeySelector(name="map", key="b", optional=True)), ""),
        (variable(config_map_key_ref=ConfigMapKeySelector(name="no", key="b", optional=True)), ""),
        (
            variable(secret_key_ref=SecretKeySelector(name="secret", key="b")),
            "couldn't find key b in Secret ns/secret",
        ),
    ],
)
def test_errors_of_variables_have_the_kubelets_words(container: Container, said: str) -> None:
    assert config_error(container, "ns", THERE.get) == said


def projected(*sources: VolumeProjection) -> Volume:
    return Volume(name="v", projected=ProjectedVolumeSource(sources=list(sources)))


@pytest.mark.parametrize(
    ("volume", "said"),
    [
        (Volume(name="v"), ""),
        (Volume(name="v", config_map=ConfigMapVolumeSource(name="map")), ""),
        (Volume(name="v", config_map=ConfigMapVolumeSource(name="no")), 'configmap "no" not found'),
        (Volume(name="v", config_map=ConfigMapVolumeSource(name="no", optional=True)), ""),
        (
            Volume(name="v", config_map=ConfigMapVolumeSource(name="map", items=[KeyToPath(key="b", path="b")])),
            "configmap references non-existent config key: b",
        ),
        (Volume(name="v", config_map=ConfigMapVolumeSource(name="map", items=[KeyToPath(key="binary", path="b")])), ""),
        (Volume(name="v", secret=SecretVolumeSource(secret_name="no")), 'secret "no" not found'),
        (
            Volume(name="v", secret=SecretVolumeSource(secret_name="secret", items=[KeyToPath(key="b", path="b")])),
            "references non-existent secret key: b",
        ),
        (projected(VolumeProjection(config_map=ConfigMapProjection(name="no"))), 'configmap "no" not found'),
        (
            projected(
                VolumeProjection(config_map=ConfigMapProjection(name="no")),
                VolumeProjection(secret=SecretProjection(name="no")),
                VolumeProjection(config_map=ConfigMapProjection(name="no")),
            ),
            '[configmap "no" not found, secret "no" not found]',
        ),
    ],
)
def test_errors_of_volumes_have_the_kubelets_words(volume: Volume, said: str) -> None:
    assert volume_error(volume, THERE.get) == said


def test_a_volume_is_tried_again_after_waits_that_double() -> None:
    pod = Pod(spec=PodSpec(volumes=[Volume(name="v", config_map=ConfigMapVolumeSource(name="no"))]))
    before: dict[str, FailedSetup] = {}
    now, waits = 1000.0, []
    for _ in range(10):
        done = set_up_volumes(pod, before, THERE.get, now)
        assert [each.message for each in done.events] == [
            'MountVolume.SetUp failed for volume "v" : configmap "no" not found'
        ]
        assert set_up_volumes(pod, done.failed, THERE.get, now).events == ()
        assert done.next_sync is not None
        waits.append(done.next_sync - now)
        now, before = done.next_sync, done.failed
    assert waits == [0.5, 1, 2, 4, 8, 16, 32, 64, 122, 122]
    found = set_up_volumes(pod, before, {**THERE, Source(CONFIG_MAP, "no"): keys()}.get, now - 100)
    assert found == ({}, (), None)


def test_all_that_a_pod_names_is_found() -> None:
    spec = PodSpec(
        containers=[from_all(config_map_ref=ConfigMapEnvSource(name="one"))],
        init_containers=[variable(secret_key_ref=SecretKeySelector(name="two", key="k"))],
        volumes=[projected(VolumeProjection(secret=SecretProjection(name="three")))],
    )
    assert set(sources_of(Pod(spec=spec))) == {
        Source(CONFIG_MAP, "one"),
        Source(SECRET, "two"),
        Source(SECRET, "three"),
    }
