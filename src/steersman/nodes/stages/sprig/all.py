"""Supported functions of sprig, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from steersman.nodes.stages.go_template.builtins import Function
from steersman.nodes.stages.sprig.checks import CHECKS
from steersman.nodes.stages.sprig.collections import COLLECTIONS
from steersman.nodes.stages.sprig.numbers import NUMBERS
from steersman.nodes.stages.sprig.texts import TEXTS

SPRIG: Final[Mapping[str, Function]] = MappingProxyType({**TEXTS, **NUMBERS, **COLLECTIONS, **CHECKS})
"""Functions without randomness; the random ones come from `checks.by_chance`."""
