"""Ingresses: their class, the Services behind them, and their certificates."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

from steersman.api.networking.v1 import Ingress, IngressBackend
from steersman.client.api_resource import APIResource
from steersman.client.resources import INGRESS_CLASSES, INGRESSES, SECRETS
from steersman.explain.explainer import Explainer
from steersman.explain.finding import Finding, at_field, error, reference, warning
from steersman.explain.services import backend_finding
from steersman.explain.world import World
from steersman.machinery.built_in.classes import DEFAULT_INGRESS_CLASS, INGRESS_CLASS, is_default
from steersman.machinery.suggestions import did_you_mean


def _summarize(ingress: Ingress) -> str:
    hosts = ", ".join(each.host or "*" for each in ingress.spec.rules[:5]) or "no rules"
    addresses = [each.ip or each.hostname for each in ingress.status.load_balancer.ingress]
    return f"{hosts}; address {', '.join(addresses[:3]) or 'none'}"


def ingress_fault(ingress: Ingress) -> str:
    """Return the reason why an Ingress is unhealthy, "" if it is not."""
    return "" if ingress.status.load_balancer.ingress else "no ingress controller has given it an address"


async def _check_class(world: World, resource: APIResource[Any], ingress: Ingress) -> AsyncIterator[Finding]:
    subject, name = reference(resource, ingress), ingress.spec.ingress_class_name
    if ingress.metadata.annotations.get(INGRESS_CLASS):
        return
    classes = await world.list(INGRESS_CLASSES)
    known = [each.metadata.name for each in classes]
    evidence = at_field(subject, ".spec.ingressClassName", name)
    if name is None and not any(is_default(each, DEFAULT_INGRESS_CLASS) for each in classes):
        text = f"it names no IngressClass, and none is the default; there are {', '.join(known) or 'no classes'}"
        yield error("NoIngressClass", text, evidence)
    elif name is not None and name not in known:
        yield error("IngressClassMissing", f"IngressClass {name} does not exist{did_you_mean(name, known)}", evidence)


def _backends(ingress: Ingress) -> Iterator[tuple[str, IngressBackend]]:
    if ingress.spec.default_backend is not None:
        yield ".spec.defaultBackend", ingress.spec.default_backend
    for number, rule in enumerate(ingress.spec.rules):
        for index, path in enumerate(rule.http.paths if rule.http is not None and rule.http.paths else ()):
            yield f".spec.rules[{number}].http.paths[{index}].backend", path.backend


async def _check_backends(world: World, resource: APIResource[Any], ingress: Ingress) -> AsyncIterator[Finding]:
    subject = reference(resource, ingress)
    seen: set[tuple[str, int | str | None]] = set()
    for path, backend in _backends(ingress):
        if backend.service is None:
            continue
        port = backend.service.port.name or backend.service.port.number or None
        if (backend.service.name, port) in seen:
            continue
        seen.add((backend.service.name, port))
        evidence = at_field(subject, f"{path}.service", backend.service)
        finding = await backend_finding(world, ingress.metadata.namespace, backend.service.name, port, evidence)
        if finding is not None:
            yield finding


async def _check_certificates(world: World, resource: APIResource[Any], ingress: Ingress) -> AsyncIterator[Finding]:
    subject = reference(resource, ingress)
    for number, each in enumerate(ingress.spec.tls):
        if not each.secret_name:
            continue
        field = at_field(subject, f".spec.tls[{number}].secretName", each.secret_name)
        if await world.get(SECRETS.metadata_only, each.secret_name, ingress.metadata.namespace) is None:
            yield error("SecretMissing", f"Secret {each.secret_name} with the certificate does not exist", field)


async def _check_address(_: World, resource: APIResource[Any], ingress: Ingress) -> AsyncIterator[Finding]:
    if not ingress.status.load_balancer.ingress:
        text = "no ingress controller has given it an address: none runs for its class, or it has not finished"
        yield warning("NoAddress", text, at_field(reference(resource, ingress), ".status.loadBalancer", None))


INGRESS: Final = Explainer(
    INGRESSES, _summarize, (_check_class, _check_backends, _check_certificates, _check_address), ingress_fault
)
