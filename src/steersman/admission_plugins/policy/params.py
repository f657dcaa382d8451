"""Parameters that policy bindings refer to, as plain data (apiserver `policy/generic` CollectParams)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from steersman.admission_plugins.policy.policies import Binding, Policy
from steersman.api.admissionregistration.v1 import ParamRef
from steersman.catalogue.rest_mapper import RESTMapper
from steersman.endpoints.discovery import ServedResource
from steersman.machinery.codec.serializer import decode_plain
from steersman.machinery.errors.status import StatusError
from steersman.machinery.identity.action import Action
from steersman.machinery.identity.schema import GroupVersionKind
from steersman.machinery.large_work.sizes import is_large
from steersman.machinery.selectors.labels import SelectorError, from_label_selector
from steersman.rest.capabilities import Item, ListOptions
from steersman.rest.context import LOOPBACK, Context
from steersman.rest.objects import Objects
from steersman.work.bounded_cache import BoundedCache
from steersman.work.offloading import offload_if

_NOT_FOUND: Final = 404
_MAX_CACHED: Final = 1_000
"""Most cached parameters."""
MAX_CACHED_BYTES: Final = 4 << 20
"""Most JSON bytes of the cached parameters. As plain data they take up to ten times as much. Any single object fits."""

Plain = Mapping[str, Any]


class ParamError(Exception):
    """A policy (with `of_policy`) or one of its bindings cannot be used. The text is upstream's."""

    def __init__(self, message: str, *, of_policy: bool = False) -> None:
        super().__init__(message)
        self.of_policy = of_policy


def _kind_text(gvk: GroupVersionKind) -> str:
    return f"{gvk.group}/{gvk.version}, Kind={gvk.kind}"


class Param:
    """A stored parameter. A request may have thousands, so that each is decoded only while it is used."""

    __slots__ = ("_item", "_kind", "_params", "_served")

    def __init__(self, params: Params, served: ServedResource, kind: GroupVersionKind, item: Item) -> None:
        self._params: Final = params
        self._served: Final = served
        self._kind: Final = kind
        self._item: Final = item

    async def plain(self) -> Plain:
        """Return the parameter as plain data, which is shared: do not change it."""
        return await self._params.plain(self._served, self._kind, self._item)


class Params:
    """Finds parameters of any served kind."""

    def __init__(self, objects: Callable[[str, str], Objects], mapper: RESTMapper) -> None:
        self._objects: Final = objects
        self._mapper: Final = mapper
        self._cached: Final[BoundedCache[tuple[int, GroupVersionKind], tuple[bytes, Plain]]] = BoundedCache(
            _MAX_CACHED, MAX_CACHED_BYTES
        )
        """By identity of the stored body and by kind: the body (so that its identity stays unique) and the plain data.
        """

    def check(self, policy: Policy) -> None:
        """Raise ParamError if the policy's kind of parameters is not served."""
        kind = policy.param_kind
        if kind is not None and not self._mapper.resources_for(kind):
            text = f"failed to find resource referenced by paramKind: '{_kind_text(kind)}'"
            raise ParamError(text, of_policy=True)

    async def collect(self, policy: Policy, binding: Binding, namespace: str) -> Sequence[Param | None]:
        """Return the parameters to evaluate a policy with, (None,) without parameters.

        `namespace` is the namespace of the request. Raises ParamError.
        """
        kind, ref = policy.param_kind, binding.spec.param_ref
        if kind is None or ref is None:
            return (None,)
        (served, *_) = self._mapper.resources_for(kind)
        if served.resource.namespaced:
            namespace = ref.namespace or namespace
            if not namespace:
                raise ParamError(
                    "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
                )
        elif ref.namespace:
            raise ParamError("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
        else:
            namespace = ""
        found = await self._find(served, kind, ref, namespace)
        if not found and ref.parameter_not_found_action == "Deny":
            raise ParamError("no params found for policy binding with `Deny` parameterNotFoundAction")
        return found

    async def _find(
        self, served: ServedResource, kind: GroupVersionKind, ref: ParamRef, namespace: str
    ) -> Sequence[Param]:
        resource = served.resource
        action = Action(
            verb="list", group=kind.group, version=kind.version, resource=resource.plural, namespace=namespace
        )
        ctx = Context(LOOPBACK, action)
        try:
            objects = self._objects(resource.group, resource.plural)
            if ref.name:
                items: Sequence[Item] = (await objects.get_item(ctx, ref.name),)
            else:
                items = await objects.list_items(
                    ctx, ListOptions(from_label_selector(ref.selector), resource_version="0")
                )
            return [Param(self, served, kind, item) for item in items]
        except SelectorError as error:
            raise ParamError(str(error)) from None
        except StatusError as error:
            if error.code == _NOT_FOUND:
                return ()
            raise ParamError(error.message) from None
        except KeyError:
            shown = f"&ParamKind{{APIVersion:{kind.group_version},Kind:{kind.kind},}}"
            raise ParamError(f"paramKind kind `{shown}` not yet synced to use for admission") from None

    async def plain(self, served: ServedResource, kind: GroupVersionKind, item: Item) -> Plain:
        """Return an object as plain data, cached until the object changes."""
        key = id(item.body), kind
        cached = self._cached[key]
        if cached is not None:
            return cached[1]
        decoded = await offload_if(is_large(item.body), decode_object, served, item.body)
        size = len(item.body)
        self._cached.keep(key, (item.body, decoded), size)
        return decoded


def decode_object(served: ServedResource, body: bytes) -> Plain:
    """Return a served body in the version of a policy, with kind and apiVersion."""
    form, other = served.form, served.other
    if other is None or served.resource.conversion is not None:
        plain: Plain = decode_plain(form.prefix + body)
        return plain
    converted = other.from_hub(served.resource.kind.decode(body))
    return {"apiVersion": form.api_version, "kind": form.name, **form.to_plain(converted)}
