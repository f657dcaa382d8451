"""Errors of strategies, each with the field or the rule that it is about."""

from __future__ import annotations


class StrategyError(Exception):
    """The base class: no strategy can be made from a schema, or a strategy made no valid object."""


class InvalidDefinition(StrategyError):
    """A definition has no structural schema, or a server would refuse its schema. The text names field and reason."""


class UnknownKind(StrategyError, LookupError):
    """No such kind, or no such version of it."""


class Unsatisfiable(StrategyError):
    """No valid value is found within bounds. The text names the field, and the rule where a rule is the reason."""
