"""DaemonSets: one pod on every node, or on some."""

from __future__ import annotations

from typing import Final

from steersman.api.apps.v1 import DaemonSet, DaemonSetStatus, RollingUpdateDaemonSet
from steersman.machinery.errors import bad_request
from steersman.machinery.field import quote
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.registry.apps.columns import container_columns, label_selector_text, labels_text
from steersman.registry.core.pod_defaults import set_pod_template_defaults
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource, Subresource
from steersman.rest.strategy import StatusStrategy, Strategy

TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"
"""The annotation that counts the templates, what is left of a field of v1beta1."""


def set_defaults(daemon_set: DaemonSet) -> None:
    """A rolling update one pod at a time, ten old revisions."""
    strategy = daemon_set.spec.update_strategy
    strategy.type = strategy.type or "RollingUpdate"
    if strategy.type == "RollingUpdate":
        rolling = strategy.rolling_update = strategy.rolling_update or RollingUpdateDaemonSet()
        if rolling.max_unavailable is None:
            rolling.max_unavailable = 1
        if rolling.max_surge is None:
            rolling.max_surge = 0
    if daemon_set.spec.revision_history_limit is None:
        daemon_set.spec.revision_history_limit = 10
    set_pod_template_defaults(daemon_set.spec.template)


def template_generation(daemon_set: DaemonSet) -> int:
    """What the annotation counts, 0 without one. Raises StatusError (400) where it is not a number."""
    text = daemon_set.metadata.annotations.get(TEMPLATE_GENERATION, "0")
    try:
        return int(text)
    except ValueError:
        raise bad_request(f"strconv.ParseInt: parsing {quote(text)}: invalid syntax") from None


class DaemonSetStrategy(Strategy[DaemonSet]):
    def prepare_for_create(self, ctx: Context, daemon_set: DaemonSet) -> None:
        daemon_set.status = DaemonSetStatus()
        daemon_set.metadata.generation = 1
        daemon_set.metadata.annotations[TEMPLATE_GENERATION] = str(max(1, template_generation(daemon_set)))

    def prepare_for_update(self, ctx: Context, new: DaemonSet, old: DaemonSet) -> None:
        new.status = old.status
        template_changed = new.spec.template != old.spec.template
        new.metadata.annotations[TEMPLATE_GENERATION] = str(template_generation(old) + template_changed)
        if template_changed or new.spec != old.spec:
            new.metadata.generation = old.metadata.generation + 1


class DaemonSetStatusStrategy(StatusStrategy[DaemonSet]):
    pass


DAEMON_SETS = Resource(
    kind=DaemonSet,
    group="apps",
    plural="daemonsets",
    short_names=("ds",),
    categories=("all",),
    strategy=DaemonSetStrategy(),
    name_validator=name_is_dns_subdomain,
    default=set_defaults,
    columns=(
        Column("Desired", lambda d: d.status.desired_number_scheduled, type="integer"),
        Column("Current", lambda d: d.status.current_number_scheduled, type="integer"),
        Column("Ready", lambda d: d.status.number_ready, type="integer"),
        Column("Up-to-date", lambda d: d.status.updated_number_scheduled, type="integer"),
        Column("Available", lambda d: d.status.number_available, type="integer"),
        Column("Node Selector", lambda d: labels_text(d.spec.template.spec.node_selector)),
        AGE,
        *container_columns(lambda d: d.spec.template),
        Column("Selector", lambda d: label_selector_text(d.spec.selector), priority=1),
    ),
    subresources=(Subresource(name="status", strategy=DaemonSetStatusStrategy()),),
    storage_version_hash="dd7pWHUlMKQ=",
)
