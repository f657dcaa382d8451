"""ResourceQuota: writes are charged to the quotas of their namespace, and refused if too little is left.

Follows k8s.io/apiserver `admission/plugin/resourcequota`. The usage is kept in the status of the quotas. All waiting
writes of a namespace are checked together against one snapshot of its quotas. Their usage is stored in one update for
each quota, and later writes wait until it is stored. After a conflict the writes are checked again. So two writes never
get the same last free unit. A controller reduces the usage after deletions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from steersman.admission.interface import CREATE, UPDATE, Attributes, Plugin, WriteKind
from steersman.admission_plugins.declaration import ConfiguredDeclaration, PluginDependencies
from steersman.admission_plugins.quota.evaluators import Evaluator, ServiceEvaluator, VolumeClaimEvaluator
from steersman.admission_plugins.quota.pods import PodEvaluator
from steersman.admission_plugins.quota.resource_claims import ResourceClaimEvaluator
from steersman.api.core.v1 import ResourceQuota as Quota
from steersman.api.core.v1 import ScopedResourceSelectorRequirement
from steersman.api.scalars import Wire
from steersman.machinery.built_in.pod_resources import Amounts
from steersman.machinery.built_in.quota.measure import IGNORED, counting, scopes_of
from steersman.machinery.codec.configuration import Document
from steersman.machinery.errors.status import StatusError, internal, plain_internal
from steersman.machinery.identity.schema import GroupResource
from steersman.machinery.selectors.labels import SelectorError
from steersman.machinery.values.quantity import parse
from steersman.rest.context import loopback
from steersman.rest.objects import NamespaceCache, Objects, Presence, Reading
from steersman.work.offloading import begin_task, bound, current, offload_if

_ATTEMPTS: Final = 4
_TIMEOUT: Final = 10.0
"""Seconds that a write waits for its check."""


class QuotaSnapshot(Struct, frozen=True):
    """Snapshot of a quota, with the usage charged so far."""

    name: str
    version: str
    selectors: tuple[ScopedResourceSelectorRequirement, ...]
    hard: dict[str, str]
    used: dict[str, str]


class LimitedResource(Wire):
    """A resource whose use requires a quota that covers it (`limitedResources` of ResourceQuotaConfiguration).

    It concerns the used resources of objects of `resource` whose name contains one of `match_contains`. As upstream, it
    also concerns objects of any resource in one of the scopes.
    """

    api_group: str = ""
    resource: str = ""
    match_contains: list[str] = []
    match_scopes: list[ScopedResourceSelectorRequirement] = []


class Configuration(Document):
    """ResourceQuotaConfiguration; the name of the class is that of its Go type."""

    limited_resources: list[LimitedResource] = []


class _Waiter:
    """A write that waits for its check."""

    __slots__ = ("account", "attributes", "checked", "evaluator")

    def __init__(self, attributes: Attributes, evaluator: Evaluator) -> None:
        self.attributes = attributes
        self.evaluator = evaluator
        self.account = current()
        self.checked: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def admit(self) -> None:
        if not self.checked.done():
            self.checked.set_result(None)

    def refuse(self, error: Exception) -> None:
        if not self.checked.done():
            self.checked.set_exception(error)


class ResourceQuota(Plugin):
    """Charges writes to quotas.

    `quotas` are the ResourceQuotas of all namespaces. `evaluators` are those of resources with more usage than their
    number of objects. `limited` are resources that need a quota.
    """

    name = "ResourceQuota"
    operations = frozenset({CREATE, UPDATE})
    validates = True

    def __init__(
        self,
        quotas: Objects,
        evaluators: dict[GroupResource, Evaluator],
        limited: tuple[LimitedResource, ...] = (),
    ) -> None:
        self._quotas = quotas
        self._snapshots = NamespaceCache(quotas, _SNAPSHOT, tuple)
        self._evaluators = evaluators
        self._limited = limited
        self._waiting: dict[str, list[_Waiter]] = {}
        self._working: dict[str, asyncio.Task[None]] = {}
        self._presence = Presence(quotas, self.notify_work_changed)

    def has_work(self, writes: WriteKind, *, mutating: bool) -> bool:
        if GroupResource(writes.group, writes.resource) in IGNORED:
            return False
        return bool(self._limited) or not self._presence.is_empty

    async def validate(self, attributes: Attributes) -> None:
        """Charge a write. Raises StatusError 403 if a quota is exceeded, its usage is unknown or the object lacks
        values.
        """
        namespace, resource = attributes.action.namespace, attributes.action.group_resource
        if not namespace:
            return
        if (attributes.kind.group, attributes.kind.kind) == ("", "Namespace") and attributes.operation == CREATE:
            return
        unlimited = not (await self._snapshots.get(namespace))[0]
        if unlimited and not self._limited:
            return
        evaluator = self._evaluators.get(resource) or Evaluator(counting(resource))
        if not evaluator.handles(attributes):
            return
        if unlimited:
            await charge((), attributes, evaluator, self._limited)
            return
        waiter = _Waiter(attributes, evaluator)
        self._waiting.setdefault(namespace, []).append(waiter)
        if namespace not in self._working:
            work = self._check_waiting(namespace)
            self._working[namespace] = begin_task(work, name=f"quotas of {namespace}")
        try:
            async with asyncio.timeout(_TIMEOUT):
                await waiter.checked
        except TimeoutError:
            raise internal("resource quota evaluation timed out") from None

    async def _check_waiting(self, namespace: str) -> None:
        """Check the writes of a namespace until none is waiting."""
        try:
            while waiters := self._waiting.pop(namespace, None):
                try:
                    await self._check_together(namespace, waiters)
                except Exception as error:  # each waiting request reports the error
                    for waiter in waiters:
                        waiter.refuse(error)
        finally:
            del self._working[namespace]

    async def _check_together(self, namespace: str, waiters: Sequence[_Waiter]) -> None:
        """Check the writes in order, each on top of the ones before, and store their usage together.

        If some quotas cannot be stored, the charged writes are checked against these quotas again. The other quotas
        keep the stored usage even if a write is refused then: the quota controller corrects it.
        """
        accounts, is_much = await self._snapshots.get(namespace)
        failure: StatusError | None = None
        for _ in range(_ATTEMPTS):
            charged: list[_Waiter] = []
            now = accounts
            for waiter in waiters:
                try:
                    with bound(waiter.account):
                        after = await charge(now, waiter.attributes, waiter.evaluator, self._limited, is_much=is_much)
                except StatusError as error:
                    waiter.refuse(error)
                    continue
                if waiter.attributes.dry_run or after is now:
                    waiter.admit()
                else:
                    now = after
                    charged.append(waiter)
            failed: set[str] = set()
            for before, account in zip(accounts, now, strict=True):
                if account is not before:
                    try:
                        await self._store(namespace, account)
                    except StatusError as error:
                        failed.add(account.name)
                        failure = error
            if not failed:
                for waiter in charged:
                    waiter.admit()
                return
            waiters = charged
            accounts, is_much = await self._snapshots.get(namespace)
            accounts = tuple(each for each in accounts if each.name in failed)
        assert failure is not None
        for waiter in waiters:
            waiter.refuse(failure)

    async def _store(self, namespace: str, account: QuotaSnapshot) -> None:
        """Write the usage into a quota's status. Raises StatusError, such as Conflict if the quota has changed."""

        def change(quota: Quota) -> Quota:
            quota.metadata.resource_version = account.version
            quota.status.used = account.used
            return quota

        await self._quotas.update(loopback(namespace, account.name), account.name, change, subresource="status")


def snapshot(quota: Quota) -> QuotaSnapshot:
    """Return the members of a quota that admission reads."""
    metadata, status = quota.metadata, quota.status
    return QuotaSnapshot(metadata.name, metadata.resource_version, scopes_of(quota), status.hard, status.used)


_SNAPSHOT: Final = Reading(
    snapshot,
    "metadata.name",
    "metadata.resourceVersion",
    "spec.scopes",
    "spec.scopeSelector",
    "status.hard",
    "status.used",
)


async def charge(
    accounts: tuple[QuotaSnapshot, ...],
    attributes: Attributes,
    evaluator: Evaluator,
    limited: tuple[LimitedResource, ...] = (),
    *,
    is_much: bool = False,
) -> tuple[QuotaSnapshot, ...]:
    """Return the quotas after a write; the same tuple if the write costs nothing. Raises StatusError if it is not
    allowed.

    `is_much` is True if the quotas are so large that the work is offloaded.
    """
    obj = attributes.obj
    try:
        scopes = [scope for each in limited for scope in each.match_scopes if evaluator.in_scope(scope, obj)]
    except SelectorError:
        return accounts  # as upstream
    limits = [
        each for each in limited if GroupResource(each.api_group, each.resource) == attributes.action.group_resource
    ]
    if evaluator.reads_only_the_object:
        concerned = await offload_if(is_much, _applicable, accounts, attributes, evaluator)
    else:
        concerned = _applicable(accounts, attributes, evaluator)
    if not (concerned or scopes or limits):
        return accounts
    usage = await evaluator.usage(obj, attributes.action.namespace)
    if negative := sorted(name for name, amount in usage.items() if amount.sign < 0):
        raise attributes.forbid(f"quota usage is negative for resource(s): {','.join(negative)}")
    old = attributes.old if attributes.operation == UPDATE else None
    grown = usage
    if old is not None and old.metadata.resource_version:
        grown = _subtract(usage, await evaluator.usage(old, attributes.action.namespace))
    by = {index: grown if grown is usage or matches(accounts[index], old, evaluator) else usage for index in concerned}
    if not any(any(amounts.values()) for amounts in (by.values() if concerned else (grown,))):
        return accounts
    if limits or scopes:
        _check_covered(accounts, [accounts[index] for index in concerned], limits, scopes, usage, attributes, evaluator)
    after = list(accounts)
    for index, amounts in by.items():
        account = accounts[index]
        requested = {name: amount for name, amount in amounts.items() if amount and name in account.hard}
        if requested:
            after[index] = _charged(account, requested, attributes)
    return accounts if all(new is before for new, before in zip(after, accounts, strict=True)) else tuple(after)


def _check_covered(
    accounts: Iterable[QuotaSnapshot],
    concerned: Iterable[QuotaSnapshot],
    limits: Iterable[LimitedResource],
    scopes: Iterable[ScopedResourceSelectorRequirement],
    usage: Amounts,
    attributes: Attributes,
    evaluator: Evaluator,
) -> None:
    """Check the resources and scopes that need a quota. Raises StatusError if no quota covers one of them."""
    parts = [part for each in limits for part in each.match_contains]
    needed = {name for name, amount in usage.items() if amount.sign > 0 and any(part in name for part in parts)}
    for account in concerned:
        needed -= evaluator.matching(account.hard)
    if needed:
        raise attributes.forbid(f"insufficient quota to consume: {','.join(sorted(needed))}")
    covered = {
        selector.scope_name
        for account in accounts
        for selector in account.selectors
        if evaluator.in_scope(selector, attributes.obj)
    }
    uncovered = [_shown_scope(scope) for scope in scopes if scope.scope_name not in covered]
    if uncovered:
        raise plain_internal(f"insufficient quota to match these scopes: [{' '.join(uncovered)}]")


def _applicable(accounts: Sequence[QuotaSnapshot], attributes: Attributes, evaluator: Evaluator) -> list[int]:
    """Return the indexes of the quotas that apply to the object."""
    return [index for index, account in enumerate(accounts) if _applies(account, attributes, evaluator)]


def _applies(account: QuotaSnapshot, attributes: Attributes, evaluator: Evaluator) -> bool:
    """Return True if the quota applies to the object.

    Raises StatusError if the object lacks values, or the quota's usage is not known yet.
    """
    obj = attributes.obj
    if not matches(account, obj, evaluator):
        return False
    names = evaluator.matching(account.hard)
    if missing := evaluator.constraint_error(names, obj):
        raise attributes.forbid(f"failed quota: {account.name}: {missing}")
    if not names <= account.used.keys():
        resources = ",".join(sorted(names))
        raise attributes.forbid(f"status unknown for quota: {account.name}, resources: {resources}")
    return True


def matches(account: QuotaSnapshot, obj: Any, evaluator: Evaluator) -> bool:
    """Return True if the object is in all scopes of the quota and uses a resource that the quota limits."""
    in_scope = True
    for selector in account.selectors:
        try:
            in_scope = evaluator.in_scope(selector, obj) and in_scope
        except SelectorError as error:
            raise plain_internal(
                f"error matching scopes of quota {account.name}, err: error on matching scope "
                f"{_shown_scope(selector)}: failed to parse and convert selector: {error}"
            ) from None
    return in_scope and bool(evaluator.matching(account.hard))


def _shown_scope(selector: ScopedResourceSelectorRequirement) -> str:
    return f"{{{selector.scope_name} {selector.operator} [{' '.join(selector.values)}]}}"


def _subtract(usage: Amounts, before: Amounts) -> Amounts:
    """Return the increase of each amount, without amounts that have not grown."""
    grown = {name: amount - before[name] if name in before else amount for name, amount in usage.items()}
    return {name: amount for name, amount in grown.items() if amount.sign > 0}


def _charged(account: QuotaSnapshot, requested: Amounts, attributes: Attributes) -> QuotaSnapshot:
    """Return the quota after the charge. Raises StatusError if it is exceeded, except for writes of a status."""
    hard, used = account.hard, account.used
    sums = {name: parse(used.get(name, "0")) + amount for name, amount in requested.items()}
    if attributes.action.subresource != "status":
        exceeded = sorted(name for name, amount in sums.items() if amount > parse(hard[name]))
        if exceeded:
            raise attributes.forbid(
                f"exceeded quota: {account.name}, requested: {_amounts_text(requested, exceeded)}, "
                f"used: {_amounts_text(used, exceeded)}, limited: {_amounts_text(hard, exceeded)}"
            )
    return replace(account, used=used | {name: str(amount) for name, amount in sums.items()})


def _amounts_text(amounts: Amounts | dict[str, str], names: Iterable[str]) -> str:
    return ",".join(f"{name}={amounts[name]}" for name in names if name in amounts)


def _make(dependencies: PluginDependencies, limited: tuple[LimitedResource, ...]) -> ResourceQuota:
    claims = dependencies.objects("resource.k8s.io", "resourceclaims")
    classes = dependencies.objects("resource.k8s.io", "deviceclasses")
    return ResourceQuota(
        dependencies.objects("", "resourcequotas"),
        {
            GroupResource("", "pods"): PodEvaluator(),
            GroupResource("", "services"): ServiceEvaluator(),
            GroupResource("", "persistentvolumeclaims"): VolumeClaimEvaluator(),
            GroupResource("resource.k8s.io", "resourceclaims"): ResourceClaimEvaluator(
                classes, dependencies.objects("", "pods"), claims
            ),
        },
        limited,
    )


RESOURCE_QUOTA: Final = ConfiguredDeclaration(ResourceQuota, on_by_default=True, make=_make)
