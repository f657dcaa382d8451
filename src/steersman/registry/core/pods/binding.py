"""Binding: assigns a pod to a node on behalf of a scheduler (`pods/NAME/binding` and `bindings`)."""

from __future__ import annotations

from typing import Final

from steersman.api.core import v1 as core
from steersman.api.meta.v1 import Status
from steersman.machinery.errors.field import Path, aggregate, not_supported, required
from steersman.machinery.errors.status import StatusError, bad_request, conflict, plain_internal
from steersman.machinery.identity.schema import GroupResource
from steersman.machinery.values.conditions import with_condition
from steersman.registry.services import Services
from steersman.rest.context import Context
from steersman.rest.strategy import Strategy

_PODS: Final = GroupResource("", "pods")
_BINDING: Final = GroupResource("", "pods/binding")
_DIRECT: Final[Strategy[core.Pod]] = Strategy()
"""Upstream writes the pod without its strategy: nothing is validated and the generation stays."""


async def bind_pod(services: Services, ctx: Context, name: str, binding: core.Binding) -> Status:
    """Assign the pod to the node. Raises StatusError: 400, 404, 409, and 500 for a target that is no node."""
    metadata = binding.metadata
    if name != metadata.name:
        raise bad_request("name in URL does not match name in Binding object")
    _check_target(binding.target)

    def assign(pod: core.Pod) -> core.Pod:
        _check_preconditions(pod, binding)
        if fault := _unassignable(pod):
            raise conflict(_BINDING, name, fault)
        pod.spec.node_name = binding.target.name
        pod.status.nominated_node_name = ""
        if metadata.annotations:
            pod.metadata.annotations = pod.metadata.annotations | metadata.annotations
        if metadata.labels:
            pod.metadata.labels = pod.metadata.labels | metadata.labels
        scheduled = core.PodCondition(type="PodScheduled", status="True")
        pod.status.conditions = with_condition(pod.status.conditions, scheduled)
        return pod

    await services.objects("", "pods").update(ctx, name, assign, strategy=_DIRECT, owned=False)
    return Status(status="Success", code=201)


async def create_binding(services: Services, ctx: Context, binding: core.Binding) -> Status:
    """Create a Binding posted to `/bindings` instead of `/pods/NAME/binding`. Raises StatusError."""
    if not binding.metadata.name:
        raise bad_request("Name parameter required.")
    return await bind_pod(services, ctx, binding.metadata.name, binding)


def _check_target(target: core.ObjectReference) -> None:
    errors = []
    if target.kind and target.kind != "Node":
        errors.append(not_supported(Path("target", "kind"), target.kind, ("Node", "<empty>")))
    if not target.name:
        errors.append(required(Path("target", "name")))
    if errors:
        raise plain_internal(aggregate(errors))


def _check_preconditions(pod: core.Pod, binding: core.Binding) -> None:
    """Raise StatusError 409 if the binding gives the pod's UID or resourceVersion and it differs."""
    wanted, found = binding.metadata, pod.metadata
    if wanted.uid and wanted.uid != found.uid:
        raise _wrong(pod, f"UID in precondition: {wanted.uid}, UID in object meta: {found.uid}")
    if wanted.resource_version and wanted.resource_version != found.resource_version:
        raise _wrong(
            pod,
            f"ResourceVersion in precondition: {wanted.resource_version}, "
            f"ResourceVersion in object meta: {found.resource_version}",
        )


def _wrong(pod: core.Pod, fault: str) -> StatusError:
    key = f"/registry/pods/{pod.metadata.namespace}/{pod.metadata.name}"
    text = f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: "
    return conflict(_PODS, pod.metadata.name, f"{text}Precondition failed: {fault}")


def _unassignable(pod: core.Pod) -> str:
    name = pod.metadata.name
    if pod.metadata.deletion_timestamp is not None:
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if pod.spec.node_name:
        return f'pod {name} is already assigned to node "{pod.spec.node_name}"'
    if pod.spec.scheduling_gates:
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""
