"""Costs of Kubernetes' functions, both estimated and actual (apiserver `cel/library` CostEstimator).

Estimates decide which expressions are accepted, so they are exactly upstream's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from steersman.cel.ast import Literal
from steersman.cel.declared import DeclaredType
from steersman.cel.library.addresses import CIDR, IP
from steersman.cel.library.formats import FORMAT, Format
from steersman.cel.library.quantities import QUANTITY
from steersman.cel.library.semvers import SEMVER
from steersman.cel.library.urls import URL
from steersman.cel.runtime_cost import actual_size, matching_cost, scaled_size
from steersman.cel.sizes import (
    LIST_COST,
    NOTHING,
    ONE,
    REGEX_FACTOR,
    STRING_FACTOR,
    UNBOUNDED,
    CallEstimate,
    CostNode,
    Estimator,
    Range,
    fixed,
    size_of,
)
from steersman.cel.types import Kind
from steersman.cel.values import Extension, Optional, entries, is_map
from steersman.cel.work import spend

_PATTERN_SIZE: Final = 128
"""The assumed length of the regular expression of a format."""
_ADDRESS: Final = Range(4, 16)
"""The bytes of an address."""

_NOMINAL: Final = frozenset(
    {
        "format.named",
        "masked",
        "prefixLength",
        "family",
        "isUnspecified",
        "isLoopback",
        "isLinkLocalMulticast",
        "isLinkLocalUnicast",
        "isGlobalUnicast",
        "sign",
        "asInteger",
        "isInteger",
        "asApproximateFloat",
        "isGreaterThan",
        "isLessThan",
        "compareTo",
        "add",
        "sub",
        "major",
        "minor",
        "patch",
        "getScheme",
        "getHostname",
        "getHost",
        "getPort",
        "getEscapedPath",
        "getQuery",
        "serviceAccount",
        "path",
        "group",
        "resource",
        "subresource",
        "namespace",
        "name",
        "allowed",
        "reason",
        "error",
        "errored",
    }
)
"""Functions that cost 1."""
_PARSING: Final = frozenset(["cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity", "semver", "isSemver"])
"""Functions that scan their first argument once."""
_TRAVERSING: Final = frozenset(["isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"])
"""Functions that visit every element of a list."""
_SELECTING: Final = frozenset(["fieldSelector", "labelSelector"])
"""Functions that parse a selector."""
CHECK_COST: Final = 350_000
"""The cost of a check by the authorizer, of which one evaluation may make two."""
_REQUIREMENT_COST: Final = 50
"""The cost of a requirement of a selector and its list of values. A text may have one for every two characters."""
_EDITING: Final = frozenset(["lowerAscii", "upperAscii", "substring", "trim"])
"""Functions whose result is a string that is not longer than their target."""

Estimate = Callable[[Estimator, str, CostNode | None, list[CostNode]], CallEstimate | None]


def _nominal(estimator: Estimator, overload: str, target: CostNode | None, args: list[CostNode]) -> CallEstimate:
    return CallEstimate(ONE)


def _parsing(estimator: Estimator, overload: str, target: CostNode | None, args: list[CostNode]) -> CallEstimate | None:
    if overload == "cidr_ip":
        return CallEstimate(ONE)
    return CallEstimate(size_of(estimator, args[0]).scaled(STRING_FACTOR)) if args else None


def _element(target: CostNode) -> CostNode | None:
    """Return the node that represents all elements of a list."""
    if not target.type.params:
        return None
    path = (*target.path, "@items") if target.path else ()
    return CostNode(path, target.type.params[0], None, None)


def _traversing(
    estimator: Estimator, overload: str, target: CostNode | None, args: list[CostNode]
) -> CallEstimate | None:
    if target is None:
        return None
    element = _element(target)
    if element is None:
        return CallEstimate(size_of(estimator, target).scaled(STRING_FACTOR))
    cost = ONE
    if element.type.kind in (Kind.STRING, Kind.BYTES):
        cost = cost.plus(size_of(estimator, element).scaled(STRING_FACTOR))
    return CallEstimate(size_of(estimator, target).times(cost))


def _url(estimator: Estimator, overload: str, target: CostNode | None, args: list[CostNode]) -> CallEstimate | None:
    if len(args) != 1:
        return None
    size = size_of(estimator, args[0])
    return CallEstimate(size.scaled(STRING_FACTOR), size)


def _editing(estimator: Estimator, overload: str, target: CostNode | None, args: list[CostNode]) -> CallEstimate | None:
    if target is None:
        return None
    size = size_of(estimator, target)
    return CallEstimate(size.scaled(STRING_FACTOR), size)


def _replace(estimator: Estimator, overload: str, target: CostNode | None, args: list[CostNode]) -> CallEstimate | None:
    if target is None or len(args) < 2:
        return None
    size, old, new = size_of(estimator, target), size_of(estimator, args[0]), size_of(estimator, args[1])
    # The longest result: an empty text is found around every character, a short one as often as it fits.
    most, kept = 0, 0
    if old.min == 0:
        most, kept = min(size.max + 1, UNBOUNDED), size.max
    elif new.max <= old.min:
        kept = size.max
    else:
        most = _times_in(size.max, old.min)
    # The shortest result, likewise.
    least, kept_least = 0, 0
    if old.max == 0:
        least, kept_least = min(size.min + 1, UNBOUNDED), size.min
    elif old.max <= new.min:
        kept_least = size.min
    else:
        least = _times_in(size.min, old.max)
    result = Range(least, most).times(new).plus(Range(kept_least, kept))
    return CallEstimate(size.scaled(2 * STRING_FACTOR), result)


def _times_in(size: int, part: int) -> int:
    """Return how often a part may occur in a text, computed with doubles."""
    return min(math.ceil(float(size) / float(part)), UNBOUNDED)


def _split(estimator: Estimator, overload: str, target: CostNode | None, args: list[CostNode]) -> CallEstimate | None:
    if target is None:
        return None
    size = size_of(estimator, target)
    most = size.max
    limit = args[1].expr if len(args) > 1 else None
    if isinstance(limit, Literal) and type(limit.value) is int:
        # A negative limit means none, and is taken as the large number with the same bits.
        most = limit.value & UNBOUNDED
    return CallEstimate(size.scaled(2 * STRING_FACTOR), Range(0, most))


def _join(estimator: Estimator, overload: str, target: CostNode | None, args: list[CostNode]) -> CallEstimate | None:
    if target is None:
        return None
    count = size_of(estimator, target)
    element = _element(target)
    size = NOTHING if element is None else count.times(size_of(estimator, element))
    if args:
        separators = Range(max(count.min - 1, 0), max(count.max - 1, 0))
        size = size.plus(size_of(estimator, args[0]).times(separators))
    return CallEstimate(size.scaled(STRING_FACTOR), size)


def _find(estimator: Estimator, overload: str, target: CostNode | None, args: list[CostNode]) -> CallEstimate | None:
    if target is None or not args:
        return None
    size = size_of(estimator, target)
    cost = size.plus(ONE).scaled(STRING_FACTOR).times(size_of(estimator, args[0]).scaled(REGEX_FACTOR))
    return CallEstimate(cost, Range(0, size.max))


def _check(estimator: Estimator, overload: str, target: CostNode | None, args: list[CostNode]) -> CallEstimate:
    return CallEstimate(fixed(CHECK_COST))


def _selector_cost(length: Range) -> Range:
    return length.scaled(0.5).scaled(_REQUIREMENT_COST).plus(length.scaled(STRING_FACTOR)).plus(fixed(LIST_COST))


def _selecting(
    estimator: Estimator, overload: str, target: CostNode | None, args: list[CostNode]
) -> CallEstimate | None:
    return CallEstimate(_selector_cost(size_of(estimator, args[0]))) if len(args) == 1 else None


def _is_canonical(
    estimator: Estimator, overload: str, target: CostNode | None, args: list[CostNode]
) -> CallEstimate | None:
    return CallEstimate(size_of(estimator, args[0]).scaled(2 * STRING_FACTOR)) if args else None


def _contains_ip(
    estimator: Estimator, overload: str, target: CostNode | None, args: list[CostNode]
) -> CallEstimate | None:
    cost = _ADDRESS.plus(_ADDRESS).scaled(STRING_FACTOR)
    if overload == "cidr_contains_ip_string":
        cost = cost.plus(size_of(estimator, args[0]).scaled(STRING_FACTOR))
    return CallEstimate(cost)


def _contains_cidr(
    estimator: Estimator, overload: str, target: CostNode | None, args: list[CostNode]
) -> CallEstimate | None:
    cost = _ADDRESS.plus(_ADDRESS).scaled(STRING_FACTOR).plus(_ADDRESS.scaled(STRING_FACTOR)).plus(ONE)
    if overload == "cidr_contains_cidr_string":
        cost = cost.plus(size_of(estimator, args[0]).scaled(STRING_FACTOR))
    return CallEstimate(cost)


def _validate(
    estimator: Estimator, overload: str, target: CostNode | None, args: list[CostNode]
) -> CallEstimate | None:
    if not args:
        return None
    return CallEstimate(size_of(estimator, args[0]).scaled(STRING_FACTOR).scaled(_PATTERN_SIZE * REGEX_FACTOR))


_CHEAP_TO_COMPARE: Final = (IP, CIDR, QUANTITY, SEMVER)
_MAX_FORMAT_NAME: Final = 64


def _equals(estimator: Estimator, overload: str, target: CostNode | None, args: list[CostNode]) -> CallEstimate | None:
    if len(args) != 2 or args[0].type != args[1].type:
        return None
    type = args[0].type
    if type in _CHEAP_TO_COMPARE:
        return CallEstimate(ONE)
    if type == FORMAT:
        return CallEstimate(Range(1, _MAX_FORMAT_NAME).scaled(STRING_FACTOR))
    if type == URL:
        size = ONE if args[1].computed_size is None else args[1].computed_size
        return CallEstimate(Range(1, size.max).scaled(STRING_FACTOR))
    return None


_ESTIMATES: Final[dict[str, Estimate]] = {
    **dict.fromkeys(_NOMINAL, _nominal),
    **dict.fromkeys(_PARSING, _parsing),
    **dict.fromkeys(_TRAVERSING, _traversing),
    **dict.fromkeys(_EDITING, _editing),
    "url": _url,
    "jsonpatch.escapeKey": _url,
    "replace": _replace,
    "split": _split,
    "join": _join,
    "find": _find,
    "findAll": _find,
    "check": _check,
    **dict.fromkeys(_SELECTING, _selecting),
    "ip.isCanonical": _is_canonical,
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "validate": _validate,
    "_==_": _equals,
}


def declared_size(root: DeclaredType | None, path: tuple[str, ...]) -> Range | None:
    """Return the declared size at a path below a variable."""
    found = None if root is None else root.at(path)
    return None if found is None else Range(0, found.max_elements)


class KubernetesEstimator:
    """An estimator with the costs of Kubernetes' functions. `size` returns the size at a path."""

    def __init__(self, size: Callable[[tuple[str, ...]], Range | None]) -> None:
        self._size: Final = size

    def size(self, path: tuple[str, ...]) -> Range | None:
        """Return the size at a path."""
        return self._size(path)

    def call(self, function: str, overload: str, target: CostNode | None, args: list[CostNode]) -> CallEstimate | None:
        """Return the cost of a call."""
        estimate = _ESTIMATES.get(function)
        return None if estimate is None else estimate(self, overload, target, args)


def _traversal(value: Any) -> int:
    """Return the cost of visiting a value and everything in it."""
    if isinstance(value, str):
        return int(len(value.encode()) * STRING_FACTOR)
    if isinstance(value, bytes):
        return int(len(value) * STRING_FACTOR)
    if isinstance(value, list | tuple):
        spend(len(value))
        return sum(map(_traversal, value))
    if is_map(value):
        spend(len(value))
        return sum(_traversal(key) + _traversal(item) for key, item in entries(value))
    return 1


def _size(value: Any) -> int:
    # In contrast to the language's rules, these do not look into optional values.
    return 1 if isinstance(value, Optional) else actual_size(value)


def kubernetes_costs(function: str, overload: str, args: list[Any], result: Any) -> int | None:
    """Return the cost of a call of a function of Kubernetes, None to use the language's rules."""
    if function in _NOMINAL or overload == "cidr_ip":
        return 1
    if function in _PARSING or function in _EDITING or function in ("url", "jsonpatch.escapeKey"):
        return scaled_size(args[0])
    if function in _TRAVERSING:
        return _traversal(args[0])
    match function:
        case "check":
            return CHECK_COST
        case "fieldSelector" | "labelSelector":
            return _selector_cost(fixed(actual_size(args[1]))).max
        case "replace" | "split" | "ip.isCanonical":
            return math.ceil(_size(args[0]) * 2 * STRING_FACTOR)
        case "join":
            return math.ceil(_size(result) * 2 * STRING_FACTOR)
        case "find" | "findAll":
            return matching_cost(args[0], args[1])
        case "containsIP":
            cost = math.ceil(_size(args[0]) * 2 * STRING_FACTOR)
            return cost + (scaled_size(args[1]) if overload == "cidr_contains_ip_string" else 0)
        case "containsCIDR":
            cost = math.ceil(_size(args[0]) * 2 * STRING_FACTOR) + scaled_size(args[0]) + 1
            return cost + (scaled_size(args[1]) if overload == "cidr_contains_cidr_string" else 0)
        case "validate" if isinstance(args[0], Format):
            pattern = math.ceil(args[0].pattern_size * REGEX_FACTOR)
            return math.ceil((1.0 + _size(args[1])) * STRING_FACTOR) * pattern
        case "_==_" if isinstance(args[0], Extension):
            return 1
    return None
