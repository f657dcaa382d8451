"""A conversion between two versions of a kind. The stored version is the hub between all others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec


class Conversion(NamedTuple):
    """A conversion from one version of a kind to another.

    `convert` returns a new object, whose apiVersion and kind the caller sets. It may share parts with the old object,
    which it does not change.
    """

    source: type[msgspec.Struct]
    target: type[msgspec.Struct]
    convert: Callable[[Any], Any]
