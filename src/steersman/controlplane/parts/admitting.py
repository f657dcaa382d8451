"""Parts that a request passes before its handler: admission, audit, priority and fairness."""

from __future__ import annotations

from contextlib import AsyncExitStack
from functools import partial

from steersman.admission.interface import Chain
from steersman.admission_plugins.declaration import PluginDependencies
from steersman.admission_plugins.metrics import ConditionMetrics, PolicyMetrics, WebhookMetrics
from steersman.audit.metrics import AuditMetrics
from steersman.audit.trail import Auditor
from steersman.controlplane.admission import admission_chain
from steersman.controlplane.audit_options import is_audited
from steersman.controlplane.flow_control import FlowControl
from steersman.controlplane.options import Options
from steersman.controlplane.parts.basis import Common, Embedding, OutgoingRoutes, ValidatedFlags
from steersman.controlplane.parts.identity import Authorization
from steersman.controlplane.parts.resources import ResourceServices
from steersman.controlplane.parts.storing import ObjectStores
from steersman.registry.core.services.locating import locate_service
from steersman.registry.printing.internal_form import internal_diff
from steersman.work.parts import Part, offered


class Admission(Part):
    """The chain of admission plugins. Raises OptionsError."""

    options: Options
    common: Common
    objects: ObjectStores
    authorization: Authorization
    resources: ResourceServices
    chain: Chain = offered()

    async def start(self, ending: AsyncExitStack) -> None:
        registry, services = self.common.registry, self.resources.services
        server = PluginDependencies(
            authorizer=self.authorization.chain.interfaces.authorizer,
            objects=self.objects.stores.objects,
            mapper=self.common.mapper,
            locate_service=partial(locate_service, services),
            itself=services.itself,
            egress=services.egress,
            registry=registry,
            webhook_metrics=WebhookMetrics(registry),
            policy_metrics=PolicyMetrics(registry),
            condition_metrics=ConditionMetrics(registry),
            difference=internal_diff,
            faults=services.faults,
            not_ready_toleration=self.options.default_not_ready_toleration_seconds,
            unreachable_toleration=self.options.default_unreachable_toleration_seconds,
        )
        self.chain = admission_chain(self.options, server)
        ending.callback(self.chain.close)


class Audit(Part):
    """The audit of requests, if flags configure it."""

    options: Options
    embedding: Embedding
    common: Common
    flags: ValidatedFlags
    ways: OutgoingRoutes
    auditor: Auditor | None = None

    async def start(self, ending: AsyncExitStack) -> None:
        common, worker = self.common, self.embedding.worker
        metrics, lock = AuditMetrics(common.registry), None if worker is None else worker.lock
        if not is_audited(self.options):
            return
        from steersman.controlplane.auditing import auditor  # which most servers never need

        rules = self.flags.audit_rules
        self.auditor = auditor(self.options, rules, metrics, common.executor, self.ways.egress, lock)
        if self.auditor is not None:
            ending.push_async_callback(self.auditor.close)


class PriorityAndFairness(Part):
    """Priority and fairness of requests (--enable-priority-and-fairness)."""

    options: Options
    common: Common
    objects: ObjectStores
    control: FlowControl | None = None

    async def start(self, ending: AsyncExitStack) -> None:
        if self.options.enable_priority_and_fairness:
            self.control = FlowControl(self.options, self.objects.stores, self.common.registry)
            ending.push_async_callback(self.control.stop)
