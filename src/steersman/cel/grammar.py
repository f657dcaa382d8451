"""CEL's grammar as data, in the shape of the reference implementation's, which determines its syntax errors.

Each rule becomes a graph of states, in which lookahead and error recovery find the tokens that may follow.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Final, Protocol

from steersman.cel.lexer import BYTES, EOF, ESC_IDENTIFIER, IDENTIFIER, NUM_FLOAT, NUM_INT, NUM_UINT, STRING, SYMBOLS

EPSILON: Final = -2
"""A member of token sets: the end of the rule can be reached."""

Tokens = frozenset[int]


class State:
    """A state in a rule. It is left by a token, without one, or by another rule."""

    __slots__ = ("calls", "is_loop_back", "is_stop", "moves", "rule")

    def __init__(self, rule: str) -> None:
        self.rule: Final = rule
        self.moves: list[tuple[Tokens | None, State]] = []
        self.calls: tuple[str, State] | None = None
        """The rule that is parsed here, and the state after it."""
        self.is_stop = False
        self.is_loop_back = False


class Failure(Exception):
    """A rule cannot be continued."""

    def __init__(self, position: int, message: str) -> None:
        super().__init__(message)
        self.message: Final = message
        self.position: Final = position


class Reader(Protocol):
    """The interface of a parser that follows the grammar."""

    state: State
    """The current state in the grammar."""
    strength: int
    """The least precedence of the operators that are parsed in this rule."""
    position: int
    kind: int
    """The kind of the token at `position`."""

    def read_rule(self, name: str, strength: int) -> None:
        """Parse a rule."""

    def match(self, kinds: Tokens) -> None:
        """Consume a token of one of some kinds."""

    def synchronize(self) -> None:
        """Check whether the next token may be valid here."""

    def predict(self, decision: State) -> int:
        """Return the alternative to take from a state."""

    def mark(self) -> tuple[int, int]:
        """Return a mark of the progress of parsing."""

    def reset(self, mark: tuple[int, int]) -> None:
        """Discard the progress since a mark."""

    def supply_token(self, kind: int) -> None:
        """Add a missing token to the parsed ones."""

    def supply_rule(self, name: str) -> None:
        """Add the tokens of a missing rule to the parsed ones."""

    def no_viable(self, start: int, position: int) -> str:
        """Return the message for the case that no alternative continues."""


class Element:
    """A part of a rule. `entry` is the state before it, after `build`."""

    entry: State

    def build(self, rule: str, following: State) -> State:
        """Create the states of the part, the last of which leads to `following`. Return the first one."""
        raise NotImplementedError

    def read(self, reader: Reader) -> None:
        """Parse the part. Raises Failure."""
        raise NotImplementedError

    def supply(self, reader: Reader) -> None:
        """Treat a part that was not reached as parsed. Does nothing if it is optional."""


class _Match(Element):
    """One token of several kinds."""

    def __init__(self, *kinds: int) -> None:
        self.kinds: Final = frozenset(kinds)

    def build(self, rule: str, following: State) -> State:
        self.entry = State(rule)
        self.entry.moves.append((self.kinds, following))
        return self.entry

    def read(self, reader: Reader) -> None:
        reader.state = self.entry
        reader.match(self.kinds)

    def supply(self, reader: Reader) -> None:
        reader.supply_token(min(self.kinds))


class _Rule(Element):
    """Another rule. `strength` is the least precedence of the operators that are parsed within it."""

    def __init__(self, name: str, strength: int = 0) -> None:
        self.name: Final = name
        self.strength: Final = strength

    def build(self, rule: str, following: State) -> State:
        self.entry = State(rule)
        self.entry.calls = (self.name, following)
        return self.entry

    def read(self, reader: Reader) -> None:
        reader.state = self.entry
        reader.read_rule(self.name, self.strength)

    def supply(self, reader: Reader) -> None:
        reader.supply_rule(self.name)


class _Sequence(Element):
    def __init__(self, *parts: Element) -> None:
        self.parts: Final = parts

    def build(self, rule: str, following: State) -> State:
        for part in reversed(self.parts):
            following = part.build(rule, following)
        self.entry = following
        return following

    def read(self, reader: Reader) -> None:
        for index, part in enumerate(self.parts):
            try:
                part.read(reader)
            except Failure:
                if isinstance(part, _Match):
                    part.supply(reader)
                for missing in self.parts[index + 1 :]:
                    missing.supply(reader)
                raise


class _Entry(_Sequence):
    """A name or key with its value, which is discarded as a whole if the colon is missing."""

    def read(self, reader: Reader) -> None:
        mark = reader.mark()
        for part in self.parts:
            try:
                part.read(reader)
            except Failure:
                reader.reset(mark)
                raise


class _Choice(Element):
    """One of several parts. `looks_ahead` is True if one token is not always enough to choose."""

    def __init__(self, *parts: Element, looks_ahead: bool = True) -> None:
        self.parts: Final = parts
        self.looks_ahead: Final = looks_ahead

    def build(self, rule: str, following: State) -> State:
        self.entry = State(rule)
        self.entry.moves = [(None, part.build(rule, following)) for part in self.parts]
        return self.entry

    def read(self, reader: Reader) -> None:
        try:
            chosen = self._choose(reader)
        except Failure:
            reader.supply_rule(self.entry.rule)
            raise
        self.parts[chosen].read(reader)

    def _choose(self, reader: Reader) -> int:
        reader.state = self.entry
        reader.synchronize()
        if self.looks_ahead:
            chosen = reader.predict(self.entry)
        else:
            chosen = next(
                (index for index, part in enumerate(self.parts) if reader.kind in first_tokens(part.entry)), -1
            )
            if chosen < 0:
                raise Failure(reader.position, reader.no_viable(reader.position, reader.position))
        return chosen


class _Option(Element):
    """A part that may be missing."""

    def __init__(self, part: Element) -> None:
        self.part: Final = part

    def build(self, rule: str, following: State) -> State:
        self.entry = State(rule)
        self.entry.moves = [(None, self.part.build(rule, following)), (None, following)]
        return self.entry

    def read(self, reader: Reader) -> None:
        reader.state = self.entry
        reader.synchronize()
        if reader.kind in first_tokens(self.part.entry):
            self.part.read(reader)


class _Repeat(Element):
    """A part that occurs any number of times, or with `at_least_once` once or more."""

    def __init__(self, part: Element, *, looks_ahead: bool = False, at_least_once: bool = False) -> None:
        self.part: Final = part
        self.looks_ahead: Final = looks_ahead
        self.at_least_once: Final = at_least_once

    def build(self, rule: str, following: State) -> State:
        self.entry = State(rule)
        self.back = State(rule)
        self.back.is_loop_back = True
        first = self.part.build(rule, self.back)
        if self.at_least_once:
            self.entry.moves = [(None, first)]
            self.back.moves = [(None, first), (None, following)]
        else:
            self.entry.moves = [(None, first), (None, following)]
            self.back.moves = [(None, self.entry)]
        return self.entry

    def _goes_on(self, reader: Reader) -> bool:
        if self.looks_ahead:
            return reader.predict(self.back if self.at_least_once else self.entry) == 0
        return reader.kind in first_tokens(self.part.entry)

    def read(self, reader: Reader) -> None:
        reader.state = self.entry
        reader.synchronize()
        goes_on = self.at_least_once or self._goes_on(reader)
        while goes_on:
            self.part.read(reader)
            reader.state = self.back
            reader.synchronize()
            goes_on = self._goes_on(reader)


class _Operators(Element):
    """A repetition of operators with their precedences, each followed by its right operand, after the first operand."""

    def __init__(self, *parts: tuple[int, Element]) -> None:
        self.parts: Final = parts

    def build(self, rule: str, following: State) -> State:
        self.entry = State(rule)
        self.back = State(rule)
        self.back.is_loop_back = True
        self.back.moves = [(None, self.entry)]
        self.block = State(rule)
        self.block.moves = [(None, part.build(rule, self.back)) for _, part in self.parts]
        self.entry.moves = [(None, self.block), (None, following)]
        return self.entry

    def read(self, reader: Reader) -> None:
        strength = reader.strength
        reader.state = self.entry
        reader.synchronize()
        while any(own >= strength and reader.kind in first_tokens(part.entry) for own, part in self.parts):
            reader.state = self.block
            reader.synchronize()
            chosen = reader.predict(self.block) if len(self.parts) > 1 else 0
            own, part = self.parts[chosen]
            if own < strength:
                break
            part.read(reader)
            reader.strength = strength
            reader.state = self.back
            reader.synchronize()


def _symbols(text: str) -> _Match:
    return _Match(*(SYMBOLS[symbol] for symbol in text.split()))


def _optional(text: str) -> _Option:
    return _Option(_symbols(text))


def _list_of(part: Element, *, looks_ahead: bool = True) -> Element:
    return _Sequence(part, _Repeat(_Sequence(_symbols(","), _again(part)), looks_ahead=looks_ahead))


def _again(part: Element) -> Element:
    """Return a copy of a part, because states belong to one occurrence."""
    if isinstance(part, _Sequence):
        return type(part)(*map(_again, part.parts))
    if isinstance(part, _Rule):
        return _Rule(part.name, part.strength)
    assert isinstance(part, _Match)
    return _Match(*part.kinds)


def _grammar() -> dict[str, Element]:
    """Return the rules, in the shape that determines the syntax errors."""

    def name() -> Element:
        return _Match(IDENTIFIER)

    return {
        "start": _Sequence(_Rule("expr"), _Match(EOF)),
        "expr": _Sequence(
            _Rule("conditionalOr"),
            _Option(_Sequence(_symbols("?"), _Rule("conditionalOr"), _symbols(":"), _Rule("expr"))),
        ),
        "conditionalOr": _Sequence(
            _Rule("conditionalAnd"), _Repeat(_Sequence(_symbols("||"), _Rule("conditionalAnd")))
        ),
        "conditionalAnd": _Sequence(_Rule("relation"), _Repeat(_Sequence(_symbols("&&"), _Rule("relation")))),
        "relation": _Sequence(
            _Rule("calc"), _Operators((1, _Sequence(_symbols("< <= >= > == != in"), _Rule("relation", 2))))
        ),
        "calc": _Sequence(
            _Rule("unary"),
            _Operators(
                (2, _Sequence(_symbols("* / %"), _Rule("calc", 3))),
                (1, _Sequence(_symbols("+ -"), _Rule("calc", 2))),
            ),
        ),
        "unary": _Choice(
            _Rule("member"),
            _Sequence(_Repeat(_symbols("!"), at_least_once=True), _Rule("member")),
            _Sequence(_Repeat(_symbols("-"), at_least_once=True, looks_ahead=True), _Rule("member")),
        ),
        "member": _Sequence(
            _Rule("primary"),
            _Operators(
                (3, _Sequence(_symbols("."), _optional("?"), _Rule("escapeIdent"))),
                (2, _Sequence(_symbols("."), name(), _symbols("("), _Option(_Rule("exprList")), _symbols(")"))),
                (1, _Sequence(_symbols("["), _optional("?"), _Rule("expr"), _symbols("]"))),
            ),
        ),
        "primary": _Choice(
            _Sequence(_optional("."), name()),
            _Sequence(_optional("."), name(), _symbols("("), _Option(_Rule("exprList")), _symbols(")")),
            _Sequence(_symbols("("), _Rule("expr"), _symbols(")")),
            _Sequence(_symbols("["), _Option(_Rule("listInit")), _optional(","), _symbols("]")),
            _Sequence(_symbols("{"), _Option(_Rule("mapInitializerList")), _optional(","), _symbols("}")),
            _Sequence(
                _optional("."),
                name(),
                _Repeat(_Sequence(_symbols("."), name())),
                _symbols("{"),
                _Option(_Rule("fieldInitializerList")),
                _optional(","),
                _symbols("}"),
            ),
            _Rule("literal"),
        ),
        "exprList": _list_of(_Rule("expr"), looks_ahead=False),
        "listInit": _list_of(_Rule("optExpr")),
        "fieldInitializerList": _list_of(_Entry(_Rule("optField"), _symbols(":"), _Rule("expr"))),
        "optField": _Sequence(_optional("?"), _Rule("escapeIdent")),
        "mapInitializerList": _list_of(_Entry(_Rule("optExpr"), _symbols(":"), _Rule("expr"))),
        "escapeIdent": _Choice(name(), _Match(ESC_IDENTIFIER), looks_ahead=False),
        "optExpr": _Sequence(_optional("?"), _Rule("expr")),
        "literal": _Choice(
            _Sequence(_optional("-"), _Match(NUM_INT)),
            _Match(NUM_UINT),
            _Sequence(_optional("-"), _Match(NUM_FLOAT)),
            _Match(STRING),
            _Match(BYTES),
            _symbols("true"),
            _symbols("false"),
            _symbols("null"),
        ),
    }


class Grammar:
    """The grammar with the states of its rules."""

    def __init__(self) -> None:
        self.rules: Final = _grammar()
        self.starts: Final[dict[str, State]] = {}
        self.stops: Final[dict[str, State]] = {}
        for name, element in self.rules.items():
            stop = State(name)
            stop.is_stop = True
            self.stops[name] = stop
            self.starts[name] = element.build(name, stop)
        self.follows: Final[dict[str, list[State]]] = {name: [] for name in self.rules}
        """The states after a rule, at all of its uses."""
        for state in self._all():
            if state.calls is not None:
                self.follows[state.calls[0]].append(state.calls[1])

    def _all(self) -> Iterable[State]:
        seen: set[State] = set()
        pending = list(self.starts.values())
        while pending:
            state = pending.pop()
            if state in seen:
                continue
            seen.add(state)
            yield state
            pending.extend(target for _, target in state.moves)
            if state.calls is not None:
                pending.append(state.calls[1])


@cache
def grammar() -> Grammar:
    """Return the grammar of CEL, which the first call builds."""
    return Grammar()


@cache
def first_tokens(state: State) -> Tokens:
    """Return the tokens that may come next, with EPSILON if the rule can end before one."""
    found: set[int] = set()
    _collect(state, found, set())
    return frozenset(found)


def _collect(state: State, found: set[int], seen: set[State]) -> None:
    if state in seen:
        return
    seen.add(state)
    if state.is_stop:
        found.add(EPSILON)
        return
    if state.calls is not None:
        name, following = state.calls
        inner = first_tokens(grammar().starts[name])
        found |= inner - {EPSILON}
        if EPSILON in inner:
            _collect(following, found, seen)
        return
    for tokens, target in state.moves:
        if tokens is None:
            _collect(target, found, seen)
        else:
            found |= tokens
