"""Selection of the webhooks of a request: the common base of both webhook plugins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from time import perf_counter
from typing import Any, Final

from steersman.admission.interface import CONNECT, CREATE, DELETE, UPDATE, Attributes, Plugin, WriteKind
from steersman.admission_plugins.declaration import PluginDependencies
from steersman.admission_plugins.matching.rules import MatchedResource, is_exempt
from steersman.admission_plugins.matching.selectors import SelectorMatcher
from steersman.admission_plugins.matching.versions import Conversions, VersionConversion
from steersman.admission_plugins.webhook.calling import Caller
from steersman.admission_plugins.webhook.clients import Clients
from steersman.admission_plugins.webhook.configurations import Configurations
from steersman.admission_plugins.webhook.hooks import Conditions, Hook
from steersman.api.meta.v1 import ManagedFieldsEntry
from steersman.machinery.codec.serializer import decode_plain
from steersman.machinery.errors.status import forbidden
from steersman.webhooks.client_config import ClientConfig
from steersman.webhooks.kubeconfig import Login
from steersman.work.offloading import offload, offload_if

_GROUP: Final = "admissionregistration.k8s.io"


class VersionedObjects:
    """The objects of a request in one version, decoded and as JSON."""

    def __init__(
        self, conversion: VersionConversion, obj: Any, old: Any, obj_json: bytes | None, old_json: bytes | None
    ) -> None:
        self.conversion: Final = conversion
        self.obj: Final = obj
        self.old: Final = old
        self.obj_json: Final = obj_json
        self.old_json: Final = old_json

    def with_object(self, obj: Any, document: bytes) -> VersionedObjects:
        """Return a copy with another new object, possibly of another kind."""
        return VersionedObjects(self.conversion, obj, self.old, document, self.old_json)

    @cached_property
    def changes_ownership(self) -> bool:
        """Return True if the request changes the ownership of fields: managedFields has an entry that the old object
        lacks.
        """
        before = _managed_fields(self.old)
        return any(each not in before for each in _managed_fields(self.obj))

    @cached_property
    def plain(self) -> tuple[Any, Any]:
        """Return both objects as plain data, for the evaluation of expressions."""
        obj, old = (None if each is None else decode_plain(each) for each in (self.obj_json, self.old_json))
        return obj, old


def _managed_fields(obj: Any) -> Sequence[ManagedFieldsEntry]:
    """Return the managedFields of an object; options have none."""
    metadata = getattr(obj, "metadata", None)
    return () if metadata is None else metadata.managed_fields


class WebhookPlugin(Plugin):
    """Base of both webhook plugins: it finds the webhooks of a request, and subclasses call them."""

    operations = frozenset({CREATE, UPDATE, DELETE, CONNECT})

    plural = ""
    """Resource of the webhook configurations."""

    def __init__(self, dependencies: PluginDependencies, login: Callable[[str], Login]) -> None:
        """Create the plugin; `login` returns this server's credentials for a webhook's host ("name:port")."""
        self._authorizer: Final = dependencies.authorizer
        self._condition_metrics: Final = dependencies.condition_metrics
        self._clients: Final = Clients(dependencies.locate_service, login, dependencies.itself, dependencies.egress)
        configurations = dependencies.objects(_GROUP, self.plural)
        self._configurations: Final = Configurations(configurations, dependencies.mapper, self._configurations_read)
        configurations.subscribe(self.notify_work_changed)
        self._selectors: Final = SelectorMatcher(dependencies.objects("", "namespaces"))
        self._conversions: Final = Conversions(dependencies.mapper)
        self._caller: Final = Caller(
            self._clients, dependencies.webhook_metrics, dependencies.faults, mutating=self.mutates
        )

    def close(self) -> None:
        self._clients.close()

    def has_work(self, writes: WriteKind, *, mutating: bool) -> bool:
        return not self._configurations.is_known_to_be_empty

    def _configurations_read(self, clients: frozenset[ClientConfig]) -> None:
        """Keep only the clients of the configured webhooks, after the configurations have been read."""
        self._clients.retain(clients)
        self.notify_work_changed()

    async def _matching_hooks(self, attributes: Attributes) -> Sequence[tuple[Hook, MatchedResource]]:
        """Return the webhooks whose rules match a request, each with the matched resource. Raises StatusError."""
        if self._configurations.is_stale:
            await self._configurations.refresh()
        found = self._configurations.matching(attributes)
        if not found or is_exempt(attributes):
            return ()
        await self._selectors.refresh_namespace(attributes)
        return found

    def _is_selected(self, hook: Hook, attributes: Attributes) -> bool:
        """Return True if the selectors of a webhook match the object in its current state. Raises StatusError."""
        return self._selectors.matches(attributes, hook.namespace_selector, hook.object_selector)

    async def _conditions_hold(
        self,
        conditions: Conditions,
        hook: Hook,
        attributes: Attributes,
        matched: MatchedResource,
        objects: VersionedObjects,
    ) -> bool:
        """Return True if the matchConditions of a webhook hold. Raises StatusError 403 if their evaluation fails."""
        from steersman.admission_plugins.matching.expressions import (  # few servers need it
            authorizer_answers,
            expression_inputs,
        )

        compiled = conditions.compiled
        if compiled is None:
            compiled = await offload_if(True, conditions.compile)
        obj, old = await offload(lambda: objects.plain)
        answers = authorizer_answers(attributes, self._authorizer)
        began = perf_counter()
        match = await compiled.match(expression_inputs(attributes, matched, obj, old), answers)
        self._condition_metrics.observe(
            "webhook",
            hook.name,
            attributes.operation,
            self._caller.type,
            perf_counter() - began,
            match.failures,
            excluded=not match.matches and not match.error,
        )
        if match.error:
            raise forbidden(attributes.action.group_resource, attributes.name, match.error)
        return match.matches

    async def _versioned_objects(self, attributes: Attributes, matched: MatchedResource) -> VersionedObjects:
        """Return the objects in the version that a webhook's rule matched. Raises StatusError."""
        conversion = self._conversions.find(attributes, matched)
        versioned: list[Any] = []
        documents: list[bytes | None] = []
        for each in (attributes.obj, attributes.old):
            obj = None if each is None else await conversion.convert(attributes, each)
            versioned.append(obj)
            documents.append(None if obj is None else await offload(conversion.encode, obj))
        return VersionedObjects(conversion, *versioned, *documents)
