"""Services without endpoints, and Ingresses whose backends do not answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from steersman.api.core.v1 import Pod, Service, ServicePort
from steersman.api.discovery.v1 import EndpointSlice
from steersman.client.api_resource import APIResource
from steersman.client.resources import ENDPOINT_SLICES, PODS, SERVICES
from steersman.controllers.services.ports import find_port
from steersman.controllers.services.selecting import selects
from steersman.explain.commands import patch, why
from steersman.explain.explainer import Explainer
from steersman.explain.finding import (
    Evidence,
    Finding,
    Reference,
    Suggestion,
    at_field,
    error,
    note,
    reference,
    warning,
)
from steersman.explain.pod_problems import problems_of
from steersman.explain.world import World
from steersman.machinery.built_in.pod_state import is_terminal
from steersman.machinery.suggestions import did_you_mean

_MOST_COMPARED: Final = 32
"""Labels of a selector for which the nearest pod is looked for."""
_SERVICE_NAME: Final = "kubernetes.io/service-name"
_EXTERNAL: Final = "ExternalName"


def _summarize(service: Service) -> str:
    spec = service.spec
    ports = ", ".join(f"{each.port}/{each.protocol or 'TCP'}" for each in spec.ports)
    return " ".join(filter(None, (spec.type or "ClusterIP", spec.external_name or spec.cluster_ip))) + (
        f", {ports}" if ports else ""
    )


async def slices_of(world: World, namespace: str, name: str) -> list[EndpointSlice]:
    """Return the EndpointSlices of a Service. Raises Unreadable."""
    slices = await world.list(ENDPOINT_SLICES, namespace)
    return [each for each in slices if each.metadata.labels.get(_SERVICE_NAME) == name]


def ready_addresses(slices: Sequence[EndpointSlice]) -> int:
    """Return the number of endpoints that are ready."""
    return sum(each.conditions.ready is not False for one in slices for each in one.endpoints or ())


async def _check_endpoints(world: World, resource: APIResource[Any], service: Service) -> AsyncIterator[Finding]:
    if service.spec.type == _EXTERNAL:
        return
    for each in await endpoint_findings(world, service):
        yield each


async def endpoint_findings(world: World, service: Service) -> list[Finding]:
    """Return the reasons why a Service has no ready endpoint, or lacks some. Raises Unreadable."""
    subject, namespace = reference(SERVICES, service), service.metadata.namespace
    slices = await slices_of(world, namespace, service.metadata.name)
    if not service.spec.selector:
        if ready_addresses(slices):
            return []
        text = "it has no selector, and nobody has made EndpointSlices with ready addresses for it"
        return [error("NoSelector", text, at_field(subject, ".spec.selector", None))]
    pods = [each for each in await world.list(PODS, namespace) if selects(service, each.metadata.labels)]
    running = [each for each in pods if not is_terminal(each)]
    if not running:
        return [await _none_selected(world, service, pods)]
    findings = [found for port in service.spec.ports for found in _port_findings(service, port, running)]
    ready = ready_addresses(slices)
    problems = problems_of(running)
    if ready == 0 and not findings and not service.spec.publish_not_ready_addresses:
        text = f"none of its {len(running)} pods is ready"
        evidence = _slice_evidence(slices, subject)
        findings.append(error("NoReadyPod", text, *evidence, because=tuple(problems)))
    elif problems:
        if service.spec.publish_not_ready_addresses:
            text = "pods that are not ready get traffic too (publishNotReadyAddresses)"
            field = at_field(subject, ".spec.publishNotReadyAddresses", value=True)
            findings.append(note("PublishesNotReady", text, field, because=tuple(problems)))
        else:
            text = f"{ready} endpoints are ready, and pods that are not get no traffic"
            findings.append(warning("PodsNotReady", text, *_slice_evidence(slices, subject), because=tuple(problems)))
    return findings


def _slice_evidence(slices: Sequence[EndpointSlice], subject: Reference) -> tuple[Evidence, ...]:
    if not slices:
        return (at_field(subject, ".metadata.name", f"no EndpointSlice has the label {_SERVICE_NAME}={subject.name}"),)
    return tuple(
        at_field(reference(ENDPOINT_SLICES, each), ".endpoints[*].conditions.ready", _readiness(each))
        for each in slices[:3]
    )


def _readiness(each: EndpointSlice) -> list[bool | None]:
    return [endpoint.conditions.ready for endpoint in (each.endpoints or ())[:10]]


async def _none_selected(world: World, service: Service, ended: Sequence[Pod]) -> Finding:
    """Return the finding that a selector matches no pod: with the nearest pods, here and in other namespaces."""
    subject, selector = reference(SERVICES, service), service.spec.selector
    shown = ",".join(f"{key}={value}" for key, value in selector.items())
    evidence = [at_field(subject, ".spec.selector", selector)]
    if ended:
        text = f"the {len(ended)} pods that its selector {shown} matches have ended"
        return error(
            "PodsEnded", text, *evidence, at_field(reference(PODS, ended[0]), ".status.phase", ended[0].status.phase)
        )
    here = [each for each in await world.list(PODS, service.metadata.namespace) if not is_terminal(each)]
    text = f"its selector {shown} matches no pod"
    suggestions: tuple[Suggestion, ...] = ()
    nearest = _nearest(service, here)
    if nearest is not None:
        pod, wrong = nearest
        had = ", ".join(
            f"{key}={pod.metadata.labels[key]}" if key in pod.metadata.labels else f"no {key}" for key in wrong
        )
        text += f"; the nearest is pod {pod.metadata.name}, which has {had}"
        evidence.append(at_field(reference(PODS, pod), ".metadata.labels", pod.metadata.labels))
        changed = {key: pod.metadata.labels.get(key) for key in wrong}
        suggestions = (patch("select that pod", subject, {"spec": {"selector": changed}}),)
    elsewhere = await _elsewhere(world, service)
    if elsewhere is not None:
        namespace, number = elsewhere
        text += f"; {number} pods in namespace {namespace} match, which a Service of another namespace cannot select"
    elif not here:
        text += f": there are no pods in namespace {service.metadata.namespace}"
    return error("SelectorMatchesNothing", text, *evidence, suggestions=suggestions)


def _nearest(service: Service, pods: Sequence[Pod]) -> tuple[Pod, list[str]] | None:
    """Return the pod that matches most of a selector, and the keys that do not match; None if no key is near."""
    selector = service.spec.selector
    if len(selector) > _MOST_COMPARED:
        return None
    best: tuple[Pod, list[str]] | None = None
    for pod in pods:
        labels = pod.metadata.labels
        wrong = [key for key, value in selector.items() if labels.get(key) != value]
        is_near = len(wrong) < len(selector) or any(did_you_mean(selector[key], [labels.get(key, "")]) for key in wrong)
        if is_near and (best is None or len(wrong) < len(best[1])):
            best = pod, wrong
    return best


async def _elsewhere(world: World, service: Service) -> tuple[str, int] | None:
    """Return another namespace with pods that a selector matches, and their number."""
    counts: dict[str, int] = {}
    for pod in await world.list(PODS):
        if pod.metadata.namespace != service.metadata.namespace and selects(service, pod.metadata.labels):
            counts[pod.metadata.namespace] = counts.get(pod.metadata.namespace, 0) + 1
    return max(counts.items(), key=lambda each: each[1]) if counts else None


def _port_findings(service: Service, port: ServicePort, pods: Sequence[Pod]) -> list[Finding]:
    """Return a finding if a port's target name exists in no pod, or in some only."""
    lacking = [each for each in pods if find_port(each, port) is None]
    if not lacking:
        return []
    subject, shown = reference(SERVICES, service), port.name or str(port.port)
    declared = sorted(
        {each.name for pod in lacking for c in pod.spec.containers or () for each in c.ports if each.name}
    )
    hint = f"; they have {', '.join(declared[:5])}" if declared else "; they declare no named ports"
    text = f"port {shown} has the target {port.target_port}, a name that {len(lacking)} of {len(pods)} pods do not have{hint}"
    evidence = (
        at_field(subject, f".spec.ports[?(@.port=={port.port})].targetPort", port.target_port),
        at_field(reference(PODS, lacking[0]), ".spec.containers[*].ports[*].name", declared),
    )
    make = error if len(lacking) == len(pods) else warning
    suggestions = [Suggestion(f"use the name {each} as targetPort") for each in declared[:1]]
    return [make("TargetPortMissing", text, *evidence, suggestions=tuple(suggestions))]


async def _check_load_balancer(_: World, resource: APIResource[Any], service: Service) -> AsyncIterator[Finding]:
    if service.spec.type == "LoadBalancer" and not service.status.load_balancer.ingress:
        subject = reference(resource, service)
        kind = service.spec.load_balancer_class
        who = f"the controller of class {kind}" if kind else "the cloud's service controller"
        text = f"the load balancer has no address yet: {who} has not set one, or does not run"
        yield warning("NoLoadBalancer", text, at_field(subject, ".status.loadBalancer", None))


async def backend_finding(
    world: World, namespace: str, name: str, port: int | str | None, evidence: Evidence
) -> Finding | None:
    """Return the finding about a Service that other objects send requests to, None if it has ready endpoints.

    Raises Unreadable.
    """
    service = await world.get(SERVICES, name, namespace)
    if service is None:
        return error("ServiceMissing", f"Service {namespace}/{name} does not exist", evidence)
    subject = reference(SERVICES, service)
    ports = service.spec.ports
    if port is not None and not any(port in (each.port, each.name) for each in ports):
        has = ", ".join(f"{each.port} ({each.name})" if each.name else str(each.port) for each in ports) or "none"
        text = f"Service {namespace}/{name} has no port {port}; its ports are {has}"
        return error(
            "ServicePortMissing", text, evidence, at_field(subject, ".spec.ports[*].port", [p.port for p in ports])
        )
    if service.spec.type == _EXTERNAL:
        return None
    if ready_addresses(await slices_of(world, namespace, name)):
        return None
    because = tuple(await endpoint_findings(world, service))
    look = (Suggestion("look at the Service", why(subject)),)
    text = f"Service {namespace}/{name} has no ready endpoint"
    return error("ServiceWithoutEndpoints", text, evidence, because=because, suggestions=look)


SERVICE: Final = Explainer(SERVICES, _summarize, (_check_endpoints, _check_load_balancer))
