"""Pod failure policies and success policies of Jobs."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from steersman.api.batch.v1 import PodFailurePolicy, PodFailurePolicyOnExitCodesRequirement, SuccessPolicy
from steersman.api.core.v1 import ContainerStatus, Pod
from steersman.controllers.job import intervals
from steersman.controllers.job.intervals import Indexes
from steersman.work.yielding import TimeSlice


class Verdict(Struct, frozen=True):
    """Result of a pod failure policy: the action of the first matching rule, "" if no rule matches."""

    action: str = ""
    message: str = ""
    """Reason why the whole Job fails, for the action FailJob."""

    @property
    def counts(self) -> bool:
        """Return True if the failure counts against the back-off limit."""
        return self.action != "Ignore"


def evaluate_failure(policy: PodFailurePolicy | None, pod: Pod) -> Verdict:
    """Return the verdict of the policy on a failed pod."""
    for index, rule in enumerate(policy.rules or () if policy else ()):
        of = f"matching {rule.action} rule at index {index}"
        pod_name = f"{pod.metadata.namespace}/{pod.metadata.name}"
        if rule.on_exit_codes is not None:
            status = _find_container(pod, rule.on_exit_codes)
            if status is not None:
                code = status.state.terminated.exit_code if status.state.terminated else 0
                return Verdict(
                    rule.action, f"Container {status.name} for pod {pod_name} failed with exit code {code} {of}"
                )
        else:
            requirement = {(each.type, each.status) for each in rule.on_pod_conditions}
            for condition in pod.status.conditions:
                if (condition.type, condition.status) in requirement:
                    return Verdict(rule.action, f"Pod {pod_name} has condition {condition.type} {of}")
    return Verdict()


def _find_container(pod: Pod, requirement: PodFailurePolicyOnExitCodesRequirement) -> ContainerStatus | None:
    return _first_matching(pod.status.container_statuses, requirement) or _first_matching(
        pod.status.init_container_statuses, requirement
    )


def _first_matching(
    statuses: Iterable[ContainerStatus], requirement: PodFailurePolicyOnExitCodesRequirement
) -> ContainerStatus | None:
    for each in statuses:
        ended = each.state.terminated
        if ended is None or ended.exit_code == 0 or requirement.container_name not in (None, each.name):
            continue
        is_among = ended.exit_code in (requirement.values or ())
        if (requirement.operator == "In" and is_among) or (requirement.operator == "NotIn" and not is_among):
            return each
    return None


async def met_success_rule(policy: SuccessPolicy | None, completions: int, succeeded: Indexes) -> str | None:
    """Return a text about the first rule that the succeeded indexes meet; None if no rule is met."""
    if policy is None or not len(succeeded):
        return None
    time_slice = TimeSlice()
    for index, rule in enumerate(policy.rules or ()):
        await time_slice.pause_if_over()
        count = rule.succeeded_count
        if rule.succeeded_indexes is not None:
            least = rule.succeeded_indexes.count(",") + 1
            if len(succeeded) < (least if count is None else min(count, least)):
                continue  # avoids parsing a list of tens of thousands of indexes each time a pod ends
            required = intervals.parse(rule.succeeded_indexes, completions)
            if not len(required):
                continue
            overlap = required.overlap(succeeded)
            is_met = overlap == len(required) or (count is not None and overlap >= count)
        else:
            is_met = count is not None and len(succeeded) >= count
        if is_met:
            return f"Matched rules at index {index}"
    return None
