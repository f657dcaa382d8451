"""APIServices: the server that answers a group version, which is this server or one behind a Service."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steersman.api.apiregistration.v1 import (
    APIService,
    APIServiceCondition,
    APIServiceSpec,
    ServiceReference,
)
from steersman.kinds.built_in import built_in
from steersman.machinery.errors.field import FieldError, Path, invalid, not_supported, quote, required
from steersman.machinery.validation.formats import (
    is_dns1035_label,
    is_dns1123_subdomain,
    is_path_segment_name,
    is_valid_port_num,
)
from steersman.machinery.validation.leaves import validate_with
from steersman.machinery.validation.object_meta import name_is_path_segment
from steersman.machinery.values import times
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource, Subresource
from steersman.rest.strategy import StatusStrategy, Strategy

STATUSES: Final = ("True", "False", "Unknown")


def set_defaults(service: APIService) -> None:
    """Default the port of the Service to 443."""
    reference = service.spec.service
    if reference is not None and reference.port is None:
        reference.port = 443


def _validate(service: APIService) -> Iterator[FieldError]:
    spec, path = service.spec, Path("spec")
    needed = f"{spec.version}.{spec.group}"
    name = service.metadata.name
    if name != needed and not is_path_segment_name(name):
        yield invalid(Path("metadata", "name"), name, f'must be `spec.version+"."+spec.group`: {quote(needed)}')
    if not spec.group and spec.version != "v1":
        yield required(path / "group", "only v1 may have an empty group and it better be legacy kube")
    for message in is_dns1123_subdomain(spec.group) if spec.group else ():
        yield invalid(path / "group", spec.group, message)
    yield from validate_with(is_dns1035_label, spec.version, path / "version")
    if not 0 < spec.group_priority_minimum <= 20_000:
        detail = "must be positive and less than 20000"
        yield invalid(path / "groupPriorityMinimum", spec.group_priority_minimum, detail)
    if not 0 < spec.version_priority <= 1000:
        yield invalid(path / "versionPriority", spec.version_priority, "must be positive and less than 1000")
    if spec.service is None:
        yield from _validate_local(spec, path)
    else:
        yield from _validate_remote(spec, spec.service, path)


def _validate_local(spec: APIServiceSpec, path: Path) -> Iterator[FieldError]:
    if spec.ca_bundle:
        detail = "local APIServices may not have a caBundle"
        yield invalid(path / "caBundle", f"{len(spec.ca_bundle)} bytes", detail)
    if spec.insecure_skip_tls_verify:
        yield invalid(path / "insecureSkipTLSVerify", True, "local APIServices may not have insecureSkipTLSVerify")


def _validate_remote(spec: APIServiceSpec, service: ServiceReference, path: Path) -> Iterator[FieldError]:
    if not service.namespace:
        yield required(path.child("service", "namespace"))
    if not service.name:
        yield required(path.child("service", "name"))
    if problems := is_valid_port_num(service.port or 0):
        yield invalid(path.child("service", "port"), service.port or 0, f"port is not valid: {', '.join(problems)}")
    if spec.insecure_skip_tls_verify and spec.ca_bundle:
        yield invalid(path / "insecureSkipTLSVerify", True, "may not be true if caBundle is present")


class APIServiceStrategy(Strategy[APIService]):
    allow_unconditional_update = False
    resets = ("status",)

    def prepare_for_create(self, ctx: Context, service: APIService) -> None:
        super().prepare_for_create(ctx, service)
        if service.spec.service is None:
            service.status.conditions = [
                APIServiceCondition(
                    type="Available",
                    status="True",
                    last_transition_time=times.now(),
                    reason="Local",
                    message="Local APIServices are always available",
                )
            ]

    def validate(self, ctx: Context, service: APIService) -> Iterator[FieldError]:
        return _validate(service)

    def validate_update(self, ctx: Context, new: APIService, old: APIService) -> Iterator[FieldError]:
        return self.validate(ctx, new)


class APIServiceStatusStrategy(StatusStrategy[APIService]):
    allow_unconditional_update = False
    resets = ("spec", "metadata")

    def prepare_for_update(self, ctx: Context, new: APIService, old: APIService) -> None:
        new.spec = old.spec
        metadata, before = new.metadata, old.metadata
        metadata.labels = before.labels
        metadata.annotations = before.annotations
        metadata.finalizers = before.finalizers
        metadata.owner_references = before.owner_references

    def validate_update(self, ctx: Context, new: APIService, old: APIService) -> Iterator[FieldError]:
        for index, condition in enumerate(new.status.conditions):
            if condition.status not in STATUSES:
                path = Path("status", "conditions")[index] / "status"
                yield not_supported(path, condition.status, STATUSES)


def service_name(service: APIService) -> str:
    """Return the Service that answers, as `namespace/name`, or "Local"."""
    reference = service.spec.service
    return "Local" if reference is None else f"{reference.namespace}/{reference.name}"


def available(service: APIService) -> str:
    """Return the status of the Available condition, with its reason if it is not True."""
    for condition in service.status.conditions:
        if condition.type == "Available":
            if condition.status == "True" or not condition.reason:
                return condition.status
            return f"{condition.status} ({condition.reason})"
    return "Unknown"


API_SERVICES = Resource(
    kind=built_in(APIService, default=set_defaults),
    plural="apiservices",
    always_json=True,
    namespaced=False,
    categories=("api-extensions",),
    strategy=APIServiceStrategy(),
    name_validator=name_is_path_segment,
    any_finalizers=True,
    columns=(
        Column("Service", service_name, description="The reference to the service that hosts this API endpoint."),
        Column("Available", available, description="Whether this service is available."),
        AGE,
    ),
    subresources=(Subresource(name="status", strategy=APIServiceStatusStrategy()),),
    storage_prefix="apiregistration.k8s.io/apiservices",
    storage_version_hash="InPBPD7+PqM=",
)
