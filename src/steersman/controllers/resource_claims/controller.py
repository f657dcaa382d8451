"""Controller of resource claims: it creates claims from pods' templates, and releases unused ones.

Follows pkg/controller/resourceclaim.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from steersman.api.core.v1 import Pod, PodResourceClaim
from steersman.api.meta.v1 import ObjectMeta, OwnerReference
from steersman.api.resource.v1 import ResourceClaim, ResourceClaimConsumerReference, ResourceClaimTemplate
from steersman.client.errors import ignoring, is_not_found
from steersman.client.events import reference
from steersman.client.informer import Key as ObjectKey
from steersman.client.informer import key_of
from steersman.client.resources import PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from steersman.controllers.controller import Controller, ControllerDependencies
from steersman.controllers.resource_claims.release import (
    deallocated,
    is_done,
    is_pod,
    is_protected,
    owner_of,
    with_consumers,
    without_protection,
)
from steersman.machinery.built_in.resource_claims import (
    OF_POD_CLAIM,
    ClaimNotCreated,
    is_generated,
    is_owned_by,
    is_reserved_for,
    name_of,
)
from steersman.machinery.errors.status import StatusError
from steersman.work.work_queue import TryLater

_BY_CLAIM: Final = "resource claim"
_BY_TEMPLATE: Final = "resource claim template"
_BY_OWNER: Final = "owner"
_MANAGER: Final = "ResourceClaimController"
_LONGEST_PREFIX: Final = 57
"""Longest prefix of a generated name: a hyphen and five random characters make it 63 characters."""

Key = tuple[Literal["claim", "pod"], ObjectKey]


class ResourceClaimController(Controller[Key]):
    """Reconciles claims. A key is a pod whose claims have to be created or reserved, or a claim that may be released."""

    name = "resourceclaim-controller"
    account = "resource-claim-controller"
    component = "resource_claim"
    workers = 10

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        self._pods = self.informers.for_resource(PODS)
        self._claims = self.informers.for_resource(RESOURCE_CLAIMS)
        self._templates = self.informers.for_resource(RESOURCE_CLAIM_TEMPLATES)
        self._pods.add_index(_BY_CLAIM, _claims)
        self._pods.add_index(_BY_TEMPLATE, _templates)
        self._claims.add_index(_BY_OWNER, _owners)
        self._created: dict[tuple[str, str], ResourceClaim] = {}
        """Created claims that the informer does not have yet, by the uid of the pod and the name of its claim."""
        self._pods.on_change(self._pod_changed)
        self._claims.on_change(self._claim_changed)
        self._templates.on_change(self._template_changed)

    # Changes

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        if pod is None or not (pod.spec.resource_claims or pod.status.extended_resource_claim_status is not None):
            return
        if new is None or is_done(new):
            for name in (*_names(pod), *_extended_resource_claim(pod)):
                self.queue.add(("claim", (pod.metadata.namespace, name)))
        if new is None:
            for each in pod.spec.resource_claims:
                self._created.pop((pod.metadata.uid, each.name), None)
        elif not is_done(new) and self._needs_work(new):
            self.queue.add(("pod", key_of(new)))

    def _claim_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        claim = new or old
        if claim is None:
            return
        _, uid = owner_of(claim)
        self._created.pop((uid, claim.metadata.annotations.get(OF_POD_CLAIM, "")), None)
        if new is not None:
            self.queue.add(("claim", key_of(new)))
        for pod in self._pods.indexed(_BY_CLAIM, "/".join(key_of(claim))):
            self._pod_changed(None, pod)

    def _template_changed(self, _: ResourceClaimTemplate | None, new: ResourceClaimTemplate | None) -> None:
        if new is not None:
            for pod in self._pods.indexed(_BY_TEMPLATE, "/".join(key_of(new))):
                self._pod_changed(None, pod)

    def _needs_work(self, pod: Pod) -> bool:
        """Return True if a claim of a pod has to be created, or reserved for the pod."""
        if pod.metadata.deletion_timestamp:
            return False
        for pod_claim in pod.spec.resource_claims:
            try:
                name = name_of(pod, pod_claim)
            except ClaimNotCreated:
                return True
            if name is None:
                continue
            claim = self._claims.get(pod.metadata.namespace, name)
            if claim is None:
                if is_generated(pod_claim):
                    return True
            elif self._is_to_be_reserved(pod, pod_claim, claim):
                return True
        return False

    def _is_to_be_reserved(self, pod: Pod, pod_claim: PodResourceClaim, claim: ResourceClaim) -> bool:
        """Return True if a claim is allocated but not reserved for its pod, which was bound without the scheduler."""
        usable = not is_generated(pod_claim) or is_owned_by(claim, pod)
        allocated = claim.status.allocation is not None
        return bool(pod.spec.node_name) and usable and allocated and not is_reserved_for(claim, pod)

    # Reconciliation

    async def sync(self, key: Key) -> None:
        kind, (namespace, name) = key
        if kind == "claim":
            claim = self._claims.get(namespace, name)
            if claim is not None:
                await self._sync_claim(claim)
            return
        pod = self._pods.get(namespace, name)
        if pod is not None and not pod.metadata.deletion_timestamp and not is_done(pod):
            await self._sync_pod(pod)

    async def _sync_pod(self, pod: Pod) -> None:
        new_names = {}
        for pod_claim in pod.spec.resource_claims:
            try:
                claim = await self._provide(pod, pod_claim)
            except TryLater as error:
                text = f"PodResourceClaim {pod_claim.name}: {error}"
                self.recorder.event(reference(PODS, pod), "Warning", "FailedResourceClaimCreation", text)
                raise
            if claim is not None:
                new_names[pod_claim.name] = claim.metadata.name
        if new_names:
            await self._apply_names(pod, new_names)
        if not pod.spec.node_name:
            return
        for pod_claim in pod.spec.resource_claims:
            name = new_names.get(pod_claim.name) or name_of(pod, pod_claim)
            cached = None if name is None else self._claims.get(pod.metadata.namespace, name)
            if cached is not None and self._is_to_be_reserved(pod, pod_claim, cached):
                consumer = ResourceClaimConsumerReference(resource="pods", name=pod.metadata.name, uid=pod.metadata.uid)
                updated = with_consumers(cached, [*cached.status.reserved_for, consumer])
                await self.client.update_status(RESOURCE_CLAIMS, updated)

    async def _provide(self, pod: Pod, pod_claim: PodResourceClaim) -> ResourceClaim | None:
        """Return a new or existing claim that the pod's status does not name yet; None if nothing is needed. Raises
        TryLater.
        """
        try:
            name = name_of(pod, pod_claim)
        except ClaimNotCreated:
            name = ""
        if name is None or pod_claim.resource_claim_template_name is None:
            return None
        cached = self._claims.get(pod.metadata.namespace, name) if name else None
        if cached is not None and is_owned_by(cached, pod):
            return None
        key = pod.metadata.uid, pod_claim.name
        for each in self._claims.indexed(_BY_OWNER, pod.metadata.uid):
            if each.metadata.annotations.get(OF_POD_CLAIM) == pod_claim.name:
                return each
        if key in self._created:
            return self._created[key]
        template = self._templates.get(pod.metadata.namespace, pod_claim.resource_claim_template_name)
        if template is None:
            name = pod_claim.resource_claim_template_name
            raise TryLater(
                f'resource claim template "{name}": resourceclaimtemplate.resource.k8s.io "{name}" not found'
            )
        try:
            claim = await self.client.create(RESOURCE_CLAIMS, _claim_of(template, pod, pod_claim))
        except StatusError as error:
            raise TryLater(f"create ResourceClaim : {error}") from None
        if self._claims.get(*key_of(claim)) is None:
            self._created[key] = claim
        return claim

    async def _apply_names(self, pod: Pod, new_names: dict[str, str]) -> None:
        """Apply the names of created claims to the status of their pod."""
        statuses = [{"name": each, "resourceClaimName": name} for each, name in new_names.items()]
        namespace, name = key_of(pod)
        configuration = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace},
            "status": {"resourceClaimStatuses": statuses},
        }
        await self.client.apply(PODS, name, namespace, configuration, manager=_MANAGER, subresource="status")

    async def _sync_claim(self, claim: ResourceClaim) -> None:
        consumers = [each for each in claim.status.reserved_for if not is_pod(each) or await self._uses(claim, each)]
        if len(consumers) < len(claim.status.reserved_for):
            updated = with_consumers(claim, consumers)
            if not consumers and is_protected(claim):
                updated = deallocated(updated)
            now = await self.client.update_status(RESOURCE_CLAIMS, updated)
            if is_protected(now) and now.status.allocation is None:
                await self.client.update(RESOURCE_CLAIMS, without_protection(now))
        elif not consumers and is_protected(claim) and claim.metadata.deletion_timestamp:
            now = claim
            if claim.status.allocation is not None:
                now = await self.client.update_status(RESOURCE_CLAIMS, deallocated(claim))
            await self.client.update(RESOURCE_CLAIMS, without_protection(now))
        if not consumers:
            await self._delete_unneeded(claim)

    async def _uses(self, claim: ResourceClaim, consumer: ResourceClaimConsumerReference) -> bool:
        """Return True if the pod that a claim is reserved for exists and has not ended."""
        namespace = claim.metadata.namespace
        pod = self._pods.get(namespace, consumer.name)
        if pod is not None:
            return pod.metadata.uid == consumer.uid and not is_done(pod)
        pod = await self.client.find(PODS, consumer.name, namespace)
        return pod is not None and pod.metadata.uid == consumer.uid

    async def _delete_unneeded(self, claim: ResourceClaim) -> None:
        """Delete a claim whose pod has ended. The garbage collector deletes claims of deleted pods."""
        name, uid = owner_of(claim)
        pod = self._pods.get(claim.metadata.namespace, name) if name else None
        if pod is None or (pod.metadata.uid == uid and not is_done(pod)):
            return
        with ignoring(is_not_found):
            await self.client.delete(RESOURCE_CLAIMS, claim.metadata.name, claim.metadata.namespace)


def _claim_of(template: ResourceClaimTemplate, pod: Pod, pod_claim: PodResourceClaim) -> ResourceClaim:
    """Return the claim from a template, for one of a pod's claims."""
    owner = OwnerReference(api_version="v1", kind="Pod", name=pod.metadata.name, uid=pod.metadata.uid, controller=True)
    first, second = pod.metadata.name, pod_claim.name
    prefix = f"{first}-{second}-"
    if len(prefix) > _LONGEST_PREFIX:
        parts = (each[: len(each) * _LONGEST_PREFIX // len(prefix)] for each in (first, second))
        prefix = "-".join(parts)
    return ResourceClaim(
        metadata=ObjectMeta(
            generate_name=prefix,
            namespace=pod.metadata.namespace,
            owner_references=[owner],
            annotations={**template.spec.metadata.annotations, OF_POD_CLAIM: pod_claim.name},
            labels=dict(template.spec.metadata.labels),
        ),
        spec=template.spec.spec,
    )


def _names(pod: Pod) -> Iterable[str]:
    """Yield the names of the existing claims that a pod uses."""
    for each in pod.spec.resource_claims:
        try:
            name = name_of(pod, each)
        except ClaimNotCreated:
            continue
        if name is not None:
            yield name


def _extended_resource_claim(pod: Pod) -> Iterable[str]:
    """Return the claim that the scheduler created for the pod's extended resources, as a tuple; () without one."""
    status = pod.status.extended_resource_claim_status
    return () if status is None else (status.resource_claim_name,)


def _claims(pod: Pod) -> Iterable[str]:
    return {f"{pod.metadata.namespace}/{name}" for name in _names(pod)}


def _templates(pod: Pod) -> Iterable[str]:
    names = {each.resource_claim_template_name for each in pod.spec.resource_claims}
    return [f"{pod.metadata.namespace}/{name}" for name in names if name is not None]


def _owners(claim: ResourceClaim) -> Iterable[str]:
    _, uid = owner_of(claim)
    return (uid,) if uid else ()
