"""The functions of sprig that there are, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from steersman.machinery.go.sprig.checks import CHECKS
from steersman.machinery.go.sprig.collections import COLLECTIONS
from steersman.machinery.go.sprig.numbers import NUMBERS
from steersman.machinery.go.sprig.texts import TEXTS
from steersman.machinery.go.template.builtins import Function

SPRIG: Final[Mapping[str, Function]] = MappingProxyType({**TEXTS, **NUMBERS, **COLLECTIONS, **CHECKS})
"""Those without chance, which come from `checks.by_chance`."""
