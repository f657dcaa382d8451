"""Cache of the checks that pod specs have passed, by the text of the spec.

Most pods are made from a template, and most updates leave the spec as it is. To encode a spec takes a twentieth of the
time of its validation.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Final, TypeVar

import msgspec

from steersman.api.core import v1 as core
from steersman.work.bounded_cache import BoundedSet

T = TypeVar("T")

_LONGEST: Final = 8 << 10
"""Bytes of the longest text that is cached. Clients choose the texts."""

_encode: Final = msgspec.json.Encoder().encode
_passed: Final[BoundedSet[tuple[Hashable, bytes]]] = BoundedSet(256)
"""Checks and the texts of specs in which they found nothing."""


def unless_passed(spec: core.PodSpec, check: Hashable, findings: Iterator[T]) -> Iterator[T]:
    """Yield the `findings` of a check, none if an equal spec had none before.

    `check` identifies the check and its options. Whether there are findings must depend on `check` and `spec` only.
    """
    key = check, _encode(spec)
    if _passed.has(key):
        return
    has_passed = True
    for finding in findings:
        has_passed = False
        yield finding
    if has_passed and len(key[1]) <= _LONGEST:
        _passed.keep(key)
