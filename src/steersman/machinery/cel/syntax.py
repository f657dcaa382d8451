"""What is wrong with a text that does not follow the grammar: where, and in which words.

The reference implementation's parser is made by ANTLR 4, and what it says of an error depends on how such parsers
decide between alternatives and how they go on after an error: a token too many is passed over, one that is missing is
thought of, else tokens are passed over up to one that can follow. So the grammar stands here once more, as data, and a
small interpreter reads it as such a parser would ("Adaptive LL(*) Parsing: The Power of Dynamic Analysis", Parr,
Harwell, Fisher). It is slow, makes no tree, and is only asked about texts that are known to be wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Final, NoReturn

from steersman.machinery.cel.ast import NO_OFFSET
from steersman.machinery.cel.lexer import (
    BYTES,
    EOF,
    ESC_IDENTIFIER,
    IDENTIFIER,
    NUM_FLOAT,
    NUM_INT,
    NUM_UINT,
    STRING,
    SYMBOLS,
    Token,
)

MISSING: Final = "\ue000"
"""Stands in the text for characters that are in no token. In a text itself it is none either, but within quotes."""

_MAX_ERRORS: Final = 100
_MAX_RECOVERIES: Final = 30
_MAX_SKIPPED: Final = 256
"""Tokens that are passed over after one error."""
_MAX_STEPS: Final = 40_000
"""Steps of looking ahead after which no more is told of a text: a bound on the time that it takes."""

_EPSILON: Final = -2
"""In a set of tokens: the end of the rule can be reached."""

_NAMES: Final = {kind: f"'{text}'" for text, kind in SYMBOLS.items()} | {
    EOF: "<EOF>",
    NUM_FLOAT: "NUM_FLOAT",
    NUM_INT: "NUM_INT",
    NUM_UINT: "NUM_UINT",
    STRING: "STRING",
    BYTES: "BYTES",
    IDENTIFIER: "IDENTIFIER",
    ESC_IDENTIFIER: "ESC_IDENTIFIER",
}

Tokens = frozenset[int]


class _State:
    """A place in a rule: ways on by a token, by nothing, or through another rule."""

    __slots__ = ("calls", "is_loop_back", "is_stop", "moves", "rule")

    def __init__(self, rule: str) -> None:
        self.rule: Final = rule
        self.moves: list[tuple[Tokens | None, _State]] = []
        self.calls: tuple[str, _State] | None = None
        """The rule that is read here, and the place after it."""
        self.is_stop = False
        self.is_loop_back = False


class _Element:
    """A part of a rule. `entry` is the place before it, once it is built."""

    entry: _State

    def build(self, rule: str, following: _State) -> _State:
        """Makes the places of the part, the last leading to `following`; the first one."""
        raise NotImplementedError

    def read(self, reader: _Reader) -> None:
        """Reads the part."""
        raise NotImplementedError


class _Match(_Element):
    """One token of several kinds."""

    def __init__(self, *kinds: int) -> None:
        self.kinds: Final = frozenset(kinds)

    def build(self, rule: str, following: _State) -> _State:
        self.entry = _State(rule)
        self.entry.moves.append((self.kinds, following))
        return self.entry

    def read(self, reader: _Reader) -> None:
        reader.state = self.entry
        reader.match(self.kinds)


class _Rule(_Element):
    """Another rule; `strength` is how strongly operators must bind to be read within it."""

    def __init__(self, name: str, strength: int = 0) -> None:
        self.name: Final = name
        self.strength: Final = strength

    def build(self, rule: str, following: _State) -> _State:
        self.entry = _State(rule)
        self.entry.calls = (self.name, following)
        return self.entry

    def read(self, reader: _Reader) -> None:
        reader.state = self.entry
        reader.read_rule(self.name, self.strength)


class _Sequence(_Element):
    def __init__(self, *parts: _Element) -> None:
        self.parts: Final = parts

    def build(self, rule: str, following: _State) -> _State:
        for part in reversed(self.parts):
            following = part.build(rule, following)
        self.entry = following
        return following

    def read(self, reader: _Reader) -> None:
        for part in self.parts:
            part.read(reader)


class _Choice(_Element):
    """One of several parts. `looks_ahead` if one token does not always tell which."""

    def __init__(self, *parts: _Element, looks_ahead: bool = True) -> None:
        self.parts: Final = parts
        self.looks_ahead: Final = looks_ahead

    def build(self, rule: str, following: _State) -> _State:
        self.entry = _State(rule)
        self.entry.moves = [(None, part.build(rule, following)) for part in self.parts]
        return self.entry

    def read(self, reader: _Reader) -> None:
        reader.state = self.entry
        reader.synchronize()
        if self.looks_ahead:
            chosen = reader.predict(self.entry)
        else:
            chosen = next(
                (index for index, part in enumerate(self.parts) if reader.kind in _first(part.entry)), -1
            )
            if chosen < 0:
                raise _Failure(reader.position, reader.no_viable(reader.position, reader.position))
        self.parts[chosen].read(reader)


class _Option(_Element):
    """A part that may be missing."""

    def __init__(self, part: _Element) -> None:
        self.part: Final = part

    def build(self, rule: str, following: _State) -> _State:
        self.entry = _State(rule)
        self.entry.moves = [(None, self.part.build(rule, following)), (None, following)]
        return self.entry

    def read(self, reader: _Reader) -> None:
        reader.state = self.entry
        reader.synchronize()
        if reader.kind in _first(self.part.entry):
            self.part.read(reader)


class _Repeat(_Element):
    """A part that comes any number of times, or with `at_least_once` once or more."""

    def __init__(self, part: _Element, *, looks_ahead: bool = False, at_least_once: bool = False) -> None:
        self.part: Final = part
        self.looks_ahead: Final = looks_ahead
        self.at_least_once: Final = at_least_once

    def build(self, rule: str, following: _State) -> _State:
        self.entry = _State(rule)
        self.back = _State(rule)
        self.back.is_loop_back = True
        first = self.part.build(rule, self.back)
        if self.at_least_once:
            self.entry.moves = [(None, first)]
            self.back.moves = [(None, first), (None, following)]
        else:
            self.entry.moves = [(None, first), (None, following)]
            self.back.moves = [(None, self.entry)]
        return self.entry

    def _goes_on(self, reader: _Reader) -> bool:
        if self.looks_ahead:
            return reader.predict(self.back if self.at_least_once else self.entry) == 0
        return reader.kind in _first(self.part.entry)

    def read(self, reader: _Reader) -> None:
        reader.state = self.entry
        reader.synchronize()
        goes_on = self.at_least_once or self._goes_on(reader)
        while goes_on:
            self.part.read(reader)
            reader.state = self.back
            reader.synchronize()
            goes_on = self._goes_on(reader)


class _Operators(_Element):
    """What may follow an operand again and again: operators, by how strongly they bind, and what comes after them."""

    def __init__(self, *parts: tuple[int, _Element]) -> None:
        self.parts: Final = parts

    def build(self, rule: str, following: _State) -> _State:
        self.entry = _State(rule)
        self.back = _State(rule)
        self.back.is_loop_back = True
        self.back.moves = [(None, self.entry)]
        self.block = _State(rule)
        self.block.moves = [(None, part.build(rule, self.back)) for _, part in self.parts]
        self.entry.moves = [(None, self.block), (None, following)]
        return self.entry

    def read(self, reader: _Reader) -> None:
        strength = reader.strength
        reader.state = self.entry
        reader.synchronize()
        while any(own >= strength and reader.kind in _first(part.entry) for own, part in self.parts):
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


def _list_of(part: _Element, *, looks_ahead: bool = True) -> _Element:
    return _Sequence(part, _Repeat(_Sequence(_symbols(","), _again(part)), looks_ahead=looks_ahead))


def _again(part: _Element) -> _Element:
    """The part once more, as places are those of one occurrence."""
    if isinstance(part, _Sequence):
        return _Sequence(*map(_again, part.parts))
    if isinstance(part, _Rule):
        return _Rule(part.name, part.strength)
    assert isinstance(part, _Match)
    return _Match(*part.kinds)


def _grammar() -> dict[str, _Element]:
    """The rules, in the shape that decides what errors are like."""

    def name() -> _Element:
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
        "fieldInitializerList": _list_of(_Sequence(_Rule("optField"), _symbols(":"), _Rule("expr"))),
        "optField": _Sequence(_optional("?"), _Rule("escapeIdent")),
        "mapInitializerList": _list_of(_Sequence(_Rule("optExpr"), _symbols(":"), _Rule("expr"))),
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


class _Built:
    """The grammar with the places of its rules."""

    def __init__(self) -> None:
        self.rules: Final = _grammar()
        self.starts: Final[dict[str, _State]] = {}
        self.stops: Final[dict[str, _State]] = {}
        for name, element in self.rules.items():
            stop = _State(name)
            stop.is_stop = True
            self.stops[name] = stop
            self.starts[name] = element.build(name, stop)
        self.follows: Final[dict[str, list[_State]]] = {name: [] for name in self.rules}
        """Where it goes on after a rule, wherever it is used."""
        for state in self._all():
            if state.calls is not None:
                self.follows[state.calls[0]].append(state.calls[1])

    def _all(self) -> Iterable[_State]:
        seen: set[_State] = set()
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
def _built() -> _Built:
    return _Built()


@cache
def _first(state: _State) -> Tokens:
    """The tokens that can come next, with _EPSILON if the rule can end before one."""
    found: set[int] = set()
    _collect(state, found, set())
    return frozenset(found)


def _collect(state: _State, found: set[int], seen: set[_State]) -> None:
    if state in seen:
        return
    seen.add(state)
    if state.is_stop:
        found.add(_EPSILON)
        return
    if state.calls is not None:
        name, following = state.calls
        inner = _first(_built().starts[name])
        found |= inner - {_EPSILON}
        if _EPSILON in inner:
            _collect(following, found, seen)
        return
    for tokens, target in state.moves:
        if tokens is None:
            _collect(target, found, seen)
        else:
            found |= tokens


class _Context:
    """A rule that is being read, and the place it was asked for at."""

    __slots__ = ("follow", "parent")

    def __init__(self, follow: _State | None, parent: _Context | None) -> None:
        self.follow: Final = follow
        self.parent: Final = parent


class _Stack:
    """Where it goes on after the rules that looking ahead went into."""

    __slots__ = ("below", "known", "state")

    def __init__(self, state: _State | None, below: _Stack | None) -> None:
        self.state: Final = state
        self.below: Final = below
        self.known: Final[dict[_State, _Stack]] = {}

    def on(self, state: _State) -> _Stack:
        """The stack with one more, the same object whenever it is asked for."""
        found = self.known.get(state)
        if found is None:
            found = self.known[state] = _Stack(state, self)
        return found


_Config = tuple[_State, int, _Stack]
"""A place that looking ahead may be at, the alternative that leads there, and where it goes on after the rule."""
_Configs = dict[_Config, bool]
"""Places, and whether the rule in which the decision is made was left on the way."""


class _Failure(Exception):
    """A rule cannot go on."""

    def __init__(self, position: int, message: str) -> None:
        super().__init__(message)
        self.message: Final = message
        self.position: Final = position


class StopReading(Exception):
    """The text is not read any further."""


class SyntaxErrors:
    """Errors of tokens and grammar; after a hundred of them the text is not read any further."""

    def __init__(self, report: Callable[[int, str], None]) -> None:
        self._report: Final = report
        self.count = 0

    def report(self, offset: int, message: str) -> None:
        """Adds one. Raises StopReading if there are too many."""
        if self.count == _MAX_ERRORS:
            self._report(offset, f"Syntax error: More than {_MAX_ERRORS} syntax errors")
            raise StopReading
        self.count += 1
        self._report(offset, f"Syntax error: {message}")

    def stop(self, message: str) -> NoReturn:
        """Adds one that is at no place of the text. Raises StopReading."""
        self.count += 1
        self._report(NO_OFFSET, message)
        raise StopReading


class _Reader:
    """Reads the tokens along the grammar and tells what is wrong."""

    def __init__(self, text: str, tokens: list[Token], max_depth: int, errors: SyntaxErrors) -> None:
        self._text: Final = text
        self._tokens: Final = tokens
        self._max_depth: Final = max_depth
        self._errors: Final = errors
        self._grammar: Final = _built()
        self._context: _Context | None = None
        self._depths: Final[dict[str, int]] = dict.fromkeys(self._grammar.rules, 0)
        self._is_recovering = False
        self._last_position = -1
        self._last_states: set[_State] = set()
        self._recoveries = 0
        self._steps = 0
        self.unnamed: Final[list[int]] = []
        """Where a field should have had its name."""
        self.position = 0
        self.kind = tokens[0].kind
        self.state = self._grammar.starts["start"]
        self.strength = 0

    def _kind_at(self, position: int) -> int:
        return self._tokens[min(position, len(self._tokens) - 1)].kind

    def _consume(self) -> None:
        if self.kind != EOF:
            self.position += 1
            self.kind = self._kind_at(self.position)

    def read_rule(self, name: str, strength: int) -> None:
        """Reads a rule from the current place; what goes wrong in it is told, and tokens that cannot follow are
        passed over.
        """
        caller, outer_strength = self.state, self.strength
        follow = None if caller.calls is None else caller.calls[1]
        self._context = _Context(follow, self._context)
        self._depths[name] += 1
        if self._depths[name] > self._max_depth:
            self._errors.stop(f"expression recursion limit exceeded: {self._max_depth}")
        self.strength = strength
        start = self._tokens[self.position].offset
        try:
            self._grammar.rules[name].read(self)
        except _Failure as failure:
            self._tell(failure.position, failure.message)
            self._recover()
            if name == "escapeIdent" and caller.rule == "member":
                self.unnamed.append(start)
        self._depths[name] -= 1
        self._context = self._context.parent
        self.state, self.strength = caller, outer_strength

    def match(self, kinds: Tokens) -> None:
        """Takes a token of one of some kinds, past one that is too many; or thinks of one that is missing."""
        if self.kind in kinds:
            self._matched()
            self._consume()
            return
        self._count_recovery()
        if self._delete_token():
            self._consume()
            return
        following = self.state.moves[0][1]
        if self.kind in self._expected_at(following):
            if not self._is_recovering:
                self._is_recovering = True
                self._say(f"missing {_name_set(self._expected())} at {self._shown()}")
            return
        raise _Failure(self.position, self._mismatch())

    def _matched(self) -> None:
        self._is_recovering = False
        self._last_states = set()
        self._last_position = -1

    def synchronize(self) -> None:
        """Looks whether what comes next can be right here, and mends it if it is one token too many."""
        if self._is_recovering:
            return
        following = _first(self.state)
        if self.kind in following or _EPSILON in following:
            return
        if not self.state.is_loop_back:
            if not self._delete_token():
                raise _Failure(self.position, self._mismatch())
            return
        self._unwanted()
        self._skip_to(self._expected() | self._recovery_set(), limited=False)

    def _delete_token(self) -> bool:
        """Passes over a token if the one behind it is right."""
        if self._kind_at(self.position + 1) not in self._expected():
            return False
        self._unwanted()
        self._consume()
        self._matched()
        return True

    def _unwanted(self) -> None:
        if not self._is_recovering:
            self._is_recovering = True
            self._say(f"extraneous input {self._shown()} expecting {_name_set(self._expected())}")

    def _mismatch(self) -> str:
        return f"mismatched input {self._shown()} expecting {_name_set(self._expected())}"

    def no_viable(self, start: int, position: int) -> str:
        """No alternative goes on with the token at a position, counted from where the alternatives begin."""
        first, last = self._tokens[start], self._tokens[position]
        end = last.offset + (0 if last.kind == EOF else len(last.text))
        shown = "<EOF>" if first.kind == EOF else self._text[first.offset : end].replace(MISSING, "")
        if len(shown) > 1 and shown[1:] in ("true", "false", "null"):
            return f"mismatched input '{shown[1:]}' expecting IDENTIFIER"
        return f"no viable alternative at input {_quoted(shown)}"

    def _shown(self) -> str:
        return _quoted(self._tokens[self.position].text)

    def _say(self, message: str) -> None:
        """Tells an error at the current token."""
        self._tell_at(self.position, message)

    def _tell(self, position: int, message: str) -> None:
        if not self._is_recovering:
            self._is_recovering = True
            self._tell_at(position, message)

    def _tell_at(self, position: int, message: str) -> None:
        self._errors.report(self._tokens[position].offset, message)

    def _count_recovery(self) -> None:
        if self._recoveries == _MAX_RECOVERIES:
            self._say(f"error recovery attempt limit exceeded: {_MAX_RECOVERIES}")
            raise StopReading
        self._recoveries += 1

    def _recover(self) -> None:
        """Passes over tokens up to one that can follow what is being read."""
        self._count_recovery()
        if self._last_position == self.position and self.state in self._last_states:
            self._consume()
        self._last_position = self.position
        self._last_states.add(self.state)
        self._skip_to(self._recovery_set(), limited=True)

    def _skip_to(self, kinds: set[int], *, limited: bool) -> None:
        skipped = 0
        while self.kind != EOF and self.kind not in kinds:
            if limited and skipped >= _MAX_SKIPPED:
                self._errors.stop(f"error recovery token lookahead limit exceeded: {_MAX_SKIPPED}")
            skipped += 1
            self._consume()

    def _recovery_set(self) -> set[int]:
        """What can follow any of the rules that are being read."""
        found: set[int] = set()
        context = self._context
        while context is not None and context.follow is not None:
            found |= _first(context.follow)
            context = context.parent
        found.discard(_EPSILON)
        return found

    def _expected(self) -> set[int]:
        return self._expected_at(self.state)

    def _expected_at(self, state: _State) -> set[int]:
        """What can come next at a place, also after the rules that may end there."""
        following = _first(state)
        found = set(following)
        context = self._context
        while _EPSILON in following and context is not None and context.follow is not None:
            following = _first(context.follow)
            found |= following
            context = context.parent
        if _EPSILON in following:
            found.add(EOF)
        found.discard(_EPSILON)
        return found

    # Looking ahead: all alternatives are followed at once until one is left.

    def predict(self, decision: _State) -> int:
        """Which way to go from a place."""
        chosen = self._simulate(decision, _Stack(None, None), is_full=False)
        if chosen is not None:
            return chosen
        return self._simulate(decision, self._stack(), is_full=True) or 0

    def _stack(self) -> _Stack:
        """Where it goes on after the rules that are being read."""
        follows = []
        context = self._context
        while context is not None and context.follow is not None:
            follows.append(context.follow)
            context = context.parent
        stack = _Stack(None, None)
        for follow in reversed(follows):
            stack = stack.on(follow)
        return stack

    def _simulate(self, decision: _State, bottom: _Stack, *, is_full: bool) -> int | None:
        """The alternative that is left. None if it takes the rules that are being read to tell, which are only looked
        at if `is_full`.
        """
        current: _Configs = {}
        for index, (_, target) in enumerate(decision.moves):
            self._close(target, index, bottom, current, {}, left=False, is_full=is_full)
        position = self.position
        while True:
            kind = self._kind_at(position)
            reached: _Configs = {}
            busy: _Configs = {}
            for (state, index, stack), left in current.items():
                for tokens, target in state.moves:
                    if tokens is not None and kind in tokens:
                        self._close(target, index, stack, reached, busy, left=left, is_full=is_full)
            if kind == EOF:
                reached = {config: left for config, left in reached.items() if config[0].is_stop}
            if not reached:
                finished = [index for (state, index, _), left in current.items() if left or state.is_stop]
                if finished:
                    return min(finished)
                raise _Failure(position, self.no_viable(self.position, position))
            alternatives = {index for _, index, _ in reached}
            if len(alternatives) == 1:
                return alternatives.pop()
            subsets = _conflicts(reached)
            if is_full:
                least = {min(subset) for subset in subsets}
                if len(least) == 1:
                    return least.pop()
            elif _is_undecidable(reached, subsets):
                return None
            if kind == EOF:
                return min(alternatives)
            current = reached
            position += 1

    def _close(
        self,
        state: _State,
        index: int,
        stack: _Stack,
        found: _Configs,
        busy: _Configs,
        *,
        left: bool,
        is_full: bool,
    ) -> None:
        """Adds the places that are reached without a token."""
        config = (state, index, stack)
        if config in busy and (busy[config] or not left):
            return
        busy[config] = left
        self._steps += 1
        if self._steps > _MAX_STEPS:
            raise StopReading
        if state.is_stop:
            if stack.state is not None and stack.below is not None:
                self._close(stack.state, index, stack.below, found, busy, left=left, is_full=is_full)
                return
            follows = [] if is_full else self._grammar.follows[state.rule]
            if not follows:
                found[config] = left or found.get(config, False)
            for follow in follows:
                self._close(follow, index, stack, found, busy, left=True, is_full=is_full)
            return
        if state.calls is not None:
            name, following = state.calls
            start = self._grammar.starts[name]
            self._close(start, index, stack.on(following), found, busy, left=left, is_full=is_full)
            return
        for tokens, target in state.moves:
            if tokens is None:
                self._close(target, index, stack, found, busy, left=left, is_full=is_full)
            else:
                found[config] = left or found.get(config, False)


def _conflicts(configs: _Configs) -> list[set[int]]:
    """The alternatives that lead to each place."""
    found: dict[tuple[_State, _Stack], set[int]] = {}
    for state, index, stack in configs:
        found.setdefault((state, stack), set()).add(index)
    return list(found.values())


def _is_undecidable(configs: _Configs, subsets: list[set[int]]) -> bool:
    """Whether several alternatives will stay, as far as this place tells."""
    if all(state.is_stop for state, _, _ in configs):
        return True
    by_state: dict[_State, set[int]] = {}
    for state, index, _ in configs:
        by_state.setdefault(state, set()).add(index)
    return any(len(subset) > 1 for subset in subsets) and all(len(found) > 1 for found in by_state.values())


def _quoted(text: str) -> str:
    return "'" + text.replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r") + "'"


def _name_set(kinds: set[int]) -> str:
    names = [_NAMES[kind] for kind in sorted(kinds)]
    return names[0] if len(names) == 1 else f"{{{', '.join(names)}}}"


def explain(text: str, tokens: list[Token], max_depth: int, errors: SyntaxErrors) -> list[int]:
    """Reports the errors of a text that does not follow the grammar; where fields should have had names.

    Raises StopReading when the text is not worth reading on.
    """
    before = errors.count
    reader = _Reader(text, tokens, max_depth, errors)
    try:
        reader.read_rule("start", 0)
    except StopReading:
        if errors.count == before:
            errors.report(NO_OFFSET, "expression is too complex")
        raise
    return reader.unnamed
