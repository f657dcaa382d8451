"""ComponentStatuses: the health of scheduler, controller manager and etcd. Computed on request, and long deprecated."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from typing import Final

from steersman.api.core.v1 import ComponentCondition, ComponentStatus
from steersman.api.meta.v1 import ObjectMeta
from steersman.kinds.built_in import built_in
from steersman.machinery.errors.status import not_found
from steersman.machinery.identity.schema import GroupResource
from steersman.machinery.validation.object_meta import name_is_path_segment
from steersman.rest.context import Context
from steersman.rest.resource import Column, Resource

HEALTHY: Final = "Healthy"
COMPONENTS: Final = {"scheduler": 10259, "controller-manager": 10257}
"""The probed components, each with its port on this host."""
STORE: Final = "etcd-0"
"""The name of this server's own storage, which is healthy whenever the server answers."""

_CONNECT_SECONDS: Final = 0.05
"""Timeout of a probe; within one host a connection is made or refused at once."""


def _component(name: str, *, healthy: bool, message: str) -> ComponentStatus:
    condition = ComponentCondition(type=HEALTHY, status="True" if healthy else "False", message=message)
    return ComponentStatus(metadata=ObjectMeta(name=name), conditions=[condition])


def _probe(name: str, port: int) -> ComponentStatus:
    """Return the status of a component: healthy if a process listens on its port."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as connection:
        connection.settimeout(_CONNECT_SECONDS)
        listening = connection.connect_ex(("127.0.0.1", port)) == 0
    if listening:
        return _component(name, healthy=True, message="ok")
    address = f"127.0.0.1:{port}"
    message = f'Get "https://{address}/healthz": dial tcp {address}: connect: connection refused'
    return _component(name, healthy=False, message=message)


def component_statuses(services: object, ctx: Context) -> Sequence[ComponentStatus]:
    """Return the status of all components, or of the component that `ctx` names. Raises StatusError NotFound."""
    if ctx.action.name and ctx.action.name != STORE and ctx.action.name not in COMPONENTS:
        raise not_found(GroupResource("", "componentstatus"), ctx.action.name)
    statuses = [_probe(name, port) for name, port in COMPONENTS.items() if ctx.action.name in ("", name)]
    if ctx.action.name in ("", STORE):
        statuses.append(_component(STORE, healthy=True, message="ok"))
    return statuses


def _condition_cell(cell: Callable[[ComponentCondition], str], default: str) -> Callable[[ComponentStatus], str]:
    def text(status: ComponentStatus) -> str:
        return next((cell(each) for each in status.conditions if each.type == HEALTHY), default)

    return text


COMPONENT_STATUSES: Final = Resource(
    kind=built_in(ComponentStatus),
    plural="componentstatuses",
    singular="componentstatus",
    namespaced=False,
    short_names=("cs",),
    verbs=("get", "list"),
    name_validator=name_is_path_segment,
    columns=(
        Column(
            "Status",
            _condition_cell(lambda c: "Healthy" if c.status == "True" else "Unhealthy", "Unknown"),
            description="Status of the component conditions",
        ),
        Column("Message", _condition_cell(lambda c: c.message, ""), description="Message of the component conditions"),
        Column("Error", _condition_cell(lambda c: c.error, ""), description="Error of the component conditions"),
    ),
    reader=component_statuses,
    deprecation_warning="v1 ComponentStatus is deprecated in v1.19+",
)
