"""Deployments: a number of like pods, replaced step by step when their template changes."""

from __future__ import annotations

from collections.abc import Iterator

from steersman.api.apps.v1 import Deployment, DeploymentStatus, RollingUpdateDeployment
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.registry.apps.columns import container_columns
from steersman.registry.apps.warnings import name_warnings
from steersman.registry.core.pod_defaults import set_pod_template_defaults
from steersman.registry.scale import SCALE
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource, Subresource
from steersman.rest.strategy import StatusStrategy, Strategy


def set_defaults(deployment: Deployment) -> None:
    """One replica, a rolling update by quarters, ten old replica sets, ten minutes to make progress."""
    spec = deployment.spec
    if spec.replicas is None:
        spec.replicas = 1
    strategy = spec.strategy
    strategy.type = strategy.type or "RollingUpdate"
    if strategy.type == "RollingUpdate":
        rolling = strategy.rolling_update = strategy.rolling_update or RollingUpdateDeployment()
        if rolling.max_unavailable is None:
            rolling.max_unavailable = "25%"
        if rolling.max_surge is None:
            rolling.max_surge = "25%"
    if spec.revision_history_limit is None:
        spec.revision_history_limit = 10
    if spec.progress_deadline_seconds is None:
        spec.progress_deadline_seconds = 600
    set_pod_template_defaults(spec.template)


class DeploymentStrategy(Strategy[Deployment]):
    def prepare_for_create(self, ctx: Context, deployment: Deployment) -> None:
        deployment.status = DeploymentStatus()
        deployment.metadata.generation = 1

    def warnings_on_create(self, ctx: Context, deployment: Deployment) -> Iterator[str]:
        yield from name_warnings(deployment.metadata.name)

    def prepare_for_update(self, ctx: Context, new: Deployment, old: Deployment) -> None:
        new.status = old.status
        # Annotations count too: they are copied to the replica sets.
        if new.spec != old.spec or new.metadata.annotations != old.metadata.annotations:
            new.metadata.generation = old.metadata.generation + 1


class DeploymentStatusStrategy(StatusStrategy[Deployment]):
    def prepare_for_update(self, ctx: Context, new: Deployment, old: Deployment) -> None:
        new.spec = old.spec
        new.metadata.labels = old.metadata.labels


def selector(deployment: Deployment) -> str:
    """Which pods are its own; unlike other workloads' it is empty where nothing is selected."""
    try:
        return str(from_label_selector(deployment.spec.selector))
    except SelectorError:
        return "<invalid>"


DEPLOYMENTS = Resource(
    kind=Deployment,
    group="apps",
    plural="deployments",
    short_names=("deploy",),
    categories=("all",),
    strategy=DeploymentStrategy(),
    name_validator=name_is_dns_subdomain,
    default=set_defaults,
    columns=(
        Column(
            "Ready",
            lambda d: f"{d.status.ready_replicas}/{d.spec.replicas or 0}",
            description="Number of the pod with ready state",
        ),
        Column("Up-to-date", lambda d: d.status.updated_replicas, type="integer"),
        Column("Available", lambda d: d.status.available_replicas, type="integer"),
        AGE,
        *container_columns(lambda d: d.spec.template),
        Column("Selector", selector, priority=1),
    ),
    subresources=(Subresource(name="status", strategy=DeploymentStatusStrategy()), SCALE),
    storage_version_hash="8aSe+NMegvE=",
)
