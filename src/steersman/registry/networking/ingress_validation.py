"""Validation of Ingresses (kubernetes `pkg/apis/networking/validation`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steersman.api.core.v1 import TypedLocalObjectReference
from steersman.api.networking.v1 import (
    HTTPIngressPath,
    Ingress,
    IngressBackend,
    IngressRule,
    IngressServiceBackend,
    IngressSpec,
    IngressStatus,
)
from steersman.machinery.errors.field import FieldError, Path, invalid, not_supported, required
from steersman.machinery.validation.formats import (
    is_dns1123_subdomain,
    is_path_segment_name,
    is_valid_port_name,
    is_valid_port_num,
    is_wildcard_dns1123_subdomain,
)
from steersman.machinery.validation.ip import is_valid_ip_for_legacy_field, parse_ip_sloppy
from steersman.machinery.validation.leaves import (
    validate_name,
    validate_required,
    validate_required_name,
    validate_with,
)
from steersman.machinery.validation.object_meta import name_is_dns_label, name_is_dns_subdomain

PATH_TYPES: Final = ("Exact", "ImplementationSpecific", "Prefix")

_FORBIDDEN_IN_PATH: Final = ("//", "/./", "/../", "%2f", "%2F")
_FORBIDDEN_AT_END: Final = ("/..", "/.")
_NOT_AN_ADDRESS: Final = "must be a DNS name, not an IP address"


def validate_ingress(spec: IngressSpec, old: Ingress | None) -> Iterator[FieldError]:
    """Validate a spec that replaces that of `old`, which may keep values that older servers accepted."""
    path = Path("spec")
    if not spec.rules and spec.default_backend is None:
        yield invalid(path, None, "either `defaultBackend` or `rules` must be specified")
    if spec.default_backend is not None:
        yield from _validate_backend(spec.default_backend, path / "defaultBackend")
    for index, rule in enumerate(spec.rules):
        tolerant = "*" in rule.host and _had_bad_wildcard_rule(old)
        yield from _validate_rule(rule, (path / "rules")[index], check_value=not tolerant)
    yield from _validate_tls(spec, path / "tls", check_secret=not _had_bad_secret_name(old))
    if spec.ingress_class_name is not None:
        yield from validate_name(name_is_dns_subdomain, spec.ingress_class_name, path / "ingressClassName")


def _had_bad_wildcard_rule(old: Ingress | None) -> bool:
    return old is not None and any(
        any(True for _ in _validate_rule_value(rule, Path())) for rule in old.spec.rules if "*" in rule.host
    )


def _had_bad_secret_name(old: Ingress | None) -> bool:
    return old is not None and any(
        name_is_dns_subdomain(tls.secret_name, False) for tls in old.spec.tls if tls.secret_name
    )


def _validate_tls(spec: IngressSpec, path: Path, *, check_secret: bool) -> Iterator[FieldError]:
    for index, tls in enumerate(spec.tls):
        for place, host in enumerate(tls.hosts):
            check = is_wildcard_dns1123_subdomain if "*" in host else is_dns1123_subdomain
            yield from validate_with(check, host, (path[index] / "hosts")[place])
        if check_secret and tls.secret_name:
            yield from validate_name(name_is_dns_subdomain, tls.secret_name, path[index] / "secretName")


def _validate_rule(rule: IngressRule, path: Path, *, check_value: bool) -> Iterator[FieldError]:
    host = rule.host
    if host:
        if parse_ip_sloppy(host) is not None:
            yield invalid(path / "host", host, _NOT_AN_ADDRESS)
        check = is_wildcard_dns1123_subdomain if "*" in host else is_dns1123_subdomain
        yield from validate_with(check, host, path / "host")
    if check_value:
        yield from _validate_rule_value(rule, path)


def _validate_rule_value(rule: IngressRule, path: Path) -> Iterator[FieldError]:
    if rule.http is None:
        return
    paths, at = rule.http.paths or [], path.child("http", "paths")
    if not paths:
        yield required(at)
    for index, each in enumerate(paths):
        yield from _validate_path(each, at[index])


def _validate_path(each: HTTPIngressPath, path: Path) -> Iterator[FieldError]:
    if each.path_type is None:
        yield required(path / "pathType", "pathType must be specified")
        return
    if each.path_type in ("Exact", "Prefix"):
        yield from _validate_exact_path(each.path, path / "path")
    elif each.path_type == "ImplementationSpecific":
        if each.path and not each.path.startswith("/"):
            yield invalid(path / "path", each.path, "must be an absolute path")
    else:
        yield not_supported(path / "pathType", each.path_type, PATH_TYPES)
    yield from _validate_backend(each.backend, path / "backend")


def _validate_exact_path(text: str, path: Path) -> Iterator[FieldError]:
    if not text.startswith("/"):
        yield invalid(path, text, "must be an absolute path")
    for sequence in _FORBIDDEN_IN_PATH:
        if sequence in text:
            yield invalid(path, text, f"must not contain '{sequence}'")
    for suffix in _FORBIDDEN_AT_END:
        if text.endswith(suffix):
            yield invalid(path, text, f"cannot end with '{suffix}'")


def _validate_backend(backend: IngressBackend, path: Path) -> Iterator[FieldError]:
    if backend.resource is not None and backend.service is not None:
        yield invalid(path, "", "cannot set both resource and service backends")
    elif backend.resource is not None:
        yield from _validate_reference(backend.resource, path / "resource")
    elif backend.service is not None:
        yield from _validate_service(backend.service, path)
    else:
        yield invalid(path, "", "resource or service backend is required")


def _validate_service(service: IngressServiceBackend, path: Path) -> Iterator[FieldError]:
    name, port = path.child("service", "name"), service.port
    yield from validate_required_name(name_is_dns_label, service.name, name)
    if port.name and port.number:
        yield invalid(path, "", "cannot set both port name & port number")
    elif port.name:
        yield from validate_with(is_valid_port_name, port.name, path.child("service", "port", "name"))
    elif port.number:
        yield from validate_with(is_valid_port_num, port.number, path.child("service", "port", "number"))
    else:
        yield required(path, "port name or number is required")


def _validate_reference(reference: TypedLocalObjectReference, path: Path) -> Iterator[FieldError]:
    yield from validate_typed_reference(reference.api_group, reference.kind, reference.name, path)


def validate_typed_reference(group: str | None, kind: str, name: str, path: Path) -> Iterator[FieldError]:
    """Validate a reference to an object of any kind."""
    if group is not None:
        yield from validate_with(is_dns1123_subdomain, group, path / "apiGroup")
    for value, field in ((kind, "kind"), (name, "name")):
        yield from validate_required(is_path_segment_name, value, path / field)


def validate_ingress_status(new: IngressStatus, old: IngressStatus) -> Iterator[FieldError]:
    """Validate the status: addresses of the load balancer; addresses in legacy forms that `old` has may stay."""
    known = {point.ip for point in old.load_balancer.ingress if point.ip}
    for index, point in enumerate(new.load_balancer.ingress):
        path = Path("status", "loadBalancer", "ingress")[index]
        if point.ip:
            yield from is_valid_ip_for_legacy_field(point.ip, path / "ip", valid_old=known)
        if point.hostname:
            yield from validate_with(is_dns1123_subdomain, point.hostname, path / "hostname")
            if parse_ip_sloppy(point.hostname) is not None:
                yield invalid(path / "hostname", point.hostname, _NOT_AN_ADDRESS)
