"""Eviction: deletes a pod if the disruption budgets allow it (`pods/NAME/eviction`)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from msgspec.structs import replace

from steersman.api.core import v1 as core
from steersman.api.meta.v1 import Condition, DeleteOptions, Preconditions, Status
from steersman.api.policy.v1 import Eviction, PodDisruptionBudget
from steersman.machinery.built_in.pod_state import is_terminal
from steersman.machinery.errors.field import Path, invalid
from steersman.machinery.errors.status import (
    Cause,
    StatusError,
    bad_request,
    conflict,
    forbidden,
    plain_internal,
    timeout,
    too_many_requests,
)
from steersman.machinery.errors.status import invalid as invalid_object
from steersman.machinery.identity.schema import GroupKind, GroupResource
from steersman.machinery.selectors.labels import NOTHING, Predicate, SelectorError, from_label_selector
from steersman.machinery.values import times
from steersman.machinery.values.conditions import find_condition, is_condition_true, with_condition
from steersman.registry.services import Services
from steersman.rest.context import Context, loopback
from steersman.rest.objects import Reading

MAX_DISRUPTED_PODS: Final = 2000
"""The most evictions that the disruption controller may not have processed yet."""

_ATTEMPTS: Final = 20
_PAUSE: Final = 0.5
"""Seconds between attempts."""
_POD: Final = GroupResource("", "Pod")
_BUDGET: Final = GroupResource("policy", "poddisruptionbudget")
_EVICTION: Final = GroupKind("policy", "Eviction")
_VIOLATION: Final = "Cannot evict pod as it would violate the pod's disruption budget."


async def evict_pod(services: Services, ctx: Context, name: str, eviction: Eviction) -> Status:
    """Delete the pod, and count that against its budget if it has one.

    Raises StatusError: 400, 404, 409, 422, 429, 500.
    """
    if name != eviction.metadata.name:
        raise bad_request("name in URL does not match name in Eviction object")
    options = _delete_options(eviction, name)
    if ctx.dry_run or options.dry_run:
        ctx = replace(ctx, dry_run=True)
        options = replace(options, dry_run=options.dry_run or ["All"])
    evictor = _Evictor(services, ctx, name, options)
    await evictor.evict()
    return Status(status="Success", code=201)


def _delete_options(eviction: Eviction, name: str) -> DeleteOptions:
    options = eviction.delete_options or DeleteOptions()
    if options.ignore_store_read_error_with_cluster_breaking_potential:
        path = Path("deleteOptions", "ignoreStoreReadErrorWithClusterBreakingPotential")
        text = "can not be set for pod eviction, try after removing the option"
        raise invalid_object(_EVICTION, name, [invalid(path, True, text)])
    return options


class _Evictor:
    """One eviction. `pins` is True if the client gave the resourceVersion of the pod that it means."""

    def __init__(self, services: Services, ctx: Context, name: str, options: DeleteOptions) -> None:
        self.pods = services.objects("", "pods")
        self.budgets = services.objects("policy", "poddisruptionbudgets")
        self.ctx = ctx
        self.name = name
        self.options = options
        self.pins = options.preconditions is not None and options.preconditions.resource_version is not None

    async def evict(self) -> None:
        pod = await _retry(self._delete_unguarded, again=not self.pins)
        if pod is None:
            return
        budget = await self._budget_of(pod)
        if budget is None:
            await self._delete(self.options)
        elif _is_surplus(pod, budget):
            await self._delete_unhealthy(pod, budget)
        else:
            await self._consume_budget(pod, budget)
            await self._delete(self.options)

    async def _delete_unguarded(self) -> core.Pod | None:
        """Delete a pod that no budget counts (finished, pending, or terminating) and return None; return any other pod."""
        pod: core.Pod = await self.pods.get(self.ctx, self.name)
        deleting = pod.metadata.deletion_timestamp is not None
        if not deleting and not is_terminal(pod) and pod.status.phase != "Pending":
            return pod
        options = self.options
        if not self.pins and not deleting and not is_terminal(pod):
            # The pending pod may have started meanwhile, so that a budget counts it.
            options = _pinned(options, pod)
        await self._delete(options)
        return None

    async def _budget_of(self, pod: core.Pod) -> PodDisruptionBudget | None:
        """Return the budget whose selector matches the pod, None if there is none. Raises StatusError 500 for several."""
        found, labels = "", pod.metadata.labels
        async for name, matches in self.budgets.iterate_current(self.ctx.action.namespace, _SELECTOR):
            if not matches(labels):
                continue
            if found:
                raise plain_internal(
                    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
                )
            found = name
        if not found:
            return None
        try:
            budget: PodDisruptionBudget = await self.budgets.get(loopback(self.ctx.action.namespace, found), found)
        except StatusError as error:
            if error.reason == "NotFound":  # it has just been deleted
                return None
            raise
        return budget

    async def _delete_unhealthy(self, pod: core.Pod, budget: PodDisruptionBudget) -> None:
        """Delete the pod if it has not changed since it was found to be unhealthy."""
        try:
            await self._delete(_pinned(self.options, pod))
        except StatusError as error:
            if error.reason == "Conflict" and not self.pins:
                raise _in_progress(budget.metadata.name) from None
            raise

    async def _consume_budget(self, pod: core.Pod, budget: PodDisruptionBudget) -> None:
        """Take one disruption from the budget. Raises StatusError 429 or 403 if it allows none."""
        if self.ctx.dry_run:
            _count_eviction(budget, pod.metadata.name)
            return
        name = budget.metadata.name

        def count(current: PodDisruptionBudget) -> PodDisruptionBudget:
            _count_eviction(current, pod.metadata.name)
            return current

        ctx = loopback(self.ctx.action.namespace, name)

        async def update() -> None:
            await self.budgets.update(ctx, name, count, subresource="status")

        try:
            await _retry(update)
        except StatusError as error:
            if error.reason == "Conflict":
                text = f'couldn\'t update PodDisruptionBudget "{name}" due to conflicts'
                raise timeout(text, 10) from None
            raise

    async def _delete(self, options: DeleteOptions) -> None:
        """Add the DisruptionTarget condition to the pod and delete it. Raises StatusError."""
        if not self.ctx.dry_run:
            marked: core.Pod = await self.pods.update(
                self.ctx, self.name, lambda pod: _mark(pod, options), subresource="status", owned=False
            )
            if options.preconditions is not None and options.preconditions.resource_version is not None:
                options = _pinned(options, marked)
        await self.pods.delete(self.ctx, self.name, options)


def _selector_matches(budget: PodDisruptionBudget) -> Predicate:
    """Return the predicate of a budget's selector over labels; a selector that cannot be parsed matches nothing."""
    try:
        return from_label_selector(budget.spec.selector).matches
    except SelectorError:
        return NOTHING.matches


_SELECTOR: Final = Reading(_selector_matches, "spec.selector")


def _mark(pod: core.Pod, options: DeleteOptions) -> core.Pod:
    """Add the condition with the reason of the deletion. Raises StatusError 409 if the preconditions do not match."""
    wanted, metadata = options.preconditions or Preconditions(), pod.metadata
    if wanted.uid and wanted.uid != metadata.uid:
        text = (
            f"the UID in the precondition ({wanted.uid}) does not match the UID in record ({metadata.uid}). "
            "The object might have been deleted and then recreated"
        )
        raise conflict(_POD, metadata.name, text)
    if wanted.resource_version and wanted.resource_version != metadata.resource_version:
        text = (
            f"the ResourceVersion in the precondition ({wanted.resource_version}) does not match the ResourceVersion "
            f"in record ({metadata.resource_version}). The object might have been modified"
        )
        raise conflict(_POD, metadata.name, text)
    condition = core.PodCondition(
        type="DisruptionTarget", status="True", reason="EvictionByEvictionAPI", message="Eviction API: evicting"
    )
    pod.status.conditions = with_condition(pod.status.conditions, condition)
    return pod


def _pinned(options: DeleteOptions, pod: core.Pod) -> DeleteOptions:
    """Return the options with the pod's resourceVersion as a precondition."""
    preconditions = options.preconditions or Preconditions()
    version = pod.metadata.resource_version
    return replace(options, preconditions=replace(preconditions, resource_version=version))


def _is_surplus(pod: core.Pod, budget: PodDisruptionBudget) -> bool:
    """Return True if the pod is not ready and its deletion need not count as a disruption."""
    if is_condition_true(pod.status.conditions, "Ready"):
        return False
    if budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow":
        return True
    status = budget.status
    return status.current_healthy >= status.desired_healthy > 0


def _in_progress(name: str) -> StatusError:
    cause = Cause("DisruptionBudget", f"The disruption budget {name} is still being processed by the server.")
    return _with_cause(too_many_requests(_VIOLATION, 10), cause)


def _with_cause(error: StatusError, cause: Cause) -> StatusError:
    error.causes = (*error.causes, cause)
    return error


def _count_eviction(budget: PodDisruptionBudget, pod: str) -> None:
    """Count one eviction in the budget's status. Raises StatusError 429 or 403 if it allows none."""
    status, name = budget.status, budget.metadata.name
    if status.observed_generation < budget.metadata.generation:
        raise _in_progress(name)
    if status.disruptions_allowed < 0:
        raise forbidden(_BUDGET, name, "pdb disruptions allowed is negative")
    if len(status.disrupted_pods) > MAX_DISRUPTED_PODS:
        text = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise forbidden(_BUDGET, name, text)
    if status.disruptions_allowed == 0:
        raise _with_cause(too_many_requests(_VIOLATION), Cause("DisruptionBudget", _denial_message(budget)))
    status.disruptions_allowed -= 1
    if status.disruptions_allowed == 0:
        _set_insufficient(budget)
    status.disrupted_pods = status.disrupted_pods | {pod: times.now()}


def _denial_message(budget: PodDisruptionBudget) -> str:
    status = budget.status
    of_budget = f"The disruption budget {budget.metadata.name}"
    condition = find_condition(budget.status.conditions, "DisruptionAllowed")
    explained = condition is not None and condition.status == "False" and bool(condition.message)
    if condition is not None and explained and condition.reason == "SyncFailed":
        return f"{of_budget} does not allow evicting pods currently because it failed sync: {condition.message}"
    if status.current_healthy <= status.desired_healthy:
        return f"{of_budget} needs {status.desired_healthy} healthy pods and has {status.current_healthy} currently"
    if condition is not None and explained:
        return f"{of_budget} does not allow evicting pods currently ({condition.reason}): {condition.message}"
    return f"{of_budget} does not allow evicting pods currently"


def _set_insufficient(budget: PodDisruptionBudget) -> None:
    """Set the condition that no more pods may be disrupted."""
    new = Condition(
        type="DisruptionAllowed",
        status="False",
        reason="InsufficientPods",
        observed_generation=budget.status.observed_generation,
    )
    budget.status.conditions = with_condition(budget.status.conditions, new)


async def _retry(attempt: Callable[[], Awaitable[Any]], *, again: bool = True) -> Any:
    """Repeat `attempt` until no other write interferes, up to `_ATTEMPTS` times if `again`. Raises StatusError."""
    for remaining in reversed(range(_ATTEMPTS)):
        try:
            return await attempt()
        except StatusError as error:
            if error.reason != "Conflict" or not again or not remaining:
                raise
        await asyncio.sleep(_PAUSE)
    raise AssertionError("unreachable")
