"""batch: its resources and versions."""

from __future__ import annotations

from typing import Final

from steersman.registry.api_group import APIGroup, Version
from steersman.registry.batch.cronjobs import CRON_JOBS
from steersman.registry.batch.jobs import JOBS

BATCH: Final = APIGroup(
    name="batch",
    priority=17400,
    versions=(Version("v1"),),
    empty_versions=("v1beta1",),
    resources=(
        CRON_JOBS,
        JOBS,
    ),
)
