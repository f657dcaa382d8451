"""How objects get from one version of a kind to another: versions meet in a hub, the one that is stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec


class Conversion(NamedTuple):
    """A way from one version of a kind to another: `convert` makes a new object, its apiVersion and kind left to the
    caller, and may share parts with the old one but does not change it."""

    source: type[msgspec.Struct]
    target: type[msgspec.Struct]
    convert: Callable[[Any], Any]
