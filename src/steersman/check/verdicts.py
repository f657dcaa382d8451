"""Findings from the server's errors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from steersman.check.finding import Rule
from steersman.machinery.errors.status import StatusError
from steersman.work.patterns import late_pattern

_STRICT: Final = late_pattern(r'(?:unknown|duplicate) field "([^"]*)"')
_GO_FIELD: Final = late_pattern(r"Go struct field [^. ]+\.([^ ]+) of type")
_MOST_CAUSES: Final = 100
_FORBIDDEN: Final = " is forbidden: "
_REQUIRED: Final = "Required value"


class Verdict(Struct, frozen=True):
    """Fault of an object: its rule, the server's message, and the field's path."""

    rule: Rule
    message: str
    field: str = ""


def verdicts(error: StatusError) -> Iterator[Verdict]:
    """Yield a verdict for each cause of an error."""
    if error.code == 400:
        yield from _of_bad_request(error.message)
    elif error.code == 422 and any(each.field or each.reason for each in error.causes):
        for each in error.causes[:_MOST_CAUSES]:
            yield Verdict(Rule.INVALID, each.message, each.field.removeprefix("<nil>"))
    elif error.code == 403:
        yield Verdict(Rule.FORBIDDEN, error.message)
    elif error.code == 422:  # of a policy
        yield Verdict(Rule.FORBIDDEN if _FORBIDDEN in error.message else Rule.INVALID, error.message)
    else:
        yield Verdict(Rule.REFUSED, error.message)


def _of_bad_request(message: str) -> Iterator[Verdict]:
    strict = list(_STRICT.finditer(message))
    for each in strict[:_MOST_CAUSES]:
        yield Verdict(Rule.UNKNOWN_FIELD, each[0], each[1])
    if not strict:
        field = _GO_FIELD.search(message)
        yield Verdict(Rule.MALFORMED, message, field[1] if field else "")


def without_consequences(found: Iterable[Verdict], unknown: Iterable[Verdict]) -> Iterator[Verdict]:
    """Yield verdicts without those on missing fields beside an unknown one, which is most likely the missing one."""
    parents = {each.field.rpartition(".")[0] for each in unknown}
    for each in found:
        if not each.message.startswith(_REQUIRED) or each.field.rpartition(".")[0] not in parents:
            yield each
