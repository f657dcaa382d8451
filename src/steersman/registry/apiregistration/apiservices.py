"""APIServices: which server answers a group and version, this one or one behind a Service."""

from __future__ import annotations

from steersman.api.apiregistration.v1 import APIService, APIServiceCondition, APIServiceStatus
from steersman.machinery import times
from steersman.machinery.errors import not_implemented
from steersman.machinery.validation.object_meta import name_is_path_segment
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource, Subresource
from steersman.rest.strategy import Release, StatusStrategy, Strategy


def set_defaults(service: APIService) -> None:
    """Servers are asked on 443."""
    reference = service.spec.service
    if reference is not None and reference.port is None:
        reference.port = 443


def _refuse_remote(service: APIService) -> None:
    if service.spec.service is not None:
        raise not_implemented("other API servers are not asked yet: an APIService with a service would have no effect")


class APIServiceStrategy(Strategy[APIService]):
    allow_unconditional_update = False

    def prepare_for_create(self, ctx: Context, service: APIService) -> None:
        service.status = APIServiceStatus()
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

    async def before_create(self, ctx: Context, service: APIService) -> Release | None:
        _refuse_remote(service)
        return None

    def prepare_for_update(self, ctx: Context, new: APIService, old: APIService) -> None:
        new.status = old.status

    async def before_update(self, ctx: Context, new: APIService, old: APIService) -> Release | None:
        _refuse_remote(new)
        return None


class APIServiceStatusStrategy(StatusStrategy[APIService]):
    allow_unconditional_update = False

    def prepare_for_update(self, ctx: Context, new: APIService, old: APIService) -> None:
        new.spec = old.spec
        metadata, before = new.metadata, old.metadata
        metadata.labels = before.labels
        metadata.annotations = before.annotations
        metadata.finalizers = before.finalizers
        metadata.owner_references = before.owner_references


def service_name(service: APIService) -> str:
    """The Service that answers, as `namespace/name`."""
    reference = service.spec.service
    return "Local" if reference is None else f"{reference.namespace}/{reference.name}"


def available(service: APIService) -> str:
    """Whether it answers, and why not."""
    for condition in service.status.conditions:
        if condition.type == "Available":
            if condition.status == "True" or not condition.reason:
                return condition.status
            return f"{condition.status} ({condition.reason})"
    return "Unknown"


API_SERVICES = Resource(
    kind=APIService,
    group="apiregistration.k8s.io",
    plural="apiservices",
    namespaced=False,
    categories=("api-extensions",),
    strategy=APIServiceStrategy(),
    name_validator=name_is_path_segment,
    default=set_defaults,
    columns=(
        Column("Service", service_name, description="The reference to the service that hosts this API endpoint."),
        Column("Available", available, description="Whether this service is available."),
        AGE,
    ),
    subresources=(Subresource(name="status", strategy=APIServiceStatusStrategy()),),
    storage_prefix="apiregistration.k8s.io/apiservices",
    storage_version_hash="InPBPD7+PqM=",
)
