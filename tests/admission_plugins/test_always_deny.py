"""Tests of AlwaysDeny."""

from __future__ import annotations

from steersman.admission.interface import CONNECT, CREATE, DELETE, UPDATE, Chain
from steersman.admission_plugins.always_deny import AlwaysDeny
from steersman.api.core.v1 import ConfigMap
from steersman.api.meta.v1 import ObjectMeta
from steersman.registry.core.configmaps import CONFIG_MAPS
from tests.admission_plugins.writes import refusal, write_of


async def test_every_operation_is_refused_before_and_after_validation() -> None:
    chain, note = Chain((AlwaysDeny(),)), ConfigMap(metadata=ObjectMeta(name="a", namespace="ns"))
    for operation in (CREATE, UPDATE, DELETE, CONNECT):
        for ask in (chain.admit, chain.validate):
            assert await refusal(ask(write_of(CONFIG_MAPS, note, operation))) == (
                'configmaps "a" is forbidden: admission control is denying all modifications'
            )
