"""Update strategies of workloads in messages."""

from __future__ import annotations

from typing import Any

from steersman.api.apps.v1 import RollingUpdateStatefulSetStrategy
from steersman.machinery.codec.serializer import encode_in_order
from steersman.machinery.errors.field import Verbatim


def strategy_message_form(strategy: Any) -> Verbatim:
    """Return an update strategy in the form that upstream prints."""
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
