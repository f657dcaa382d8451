"""Which webhooks are asked about a request: what both plugins have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from time import perf_counter
from typing import Any, Final

from steersman.admission.interface import CONNECT, CREATE, DELETE, UPDATE, Attributes, Plugin, Writes
from steersman.admission_plugins.declaration import Surroundings
from steersman.admission_plugins.matching.rules import Seen, is_exempt
from steersman.admission_plugins.matching.selectors import Selecting
from steersman.admission_plugins.matching.versions import Form, Versions
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


class Shown:
    """The objects of a request in one version: as they are, and as JSON."""

    def __init__(self, form: Form, obj: Any, old: Any, obj_json: bytes | None, old_json: bytes | None) -> None:
        self.form: Final = form
        self.obj: Final = obj
        self.old: Final = old
        self.obj_json: Final = obj_json
        self.old_json: Final = old_json

    def become(self, obj: Any, document: bytes) -> Shown:
        """The same with an object of another kind in the place of this one."""
        return Shown(self.form, obj, self.old, document, self.old_json)

    @cached_property
    def is_change(self) -> bool:
        """Whether the request has given fields a new owner, or an owner new fields: an entry of now tells of that."""
        before = _owners(self.old)
        return any(each not in before for each in _owners(self.obj))

    @cached_property
    def plain(self) -> tuple[Any, Any]:
        """Both as plain data, which expressions are evaluated with."""
        obj, old = (None if each is None else decode_plain(each) for each in (self.obj_json, self.old_json))
        return obj, old


def _owners(obj: Any) -> Sequence[ManagedFieldsEntry]:
    """Of the fields of an object; options have none."""
    metadata = getattr(obj, "metadata", None)
    return () if metadata is None else metadata.managed_fields


class WebhookPlugin(Plugin):
    """Finds webhooks; what they are asked, and when, is the plugins'."""

    operations = frozenset({CREATE, UPDATE, DELETE, CONNECT})

    plural = ""
    """Of the resource that configures its webhooks."""

    def __init__(self, server: Surroundings, login: Callable[[str], Login]) -> None:
        """`login` says who this server is to a webhook's host ("name:port")."""
        self._authorizer: Final = server.authorizer
        self._condition_metrics: Final = server.condition_metrics
        self._clients: Final = Clients(server.locate_service, login, server.itself, server.egress)
        configurations = server.objects(_GROUP, self.plural)
        self._configurations: Final = Configurations(configurations, server.mapper, self._settled)
        configurations.subscribe(self.work_changed)
        self._selecting: Final = Selecting(server.objects("", "namespaces"))
        self._versions: Final = Versions(server.mapper)
        self._caller: Final = Caller(self._clients, server.webhook_metrics, mutating=self.mutates)

    def close(self) -> None:
        self._clients.close()

    def has_work(self, writes: Writes, *, mutating: bool) -> bool:
        return not self._configurations.are_none

    def _settled(self, clients: frozenset[ClientConfig]) -> None:
        """Takes note of where all webhooks are, once they have been read."""
        self._clients.keep(clients)
        self.work_changed()

    async def _about(self, attributes: Attributes) -> Sequence[tuple[Hook, Seen]]:
        """The webhooks whose rules a request meets. Raises StatusError."""
        if self._configurations.is_behind:
            await self._configurations.catch_up()
        found = self._configurations.about(attributes)
        if not found or is_exempt(attributes):
            return ()
        await self._selecting.look_up(attributes)
        return found

    def _is_selected(self, hook: Hook, attributes: Attributes) -> bool:
        """Whether the selectors of a webhook are for the object as it is now. Raises StatusError."""
        return self._selecting.selects(attributes, hook.namespace_selector, hook.object_selector)

    async def _is_met(
        self, conditions: Conditions, hook: Hook, attributes: Attributes, seen: Seen, shown: Shown
    ) -> bool:
        """Whether the matchConditions of a webhook hold. Raises StatusError 403 where that cannot be told."""
        from steersman.admission_plugins.matching.expressions import answers_about, inputs_of  # few servers need it

        compiled = conditions.compiled
        if compiled is None:
            compiled = await offload_if(True, conditions.compile)
        obj, old = await offload(lambda: shown.plain)
        answers = answers_about(attributes, self._authorizer)
        began = perf_counter()
        match = await compiled.match(inputs_of(attributes, seen, obj, old), answers)
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

    async def _shown(self, attributes: Attributes, seen: Seen) -> Shown:
        """The objects as a webhook sees them. Raises StatusError."""
        form = self._versions.form(attributes, seen)
        made: list[Any] = []
        documents: list[bytes | None] = []
        for each in (attributes.obj, attributes.old):
            obj = None if each is None else await form.made(attributes, each)
            made.append(obj)
            documents.append(None if obj is None else await offload(form.document, obj))
        return Shown(form, *made, *documents)
