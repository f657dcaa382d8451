"""What several kinds of apps check alike: selectors over templates, numbers or percentages, counters in status."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from steersman.api.apps.v1 import RollingUpdateStatefulSetStrategy
from steersman.api.core.v1 import PodTemplateSpec
from steersman.api.meta.v1 import LabelSelector
from steersman.machinery.field import FieldError, Path, Verbatim, forbidden, invalid, not_supported, required
from steersman.machinery.go_numbers import atoi
from steersman.machinery.labels import Selector, SelectorError, from_label_selector
from steersman.machinery.serializer import encode_in_order
from steersman.machinery.validation.formats import is_valid_percent
from steersman.machinery.validation.object_meta import validate_nonnegative
from steersman.machinery.validation.selectors import validate_label_selector
from steersman.registry.core.pod_options import PodValidationOptions
from steersman.registry.core.pod_validation import validate_pod_template_spec

MORE_THAN_REPLICAS: Final = "cannot be greater than status.replicas"


def shown_strategy(strategy: Any) -> Verbatim:
    """An update strategy as the reference prints it."""
    rolling = strategy.rolling_update
    shown = None
    if isinstance(rolling, RollingUpdateStatefulSetStrategy):
        shown = {"Partition": rolling.partition or 0, "MaxUnavailable": rolling.max_unavailable}
    elif rolling is not None:
        unavailable, surge = rolling.max_unavailable, rolling.max_surge
        shown = {
            "MaxUnavailable": 0 if unavailable is None else unavailable,
            "MaxSurge": 0 if surge is None else surge,
        }
    return Verbatim(encode_in_order({"Type": strategy.type, "RollingUpdate": shown}).decode())


def validate_selector(selector: LabelSelector | None, path: Path, kind: str) -> Iterator[FieldError]:
    """A selector that must be there and select something; `kind` is for the message."""
    if selector is None:
        yield required(path)
        return
    yield from validate_label_selector(selector, path)
    if not selector.match_labels and not selector.match_expressions:
        yield invalid(path, selector, f"empty selector is invalid for {kind}")


def parse_selector(selector: LabelSelector | None) -> Selector | None:
    """The selector ready to use, None if it cannot be read."""
    try:
        return from_label_selector(selector)
    except SelectorError:
        return None


def validate_selected(selector: Selector, template: PodTemplateSpec, path: Path) -> Iterator[FieldError]:
    """A template's pods must be found by the selector; `path` is the template's."""
    labels = template.metadata.labels
    if not selector.empty and not selector.matches(labels):
        detail = "`selector` does not match template `labels`"
        yield invalid(path.child("metadata", "labels"), labels or None, detail)


def validate_replica_set_template(
    template: PodTemplateSpec, selector: Selector, path: Path, options: PodValidationOptions
) -> Iterator[FieldError]:
    """A template of pods that always run."""
    yield from validate_selected(selector, template, path)
    yield from validate_pod_template_spec(template, path, options)
    yield from validate_always_running(template, path, "ReplicaSet")


def validate_always_running(template: PodTemplateSpec, path: Path, kind: str) -> Iterator[FieldError]:
    """Pods that are replaced when they end may not end by themselves."""
    if template.spec.restart_policy != "Always":
        yield not_supported(path.child("spec", "restartPolicy"), template.spec.restart_policy, ["Always"])
    if template.spec.active_deadline_seconds is not None:
        detail = f"activeDeadlineSeconds in {kind} is not Supported"
        yield forbidden(path.child("spec", "activeDeadlineSeconds"), detail)


def validate_int_or_percent(value: int | str | None, path: Path) -> Iterator[FieldError]:
    """A number of pods or a share of them."""
    if isinstance(value, str):
        for message in is_valid_percent(value):
            yield invalid(path, value, message)
    else:
        yield from validate_nonnegative(value or 0, path)


def _percent(value: int | str | None) -> int | None:
    if not isinstance(value, str) or is_valid_percent(value):
        return None
    return atoi(value[:-1])


def int_or_percent_value(value: int | str | None) -> int:
    """The number in either form, 0 if it cannot be read."""
    percent = _percent(value)
    if percent is not None:
        return percent
    if isinstance(value, str):
        return atoi(value)
    return value or 0


def validate_at_most_all(value: int | str | None, path: Path) -> Iterator[FieldError]:
    """No more than 100%."""
    percent = _percent(value)
    if percent is not None and percent > 100:
        yield invalid(path, value, "must not be greater than 100%")


def validate_counters(status: Any, fields: Iterable[tuple[str, str]], path: Path) -> Iterator[FieldError]:
    """Numbers that cannot be negative; `fields` are pairs of attribute and JSON name, those not set are left out."""
    for attribute, name in fields:
        value = getattr(status, attribute)
        if value is not None:
            yield from validate_nonnegative(value, path / name)


def validate_at_most_replicas(status: Any, fields: Iterable[tuple[str, str]], path: Path) -> Iterator[FieldError]:
    """Counts of some of the replicas."""
    for attribute, name in fields:
        value = getattr(status, attribute)
        if value > status.replicas:
            yield invalid(path / name, value, MORE_THAN_REPLICAS)


def validate_available(status: Any, path: Path, ready: str = "readyReplicas") -> Iterator[FieldError]:
    """What is available is ready; `ready` is how the message calls that."""
    if status.available_replicas > status.ready_replicas:
        detail = f"cannot be greater than {ready}"
        yield invalid(path / "availableReplicas", status.available_replicas, detail)


def validate_collision_count(new: Any, old: Any, path: Path) -> Iterator[FieldError]:
    """The count of hash collisions only grows."""
    if old.collision_count is None:
        return
    if new.collision_count is None or new.collision_count < old.collision_count:
        yield invalid(path / "collisionCount", new.collision_count or 0, "cannot be decremented")
