"""Reconciliation of HorizontalPodAutoscalers: measure, decide, scale (pkg/controller/podautoscaler/horizontal.go).

Feature gates are those of 1.36: HPAConfigurableTolerance is on, HPAScaleToZero is off.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct

from steersman.api.autoscaling.v1 import Scale
from steersman.api.autoscaling.v2 import (
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerCondition,
    HorizontalPodAutoscalerStatus,
    MetricStatus,
)
from steersman.api.core.v1 import Pod
from steersman.client.api_resource import APIResource
from steersman.client.errors import is_conflict
from steersman.client.events import reference
from steersman.client.informer import Key, key_of, new_or_old
from steersman.client.resources import HORIZONTAL_POD_AUTOSCALERS, PODS
from steersman.client.transport import Unreachable
from steersman.controllers.autoscaling import history
from steersman.controllers.autoscaling.evaluation import Evaluated, Evaluation, MetricFailed, ScaleTarget
from steersman.controllers.autoscaling.history import Bounds, History
from steersman.controllers.autoscaling.metrics import MetricsClient
from steersman.controllers.autoscaling.replicas import NoProposal, Readiness, Tolerances
from steersman.controllers.autoscaling.selectors import Selectors
from steersman.controllers.autoscaling.targets import Mapper, get_scale, group_of, put_scale
from steersman.controllers.controller import Controller, ControllerDependencies
from steersman.machinery.codec.serializer import deep_copy
from steersman.machinery.errors.status import StatusError
from steersman.machinery.selectors import labels
from steersman.machinery.selectors.labels import Selector, SelectorError
from steersman.machinery.values import times
from steersman.machinery.values.conditions import with_condition
from steersman.machinery.values.quantity import parse

logger = logging.getLogger(__name__)

_MAX_ATTEMPTS: Final = 5
"""Most attempts to write a scale after conflicts (client-go retry.DefaultRetry)."""
_WAIT: Final = 0.01


class _Proposed(NamedTuple):
    """Replicas that the metrics ask for, the name of the decisive metric, and errors of other metrics."""

    replicas: int
    name: str
    error: str


class _Reconciliation(Struct):
    """One reconciliation of an autoscaler; `hpa` is a copy whose status is being built."""

    key: Key
    hpa: HorizontalPodAutoscaler
    before: HorizontalPodAutoscalerStatus
    history: History
    resource: APIResource[Any] | None = None
    statuses: list[MetricStatus] | None = None

    @property
    def least(self) -> int:
        least = self.hpa.spec.min_replicas
        return 1 if least is None else least


class _Failed(Exception):
    """The reconciliation failed. Status and events report the reason already."""


class HorizontalPodAutoscalerController(Controller[Key]):
    """Reconciles autoscalers, each once in a sync period even after errors. A key is the namespace and name of an
    autoscaler.
    """

    name = "horizontal-pod-autoscaler-controller"
    account = "horizontal-pod-autoscaler"

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        self._settings = dependencies.settings.autoscaling
        self._hpas = self.informers.for_resource(HORIZONTAL_POD_AUTOSCALERS)
        self._pods = self.informers.for_resource(PODS)
        self._mapper = Mapper(self.client)
        self._metrics = MetricsClient(self.client, self._mapper)
        self._selectors = Selectors()
        self._histories: dict[Key, History] = {}
        self._hpas.on_change(self._changed)

    def _changed(self, old: HorizontalPodAutoscaler | None, new: HorizontalPodAutoscaler | None) -> None:
        key = key_of(new_or_old(old, new))
        if new is None:
            self._selectors.remove(key)
            self._histories.pop(key, None)
        else:
            self.queue.add_after(key, self._settings.sync_period)

    async def sync(self, key: Key) -> None:
        cached = self._hpas.get(*key)
        if cached is None:
            return
        try:
            await self._reconcile(key, cached)
        except (_Failed, StatusError, Unreachable, msgspec.DecodeError, UnicodeDecodeError) as error:
            logger.debug("%s: %s", self.name, error)
        finally:
            if self._hpas.get(*key) is not None:
                self.queue.add_after(key, self._settings.sync_period)

    async def _reconcile(self, key: Key, cached: HorizontalPodAutoscaler) -> None:
        hpa = deep_copy(cached)
        this = _Reconciliation(key, hpa, cached.status, self._histories.setdefault(key, History()))
        this.resource, scale = await self._scale_of(this)
        current = scale.spec.replicas
        this.history.record_initial(current, times.unix_now())
        desired, reason, failed = await self._decide(this, scale)
        if desired is None:
            desired = current
            _set_status(this, current, desired)
        else:
            await self._rescale(this, scale, desired, reason)
            _set_status(this, current, desired, rescaled=True)
        await self._write_status(this)
        if failed:
            raise _Failed(failed)

    # Scale of the target

    async def _scale_of(self, this: _Reconciliation) -> tuple[APIResource[Any], Scale]:
        target, namespace = this.hpa.spec.scale_target_ref, this.key[0]
        try:
            resource = await self._mapper.resource_of(group_of(target.api_version), target.kind)
            scale = await get_scale(self.client, resource, namespace, target.name)
        except (NoProposal, StatusError, Unreachable) as error:
            self._record_event(this, "Warning", "FailedGetScale", str(error))
            text = f"the HPA controller was unable to get the target's current scale: {error}"
            _set_condition(this, "AbleToScale", "False", "FailedGetScale", text)
            await self._write_ignoring_errors(this)
            raise _Failed(str(error)) from None
        text = "the HPA controller was able to get the target's current scale"
        _set_condition(this, "AbleToScale", "True", "SucceededGetScale", text)
        return resource, scale

    async def _rescale(self, this: _Reconciliation, scale: Scale, desired: int, reason: str) -> None:
        current = scale.spec.replicas
        try:
            await self._write_scale(this, scale, desired)
        except (StatusError, Unreachable) as error:
            self._record_event(
                this, "Warning", "FailedRescale", f"New size: {desired}; reason: {reason}; error: {error}"
            )
            text = f"the HPA controller was unable to update the target scale: {error}"
            _set_condition(this, "AbleToScale", "False", "FailedUpdateScale", text)
            _set_status(this, current, this.hpa.status.desired_replicas)
            await self._write_ignoring_errors(this)
            raise _Failed(str(error)) from None
        text = f"the HPA controller was able to update the target scale to {desired}"
        _set_condition(this, "AbleToScale", "True", "SucceededRescale", text)
        self._record_event(this, "Normal", "SuccessfulRescale", f"New size: {desired}; reason: {reason}")
        this.history.scaled(this.hpa.spec.behavior, current, desired, times.unix_now())

    async def _write_scale(self, this: _Reconciliation, scale: Scale, desired: int) -> None:
        assert this.resource is not None
        scale = deep_copy(scale)
        for attempt in range(_MAX_ATTEMPTS):
            scale.spec.replicas = desired
            try:
                await put_scale(self.client, this.resource, scale)
                return
            except StatusError as error:
                if not is_conflict(error) or attempt == _MAX_ATTEMPTS - 1:
                    raise
            await asyncio.sleep(_WAIT)
            scale = await get_scale(self.client, this.resource, scale.metadata.namespace, scale.metadata.name)

    # Desired number of replicas

    async def _decide(self, this: _Reconciliation, scale: Scale) -> tuple[int | None, str, str]:
        """Return the desired replicas (None for no change), the reason, and the errors of metrics."""
        current, most = scale.spec.replicas, this.hpa.spec.max_replicas
        if current == 0:
            text = "scaling is disabled since the replica count of the target is zero"
            _set_condition(this, "ScalingActive", "False", "ScalingDisabled", text)
            return None, "", ""
        if current > most:
            return most, "Current number of replicas above Spec.MaxReplicas", ""
        if current < this.least:
            return this.least, "Current number of replicas below Spec.MinReplicas", ""
        proposed = await self._measure(this, scale)
        desired, name = (proposed.replicas, proposed.name) if proposed.replicas > 0 else (0, "")
        reason = (
            f"{name} above target" if desired > current else "All metrics below target" if desired < current else ""
        )
        bounds = Bounds(current, this.least, most)
        allowed = self._allowed_by_rules(this, desired, bounds)
        return (None if allowed == current else allowed), reason, proposed.error

    def _allowed_by_rules(self, this: _Reconciliation, desired: int, bounds: Bounds) -> int:
        rules, now = this.hpa.spec.behavior, times.unix_now()
        if rules is None:
            stable = this.history.stabilized(desired, self._settings.downscale_stabilization, now)
            reason, message = "ScaleDownStabilized", history.HIGHER
            allowed = history.limited(stable, bounds)
        else:
            rules = deep_copy(rules)
            if rules.scale_down is not None and rules.scale_down.stabilization_window_seconds is None:
                rules.scale_down.stabilization_window_seconds = int(self._settings.downscale_stabilization)
            stable, reason, message = this.history.stabilized_by(rules, desired, bounds.current, now)
            allowed = this.history.limited_by(rules, stable, bounds, now)
        if stable == desired:
            reason, message = "ReadyForNewScale", "recommended size matches current size"
        _set_condition(this, "AbleToScale", "True", reason, message)
        is_limited = "False" if allowed.replicas == stable else "True"
        _set_condition(this, "ScalingLimited", is_limited, allowed.reason, allowed.message)
        return allowed.replicas

    async def _measure(self, this: _Reconciliation, scale: Scale) -> _Proposed:
        """Return the largest number of replicas that any metric asks for. Raises _Failed after updating the status."""
        try:
            selector = self._selector(this, scale.status.selector)
        except NoProposal as error:
            raise await self._unmeasured(this, scale, None, str(error)) from None
        scale_target = ScaleTarget(
            this.key[0],
            scale.spec.replicas,
            scale.status.replicas,
            str(selector),
            lambda: self._selected(this.key[0], selector),
        )
        readiness = Readiness(
            times.unix_now(), self._settings.cpu_initialization_period, self._settings.initial_readiness_delay
        )
        evaluation = Evaluation(self._metrics, scale_target, self._tolerances(this.hpa), readiness)
        specs = this.hpa.spec.metrics
        evaluations: list[Evaluated] = []
        statuses: list[MetricStatus] = []
        failures: list[MetricFailed] = []
        for spec in specs:
            try:
                evaluated = await evaluation.evaluate(spec)
            except MetricFailed as error:
                self._record_event(this, "Warning", error.reason, error.why)
                failures.append(error)
                statuses.append(MetricStatus())
            else:
                evaluations.append(evaluated)
                statuses.append(evaluated.status)
        text = ""
        if failures:
            text = f"invalid metrics ({len(failures)} invalid out of {len(specs)}), first error is: {failures[0]}"
        best = max(evaluations, key=lambda each: each.replicas) if evaluations else None
        if best is None or (failures and best.replicas < scale.spec.replicas):
            if failures:
                why = f"the HPA was unable to compute the replica count: {failures[0].why}"
                _set_condition(this, "ScalingActive", "False", failures[0].reason, why)
            raise await self._unmeasured(this, scale, statuses, text)
        why = f"the HPA was able to successfully calculate a replica count from {best.name}"
        _set_condition(this, "ScalingActive", "True", "ValidMetricFound", why)
        this.statuses = statuses
        return _Proposed(best.replicas, best.name, text)

    async def _unmeasured(
        self, this: _Reconciliation, scale: Scale, statuses: list[MetricStatus] | None, text: str
    ) -> _Failed:
        this.statuses = statuses
        _set_status(this, scale.spec.replicas, this.hpa.status.desired_replicas)
        await self._write_ignoring_errors(this)
        self._record_event(this, "Warning", "FailedComputeMetricsReplicas", text)
        return _Failed(text)

    def _tolerances(self, hpa: HorizontalPodAutoscaler) -> Tolerances:
        usual, rules = self._settings.tolerance, hpa.spec.behavior
        down = None if rules is None or rules.scale_down is None else rules.scale_down.tolerance
        up = None if rules is None or rules.scale_up is None else rules.scale_up.tolerance
        return Tolerances(
            usual if down is None else parse(down).as_float(), usual if up is None else parse(up).as_float()
        )

    # Pods of the target

    def _selector(self, this: _Reconciliation, text: str) -> Selector:
        """Return the selector of a target. Raises NoProposal for a bad one, and if another autoscaler selects one of
        its pods.
        """
        if not text:
            self._record_event(this, "Warning", "SelectorRequired", "selector is required")
            why = "the HPA target's scale is missing a selector"
            _set_condition(this, "ScalingActive", "False", "InvalidSelector", why)
            raise NoProposal("selector is required")
        try:
            selector = labels.parse(text)
        except SelectorError as error:
            why = f"couldn't convert selector into a corresponding internal selector object: {error}"
            raise self._bad_selector(this, "InvalidSelector", why) from None
        if self._hpas.get(*this.key) is not None:
            self._selectors.put(this.key, selector)
        namespace = this.key[0]
        pods = self._selected(namespace, selector)
        selecting = self._selectors.selecting(namespace, (pod.metadata.labels for pod in pods))
        if len(selecting) > 1:
            shown = " ".join(f"{scale_target}/{name}" for scale_target, name in selecting)
            why = f"pods by selector {text} are controlled by multiple HPAs: [{shown}]"
            raise self._bad_selector(this, "AmbiguousSelector", why)
        return selector

    def _bad_selector(self, this: _Reconciliation, reason: str, why: str) -> NoProposal:
        self._record_event(this, "Warning", reason, why)
        _set_condition(this, "ScalingActive", "False", reason, why)
        return NoProposal(why)

    def _selected(self, namespace: str, selector: Selector) -> Sequence[Pod]:
        return [pod for pod in self._pods.list(namespace) if selector.matches(pod.metadata.labels)]

    # Status and events

    async def _write_status(self, this: _Reconciliation) -> None:
        """Update the status if it has changed. Raises StatusError, Unreachable."""
        if this.hpa.status == this.before:
            return
        try:
            await self.client.update_status(HORIZONTAL_POD_AUTOSCALERS, this.hpa)
        except (StatusError, Unreachable) as error:
            self._record_event(this, "Warning", "FailedUpdateStatus", str(error))
            raise

    async def _write_ignoring_errors(self, this: _Reconciliation) -> None:
        """Update the status, and only log errors, because an earlier error is reported."""
        try:
            await self._write_status(this)
        except (StatusError, Unreachable) as error:
            logger.debug("%s: status of %s: %s", self.name, this.key, error)

    def _record_event(self, this: _Reconciliation, type_: str, reason: str, message: str) -> None:
        self.recorder.event(reference(HORIZONTAL_POD_AUTOSCALERS, this.hpa), type_, reason, message)


def _set_condition(this: _Reconciliation, type_: str, status: str, reason: str, message: str) -> None:
    new = HorizontalPodAutoscalerCondition(type=type_, status=status, reason=reason, message=message)
    this.hpa.status.conditions = with_condition(this.hpa.status.conditions, new)


def _set_status(this: _Reconciliation, current: int, desired: int, *, rescaled: bool = False) -> None:
    before = this.hpa.status
    this.hpa.status = HorizontalPodAutoscalerStatus(
        current_replicas=current,
        desired_replicas=desired,
        current_metrics=this.statuses,
        last_scale_time=times.now() if rescaled else before.last_scale_time,
        conditions=before.conditions,
    )
