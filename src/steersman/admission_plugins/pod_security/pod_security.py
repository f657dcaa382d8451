"""PodSecurity: labels of a namespace select the Pod Security Standard that its pods must meet."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

from msgspec import Struct

from steersman.admission.interface import CREATE, UPDATE, Attributes, NamespaceState, Plugin
from steersman.admission_plugins.declaration import ConfiguredDeclaration, PluginDependencies
from steersman.admission_plugins.pod_security.checks import Violation, details, reasons, violations
from steersman.admission_plugins.pod_security.levels import (
    NO_POLICY,
    PRIVILEGED,
    LevelVersion,
    Policy,
    labelled,
    policy_of,
    stricter,
)
from steersman.admission_plugins.pod_security.metrics import AUDIT, ENFORCE, WARN, Evaluation, PodSecurityMetrics
from steersman.api.core.v1 import Pod, PodSpec
from steersman.api.meta.v1 import ObjectMeta
from steersman.machinery.errors.field import aggregate, quote
from steersman.machinery.errors.status import forbidden, internal, invalid
from steersman.machinery.identity.schema import GroupKind, GroupResource
from steersman.work.offloading import offload, offload_if
from steersman.work.yielding import TimeSlice

_NAMESPACES: Final = GroupResource("", "namespaces")
_PODS: Final = GroupResource("", "pods")
_TEMPLATED: Final = {
    GroupResource("", "podtemplates"): lambda obj: obj.template,
    GroupResource("", "replicationcontrollers"): lambda obj: obj.spec.template,
    GroupResource("apps", "replicasets"): lambda obj: obj.spec.template,
    GroupResource("apps", "deployments"): lambda obj: obj.spec.template,
    GroupResource("apps", "statefulsets"): lambda obj: obj.spec.template,
    GroupResource("apps", "daemonsets"): lambda obj: obj.spec.template,
    GroupResource("batch", "jobs"): lambda obj: obj.spec.template,
    GroupResource("batch", "cronjobs"): lambda obj: obj.spec.job_template.spec.template,
}
"""Resources with a pod template, and functions that return it."""

Evaluate = Callable[[Attributes, Policy, ObjectMeta, PodSpec, list[Evaluation]], None]
"""Function that evaluates a pod and appends its evaluations. Raises StatusError 403."""

_PREFIX: Final = "pod-security.kubernetes.io/"
_ENFORCED: Final = f"{_PREFIX}enforce-policy"
_VIOLATIONS: Final = f"{_PREFIX}audit-violations"
_EXEMPT: Final = f"{_PREFIX}exempt"
_ERROR: Final = f"{_PREFIX}error"
_PRIVILEGED: Final = "privileged:latest"

MAX_PODS: Final = 3000
MAX_SECONDS: Final = 1.0
"""Limits on checking existing pods of a namespace when its labels change: number of pods, and seconds."""


class Configuration(Struct, frozen=True):
    """PodSecurityConfiguration (pod-security.admission.config.k8s.io/v1).

    `defaults` is the policy for missing labels. The other fields name exempt users, namespaces and runtime classes.
    """

    defaults: Policy = NO_POLICY
    usernames: frozenset[str] = frozenset()
    namespaces: frozenset[str] = frozenset()
    runtime_classes: frozenset[str] = frozenset()

    def policy_of(self, namespace: Any) -> Policy:
        """Return the policy of a namespace."""
        return policy_of(namespace.metadata.labels, self.defaults)


UNCONFIGURED: Final = Configuration()


class PodSecurity(Plugin):
    """Checks pods against the policy of their namespace.

    `find` returns the state of a namespace by name, None if it does not exist. `pods` returns the number of pods in a
    namespace, and an iterator over them; each has True if it is large and should be checked in a worker thread.
    """

    name = "PodSecurity"
    operations = frozenset({CREATE, UPDATE})
    resources = frozenset({_NAMESPACES, _PODS, *_TEMPLATED})
    subresources = frozenset({"", "ephemeralcontainers", "resize"})
    validates = True

    def __init__(
        self,
        find: Callable[[str], NamespaceState | None],
        pods: Callable[[str], tuple[int, AsyncIterator[tuple[Pod, bool]]]],
        metrics: PodSecurityMetrics,
        configuration: Configuration = UNCONFIGURED,
    ) -> None:
        self._find = find
        self._metrics = metrics
        self._pods = pods
        self._configuration = configuration
        self._exempts = bool(configuration.namespaces or configuration.usernames)

    async def validate(self, attributes: Attributes) -> None:
        """Refuse pods that violate the enforced level, and warn of pods and templates that violate the level of warn.

        Labels of namespaces must be valid. Raises StatusError 403, 422.
        """
        resource = attributes.action.resource
        if resource == "namespaces":
            await self._validate_namespace(attributes)
            return
        if self._exempts and self._is_exempt(attributes):
            return
        namespace = self._find(attributes.action.namespace)
        if namespace is None:
            self._metrics.count_error(attributes, fatal=True)
            missing = f"failed to lookup namespace {quote(attributes.action.namespace)}"
            if resource == "pods":
                raise internal(missing)
            attributes.annotate(_ERROR, missing)
            return
        policy: Policy | None = namespace.pod_security
        if policy is None:
            policy = namespace.pod_security = policy_of(namespace.labels, self._configuration.defaults)
        if resource != "pods":
            await self._validate_template(attributes, policy)
        elif policy.is_open:
            if attributes.audit is not None:
                attributes.annotate(_ENFORCED, _PRIVILEGED)
            self._metrics.count_privileged(attributes)
        else:
            await self._validate_pod(attributes, policy)

    def _is_exempt(self, attributes: Attributes) -> bool:
        """Return True if the user or the namespace of the request is exempt."""
        exempt = self._configuration
        by_namespace = attributes.action.namespace in exempt.namespaces
        if by_namespace or attributes.user.name in exempt.usernames:
            attributes.annotate(_EXEMPT, "namespace" if by_namespace else "user")
            self._metrics.count_exemption(attributes)
            return True
        return False

    def _is_exempt_class(self, attributes: Attributes, spec: PodSpec) -> bool:
        """Return True if the runtime class of the pod is exempt."""
        if spec.runtime_class_name not in self._configuration.runtime_classes:
            return False
        attributes.annotate(_EXEMPT, "runtimeClass")
        self._metrics.count_exemption(attributes)
        return True

    async def _validate_pod(self, attributes: Attributes, policy: Policy) -> None:
        pod: Pod = attributes.obj
        if attributes.operation == UPDATE and not _changes_images(pod.spec, attributes.old.spec):
            return
        if self._is_exempt_class(attributes, pod.spec):
            return
        await self._evaluate_and_count(_evaluate_pod, attributes, policy, pod.metadata, pod.spec)

    async def _validate_template(self, attributes: Attributes, policy: Policy) -> None:
        if policy.warn.level == policy.audit.level == PRIVILEGED and not policy.errors:
            return
        template = _TEMPLATED[attributes.action.group_resource](attributes.obj)
        if template is not None and not self._is_exempt_class(attributes, template.spec):
            await self._evaluate_and_count(_evaluate_template, attributes, policy, template.metadata, template.spec)

    async def _evaluate_and_count(
        self, evaluate: Evaluate, attributes: Attributes, policy: Policy, metadata: ObjectMeta, spec: PodSpec
    ) -> None:
        """Evaluate a pod with `evaluate`, and count the evaluations. Raises StatusError 403."""
        if policy.errors:
            self._metrics.count_error(attributes, fatal=False)
        evaluations: list[Evaluation] = []
        try:
            await offload(evaluate, attributes, policy, metadata, spec, evaluations)
        finally:
            for each in evaluations:
                self._metrics.count_evaluation(each, attributes)

    async def _validate_namespace(self, attributes: Attributes) -> None:
        new = self._configuration.policy_of(attributes.obj)
        old = self._configuration.policy_of(attributes.old) if attributes.operation == UPDATE else None
        if new.errors and (old is None or new.errors != old.errors):
            raise invalid(GroupKind(attributes.kind.group, attributes.kind.kind), attributes.name, new.errors)
        if old is not None:
            if new.enforce == old.enforce or new.enforce.level == PRIVILEGED:
                return
            if new.enforce.minor == old.enforce.minor and not stricter(new.enforce.level, old.enforce.level):
                return
        name = attributes.obj.metadata.name
        if name in self._configuration.namespaces:
            self._warn_of_exemption(attributes, new)
        elif old is not None:
            for text in await self._warnings_about_existing_pods(name, new.enforce):
                attributes.warn(text)

    def _warn_of_exemption(self, attributes: Attributes, policy: Policy) -> None:
        """Warn that the labels of an exempt namespace have no effect."""
        if policy.fully_privileged or policy.equivalent(self._configuration.defaults):
            return
        labels = attributes.obj.metadata.labels
        modes = (("enforce", policy.enforce), ("audit", policy.audit), ("warn", policy.warn))
        settings = (f"{mode}={level}" for mode, level in modes if level.level != PRIVILEGED and labelled(labels, mode))
        attributes.warn(
            f"namespace {quote(attributes.obj.metadata.name)} is exempt from Pod Security, "
            f"and the policy ({', '.join(settings)}) will be ignored"
        )

    async def _warnings_about_existing_pods(self, namespace: str, enforce: LevelVersion) -> list[str]:
        """Return warnings about existing pods that violate the level. One pod of each controller is checked first."""
        total, pods = self._pods(namespace)
        exempt = self._configuration.runtime_classes
        findings: dict[str, list[str]] = {}
        controllers: set[str] = set()
        others: list[tuple[Pod, bool]] = []
        checked = 0
        pace = _TimeLimit()

        async def check_pod(pod: Pod, *, is_large: bool) -> bool:
            """Check a pod. Return True if more pods may be checked."""
            nonlocal checked
            if found := await offload_if(is_large, violations, enforce, pod.metadata, pod.spec):
                findings.setdefault(reasons(found), []).append(pod.metadata.name)
            checked += 1
            return checked < MAX_PODS and await pace.has_time_left()

        async for pod, is_large in pods:
            if pod.spec.runtime_class_name in exempt:
                total -= 1
                if not await pace.has_time_left():
                    break
                continue
            controller = next((each.uid for each in pod.metadata.owner_references if each.controller), None)
            if controller in controllers:
                if len(others) < MAX_PODS:
                    others.append((pod, is_large))
                if not await pace.has_time_left():
                    break
                continue
            if controller is not None:
                controllers.add(controller)
            if not await check_pod(pod, is_large=is_large):
                break
        else:
            for pod, is_large in others:
                if not await check_pod(pod, is_large=is_large):
                    break
        warnings = []
        if checked < total:
            warnings.append(
                f"new PodSecurity enforce level only checked against the first {checked} of {total} existing pods"
            )
        if findings:
            text = f"existing pods in namespace {quote(namespace)} violate the new PodSecurity enforce level "
            warnings.append(text + quote(str(enforce)))
        return warnings + sorted(f"{_first_and_count(names)}: {found}" for found, names in findings.items())


class _TimeLimit:
    """Time limit of one second for work in time slices."""

    def __init__(self) -> None:
        self._time_slice = TimeSlice()
        self._end = time.monotonic() + MAX_SECONDS

    async def has_time_left(self) -> bool:
        """Yield to the event loop if the time slice is over. Return False once the second is over."""
        await self._time_slice.pause_if_over()
        return time.monotonic() < self._end


def _first_and_count(names: list[str]) -> str:
    """Return the first name, and the number of the others."""
    more = len(names) - 1
    if not more:
        return names[0]
    return f"{min(names)} (and {more} other pod{'' if more == 1 else 's'})"


def _evaluate_pod(
    attributes: Attributes, policy: Policy, metadata: ObjectMeta, spec: PodSpec, evaluations: list[Evaluation]
) -> None:
    """Evaluate a pod in all modes. Raises StatusError 403 if it violates the enforced level."""
    found = violations(policy.enforce, metadata, spec)
    evaluations.append((ENFORCE, policy.enforce, not found))
    if attributes.audit is not None:
        attributes.annotate(_ENFORCED, str(policy.enforce))
    again = found if policy.audit == policy.enforce else None
    _audit(attributes, policy, metadata, spec, evaluations, again)
    if found:
        why = f"violates PodSecurity {quote(str(policy.enforce))}: {details(found)}"
        raise forbidden(attributes.action.group_resource, attributes.name, why)
    if policy.warn != policy.enforce:
        _warn(attributes, policy.warn, metadata, spec, evaluations)


def _evaluate_template(
    attributes: Attributes, policy: Policy, metadata: ObjectMeta, spec: PodSpec, evaluations: list[Evaluation]
) -> None:
    """Evaluate a pod template in the modes audit and warn."""
    _audit(attributes, policy, metadata, spec, evaluations)
    if policy.warn.level != PRIVILEGED:
        _warn(attributes, policy.warn, metadata, spec, evaluations)


def _audit(
    attributes: Attributes,
    policy: Policy,
    metadata: ObjectMeta,
    spec: PodSpec,
    evaluations: list[Evaluation],
    found: list[Violation] | None = None,
) -> None:
    """Add an audit annotation if a pod violates the audited level; `found` are known violations of that level."""
    if policy.errors:
        attributes.annotate(_ERROR, f"Failed to parse policy: {aggregate(policy.errors)}")
    if found is None:
        found = violations(policy.audit, metadata, spec)
    if found:
        evaluations.append((AUDIT, policy.audit, False))
        attributes.annotate(_VIOLATIONS, f"would violate PodSecurity {quote(str(policy.audit))}: {details(found)}")


def _warn(
    attributes: Attributes, level: LevelVersion, metadata: ObjectMeta, spec: PodSpec, evaluations: list[Evaluation]
) -> None:
    found: list[Violation] = violations(level, metadata, spec)
    if found:
        evaluations.append((WARN, level, False))
        attributes.warn(f"would violate PodSecurity {quote(str(level))}: {details(found)}")


def _changes_images(new: PodSpec, old: PodSpec) -> bool:
    """Return True if an update adds containers or changes images. Other relevant fields are immutable."""
    for now, then in ((new.containers or [], old.containers or []), (new.init_containers, old.init_containers)):
        if [each.image for each in now] != [each.image for each in then]:
            return True
    images = {each.name: each.image for each in old.ephemeral_containers}
    return any(images.get(each.name) != each.image for each in new.ephemeral_containers)


def _make(dependencies: PluginDependencies, configuration: Configuration) -> PodSecurity:
    pods = dependencies.objects("", "pods")
    return PodSecurity(
        dependencies.namespace,
        lambda namespace: (pods.count(namespace), pods.iterate_cached(namespace)),
        PodSecurityMetrics(dependencies.registry),
        configuration,
    )


POD_SECURITY: Final = ConfiguredDeclaration(PodSecurity, on_by_default=True, make=_make)
