"""Cache of the merges of applied specs into live ones, by the texts of both.

Most applies repeat a configuration that is in the object already, apart from defaults. Merging and comparing are done
member by member, so that of the spec can be added to those of all other members.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

from steersman.work.bounded_cache import BoundedCache

from .comparison import Comparison, Same, compare
from .field_set import FieldSet, in_order
from .merging import merge
from .schema import Atom, MapType
from .typed_value import field_set

Plain = dict[str, Any]

SPEC: Final = "spec"
_SHORTEST: Final = 256
"""Bytes of both texts below which merging costs no more."""
_SIZE_OF_PLAIN: Final = 12
"""Bytes of memory that plain data takes for each byte of its text, at most."""

_encode: Final = msgspec.json.Encoder().encode

Texts = tuple[bytes, bytes]
"""The text of the live spec and that of the applied one."""


class SpecMerge(NamedTuple):
    """The results for the spec alone, as if an object had no other member. They must not be changed."""

    merged: Plain
    fields: FieldSet
    """The fields that the applied spec sets."""
    comparison: Comparison
    """The differences between the live spec and the merged one."""


SpecMerges = BoundedCache[Texts, SpecMerge]


class Merging(NamedTuple):
    """A configuration, the live object that it is merged into, and the merge of their specs if that is cached."""

    live: Plain
    patch: Plain
    of_spec: SpecMerge | None = None

    def merged(self, root: Atom) -> tuple[Plain, FieldSet]:
        """Return the merged object and the fields that the configuration sets. Raises TypedError."""
        live, patch, of_spec = self
        if of_spec is None:
            return merge(root, live, patch), field_set(root, patch)
        rest = without_spec(patch)
        merged = {**merge(root, without_spec(live), rest), SPEC: of_spec.merged}
        return merged, joined(field_set(root, rest), of_spec.fields)


def texts_of(root: Atom, live: Plain, patch: Plain) -> Texts | None:
    """Return the texts of both specs; None if there are none to merge, if they are short or cannot be encoded."""
    kind = root.map
    child = None if kind is None or kind.atomic else kind.named.get(SPEC)
    if child is None or child.leaf or child.kind.__class__ is not MapType:
        return None
    before, applied = live.get(SPEC), patch.get(SPEC)
    if before.__class__ is not dict or applied.__class__ is not dict:
        return None
    try:
        texts = _encode(before), _encode(applied)
    except (TypeError, ValueError, RecursionError):
        return None
    return texts if len(texts[0]) + len(texts[1]) >= _SHORTEST else None


def merge_specs(root: Atom, live: Plain, patch: Plain, is_same: Same) -> SpecMerge:
    """Merge the spec of a configuration into that of the live object. Raises TypedError."""
    before, applied = {SPEC: live[SPEC]}, {SPEC: patch[SPEC]}
    merged = merge(root, before, applied)
    return SpecMerge(merged[SPEC], field_set(root, applied), compare(root, before, merged, is_same))


def weight_of_merge(texts: Texts) -> int:
    """Return an upper estimate of the bytes of memory of a cached merge."""
    return _SIZE_OF_PLAIN * sum(map(len, texts))


def without_spec(obj: Plain) -> Plain:
    """Return an object without its spec."""
    rest = dict(obj)
    rest.pop(SPEC, None)
    return rest


def joined(rest: FieldSet, of_spec: FieldSet) -> FieldSet:
    """Return the fields of the spec and those of all other members."""
    return in_order({**rest, **of_spec}) if of_spec else rest
