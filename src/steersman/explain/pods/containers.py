"""Containers of pods that have a node: images, configuration, crashes, probes, and initialization."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, Final

from msgspec import Struct

from steersman.api.core import v1 as core
from steersman.client.api_resource import APIResource
from steersman.client.resources import CONFIG_MAPS, PERSISTENT_VOLUME_CLAIMS, SECRETS
from steersman.explain.finding import (
    Evidence,
    Finding,
    Reference,
    Severity,
    at_condition,
    at_event,
    at_field,
    reference,
)
from steersman.explain.pods.commands import logs_of
from steersman.explain.warnings import age_of, uid_of
from steersman.explain.world import Unreadable, World
from steersman.machinery.built_in.pod_state import is_ready, is_terminal
from steersman.machinery.built_in.volumes import claim_name
from steersman.machinery.values.conditions import find_condition
from steersman.machinery.values.times import human_duration

_OF_IMAGES: Final = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "ErrImageNeverPull",
        "ImageInspectError",
        "RegistryUnavailable",
    }
)
_STARTING: Final = frozenset({"", "ContainerCreating", "PodInitializing"})
_CODES: Final = {
    126: "its command cannot be executed",
    127: "its command was not found",
    134: "aborted (SIGABRT)",
    137: "killed (SIGKILL)",
    139: "segmentation fault (SIGSEGV)",
    143: "asked to end (SIGTERM)",
}
"""Meanings of exit codes."""


class _Container(Struct, frozen=True):
    """A container, its status, and the path of the status."""

    spec: core.Container
    status: core.ContainerStatus
    path: str
    is_init: bool


def _containers(pod: core.Pod) -> Iterator[_Container]:
    parts = (
        ("initContainerStatuses", pod.spec.init_containers, pod.status.init_container_statuses),
        ("containerStatuses", pod.spec.containers or (), pod.status.container_statuses),
    )
    for member, specs, statuses in parts:
        by_name = {each.name: each for each in statuses}
        for spec in specs:
            if spec.name in by_name:
                path = f'.status.{member}[?(@.name=="{spec.name}")]'
                yield _Container(spec, by_name[spec.name], path, member == "initContainerStatuses")


async def check_containers(world: World, resource: APIResource[Any], pod: core.Pod) -> AsyncIterator[Finding]:
    """Yield a finding for each container that does not run as it should."""
    if not pod.spec.node_name or pod.status.phase == "Succeeded":
        return
    subject = reference(resource, pod)
    notes = await _events(world, subject, pod)
    for each in _containers(pod):
        finding = _finding_of(world, subject, pod, each, notes)
        if finding is not None:
            yield finding


def _finding_of(
    world: World, subject: Reference, pod: core.Pod, container: _Container, notes: Sequence[core.Event]
) -> Finding | None:
    state = container.status.state
    if state.waiting is not None and state.waiting.reason not in _STARTING:
        return _waiting(world, subject, container, state.waiting, notes)
    if state.terminated is not None and state.terminated.exit_code:
        text = f"{_name(container)} {_ended(world, state.terminated)}{_again(pod)}"
        evidence = at_field(subject, f"{container.path}.state.terminated", state.terminated)
        return Finding(Severity.ERROR, "ContainerFailed", text, (evidence,), logs_of(subject, container.spec.name))
    if state.running is not None and not is_terminal(pod):
        return _running(subject, container, notes)
    return None


def _waiting(
    world: World,
    subject: Reference,
    container: _Container,
    waiting: core.ContainerStateWaiting,
    notes: Sequence[core.Event],
) -> Finding:
    evidence = [at_field(subject, f"{container.path}.state.waiting", waiting)]
    name = _name(container)
    if waiting.reason in _OF_IMAGES:
        text = f"{name}: its image {container.spec.image} cannot be pulled: {waiting.message or waiting.reason}"
        evidence += [at_event(each) for each in notes if each.reason == "Failed" and "pull" in each.message][:2]
        return Finding(Severity.ERROR, waiting.reason, text, tuple(evidence))
    if waiting.reason == "CrashLoopBackOff":
        last = container.status.last_state.terminated
        how = "ended" if last is None else _ended(world, last)
        text = f"{name} crashes again and again ({container.status.restart_count} restarts): it {how}"
        if last is not None:
            evidence.append(at_field(subject, f"{container.path}.lastState.terminated", last))
        killed = [each for each in notes if each.reason == "Killing" and "liveness" in each.message]
        if killed:
            text += "; its liveness probe had failed"
        evidence += [at_event(each) for each in (*killed, *_unhealthy(notes))][:2]
        previous = logs_of(subject, container.spec.name, previous=True)
        return Finding(Severity.ERROR, waiting.reason, text, tuple(evidence), previous)
    text = f"{name} cannot be started: {waiting.reason}: {waiting.message}".removesuffix(": ")
    return Finding(Severity.ERROR, waiting.reason, text, tuple(evidence))


def _running(subject: Reference, container: _Container, notes: Sequence[core.Event]) -> Finding | None:
    is_sidecar = container.is_init and container.spec.restart_policy == "Always"
    if container.status.ready and not (container.is_init and not is_sidecar):
        return None
    path = f"{container.path}.ready"
    if container.is_init and not is_sidecar:
        text = f"{_name(container)} is still running; the containers after it wait until it has ended"
        return Finding(Severity.WARNING, "InitContainerRuns", text, (at_field(subject, path, value=False),))
    probe = "startup" if container.status.started is False else "readiness"
    failing = _unhealthy(notes)
    said = f": {failing[-1].message}" if failing else ""
    text = f"{_name(container)} runs and is not ready: its {probe} probe has not succeeded{said}"
    evidence = (at_field(subject, path, value=False), *(at_event(each) for each in failing[-1:]))
    return Finding(Severity.ERROR, "NotReady", text, evidence, logs_of(subject, container.spec.name))


def _unhealthy(notes: Sequence[core.Event]) -> Sequence[core.Event]:
    return [each for each in notes if each.reason == "Unhealthy"]


def _name(container: _Container) -> str:
    return f"{'init container' if container.is_init else 'container'} {container.spec.name}"


def _again(pod: core.Pod) -> str:
    return " and is not restarted (restartPolicy Never)" if pod.spec.restart_policy == "Never" else ""


def _ended(world: World, ended: core.ContainerStateTerminated) -> str:
    if ended.reason == "OOMKilled":
        text = "ran out of memory (OOMKilled)"
    else:
        meaning = _CODES.get(ended.exit_code, "")
        text = f"ended with exit code {ended.exit_code}" + (f", {meaning}" if meaning else "")
        if ended.reason and ended.reason not in ("Error", "Completed"):
            text += f" ({ended.reason})"
    seconds = age_of(world, ended.finished_at)
    text += "" if seconds is None else f" {human_duration(max(seconds, 0))} ago"
    last_line = ended.message.strip(" \r\n").rpartition("\n")[2]
    return f"{text}: {last_line}" if last_line else text


async def _events(world: World, subject: Reference, pod: core.Pod) -> Sequence[core.Event]:
    try:
        return await world.events(subject, uid_of(pod))
    except Unreadable:
        return ()


async def check_references(world: World, resource: APIResource[Any], pod: core.Pod) -> AsyncIterator[Finding]:
    """Yield a finding for each ConfigMap, Secret and claim that a pod needs to start and that does not exist."""
    if pod.status.phase not in ("Pending", "") or is_terminal(pod):
        return
    subject = reference(resource, pod)
    namespace = pod.metadata.namespace
    for of, name, field in dict.fromkeys(_needed(pod)):
        try:
            is_missing = await world.get(of.metadata_only, name, namespace) is None
        except Unreadable:
            continue
        if is_missing:
            text = f"needs the {of.kind} {name}, which does not exist"
            yield Finding(Severity.ERROR, f"{of.kind}Missing", text, (at_field(subject, field, name),))


def _needed(pod: core.Pod) -> Iterator[tuple[APIResource[Any], str, str]]:
    """Yield resource, name and path of each object without which the pod does not start."""
    for volume in pod.spec.volumes:
        path = f'.spec.volumes[?(@.name=="{volume.name}")]'
        if volume.config_map is not None and not volume.config_map.optional:
            yield CONFIG_MAPS, volume.config_map.name, f"{path}.configMap.name"
        if volume.secret is not None and not volume.secret.optional:
            yield SECRETS, volume.secret.secret_name, f"{path}.secret.secretName"
        if volume.persistent_volume_claim is not None:
            yield PERSISTENT_VOLUME_CLAIMS, claim_name(pod, volume), f"{path}.persistentVolumeClaim.claimName"
    for container in (*pod.spec.init_containers, *(pod.spec.containers or ())):
        path = f'.spec.containers[?(@.name=="{container.name}")]'
        for variable in container.env:
            source = variable.value_from
            if source is None:
                continue
            if source.config_map_key_ref is not None and not source.config_map_key_ref.optional:
                yield CONFIG_MAPS, source.config_map_key_ref.name, f"{path}.env"
            if source.secret_key_ref is not None and not source.secret_key_ref.optional:
                yield SECRETS, source.secret_key_ref.name, f"{path}.env"
        for every in container.env_from:
            if every.config_map_ref is not None and not every.config_map_ref.optional:
                yield CONFIG_MAPS, every.config_map_ref.name, f"{path}.envFrom"
            if every.secret_ref is not None and not every.secret_ref.optional:
                yield SECRETS, every.secret_ref.name, f"{path}.envFrom"


async def check_readiness_gates(world: World, resource: APIResource[Any], pod: core.Pod) -> AsyncIterator[Finding]:
    """Yield a finding for each readiness gate whose condition is not True."""
    if not pod.spec.node_name or is_terminal(pod) or is_ready(pod):
        return
    subject = reference(resource, pod)
    for gate in pod.spec.readiness_gates:
        condition = find_condition(pod.status.conditions, gate.condition_type)
        if condition is not None and condition.status == "True":
            continue
        text = f"is not ready before the condition {gate.condition_type} of its readiness gate is True"
        evidence: Evidence = at_field(subject, ".spec.readinessGates", gate.condition_type)
        if condition is not None:
            evidence = at_condition(subject, condition)
        yield Finding(Severity.ERROR, "ReadinessGate", text, (evidence,))
