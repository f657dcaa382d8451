"""Supported functions of sprig, by name.

Not supported are functions that read the environment or the network, and those that compute keys for seconds:
certificates, private keys, bcrypt and scrypt.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from steersman.machinery.go.strings import to_upper
from steersman.nodes.stages.go_template.builtins import Function, text
from steersman.nodes.stages.go_template.values import TemplateError, Value
from steersman.nodes.stages.sprig.checks import CHECKS, compiled
from steersman.nodes.stages.sprig.collections import COLLECTIONS
from steersman.nodes.stages.sprig.moments import MOMENTS
from steersman.nodes.stages.sprig.numbers import NUMBERS
from steersman.nodes.stages.sprig.places import PLACES
from steersman.nodes.stages.sprig.texts import TEXTS

_PLAIN: Final[Mapping[str, Function]] = {**TEXTS, **NUMBERS, **COLLECTIONS, **CHECKS, **MOMENTS, **PLACES}
_STRICT: Final = (
    *("append", "chunk", "compact", "deepCopy", "first", "fromJson", "has", "initial", "last", "merge"),
    *("mergeOverwrite", "prepend", "push", "regexFind", "regexFindAll", "regexMatch", "regexReplaceAll"),
    *("regexReplaceAllLiteral", "regexSplit", "rest", "reverse", "slice", "toJson", "toPrettyJson", "toRawJson"),
    *("uniq", "without"),
)
"""Functions that also have a name with `must`, under which no error is hidden."""


def _must_match(pattern: Value, value: Value) -> Value:
    compiled(pattern)
    return _PLAIN["regexMatch"](pattern, value)


def _must_be_json(value: Value) -> Value:
    try:
        return json.loads(text(value, "mustFromJson"), parse_int=float)
    except (ValueError, RecursionError) as error:
        raise TemplateError(f"mustFromJson: {error}") from None


SPRIG: Final[Mapping[str, Function]] = MappingProxyType(
    {
        **_PLAIN,
        **{f"must{to_upper(name[0])}{name[1:]}": _PLAIN[name] for name in _STRICT},
        "mustFromJson": _must_be_json,
        "mustRegexMatch": _must_match,
    }
)
"""Functions without randomness; the random ones come from `checks.by_chance`."""
