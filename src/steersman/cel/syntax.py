"""What is wrong with a text that does not follow the grammar: where, and in which words.

The reference implementation's parser is made by ANTLR 4, and what it says of an error depends on how such parsers
decide between alternatives and how they go on after an error: a token too many is passed over, one that is missing is
thought of, else tokens are passed over up to one that can follow. So the grammar stands here once more, as data, and a
small interpreter reads it as such a parser would ("Adaptive LL(*) Parsing: The Power of Dynamic Analysis", Parr,
Harwell, Fisher). It is slow, makes no tree, and is only asked about texts that are known to be wrong. ANTLR's own
runtime for Python takes twenty times as long and more (docs/dependencies.md has the figures).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Final, NamedTuple, NoReturn

from steersman.cel.ast import NO_OFFSET, UNREAD_OFFSET
from steersman.cel.grammar import EPSILON, Failure, State, Tokens, first_tokens, grammar
from steersman.cel.lexer import (
    BYTES,
    EOF,
    ESC_IDENTIFIER,
    IDENTIFIER,
    NUM_FLOAT,
    NUM_INT,
    NUM_UINT,
    OPERAND,
    STRING,
    SYMBOLS,
    Token,
)

MISSING: Final = "\udfff"
"""Stands in the text for characters that are in no token; no text has it, as UTF-8 does not."""

_MAX_ERRORS: Final = 100
_MAX_RECOVERIES: Final = 30
_MAX_SKIPPED: Final = 256
"""Tokens that are passed over after one error."""
_MAX_STEPS: Final = 30_000
"""Steps of reading and looking ahead after which no more is told of a text: a bound on the time that it takes."""

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


class _Context:
    """A rule that is being read, and the place it was asked for at."""

    __slots__ = ("_stack", "follow", "parent")

    def __init__(self, follow: State | None, parent: _Context | None) -> None:
        self.follow: Final = follow
        self.parent: Final = parent
        self._stack: _Stack | None = None

    def stack(self) -> _Stack:
        """Where it goes on after the rules that are being read."""
        pending = []
        context: _Context | None = self
        while context is not None and context._stack is None and context.follow is not None:
            pending.append(context)
            context = context.parent
        stack = context._stack if context is not None and context._stack is not None else _Stack(None, None)
        for each in reversed(pending):
            assert each.follow is not None
            stack = each._stack = stack.on(each.follow)
        return stack


class _Stack:
    """Where it goes on after the rules that looking ahead went into."""

    __slots__ = ("below", "known", "state")

    def __init__(self, state: State | None, below: _Stack | None) -> None:
        self.state: Final = state
        self.below: Final = below
        self.known: Final[dict[State, _Stack]] = {}

    def on(self, state: State) -> _Stack:
        """The stack with one more, the same object whenever it is asked for."""
        found = self.known.get(state)
        if found is None:
            found = self.known[state] = _Stack(state, self)
        return found


_Config = tuple[State, int, _Stack]
"""A place that looking ahead may be at, the alternative that leads there, and where it goes on after the rule."""
_Configs = dict[_Config, bool]
"""Places, and whether the rule in which the decision is made was left on the way."""


class _Places:
    """Where looking ahead may be at, and what that says of the alternatives."""

    def __init__(self, places: _Configs) -> None:
        self.places: Final = places
        self.alternatives: Final = {index for _, index, _ in places}
        self.moves: Final[dict[int, _Places]] = {}
        """What tokens lead to, as far as it was asked for."""

    @property
    def only(self) -> int | None:
        """The alternative, if one is left."""
        return min(self.alternatives) if len(self.alternatives) == 1 else None

    @cached_property
    def _subsets(self) -> list[set[int]]:
        """The alternatives that lead to each place."""
        found: dict[tuple[State, _Stack], set[int]] = {}
        for state, index, stack in self.places:
            found.setdefault((state, stack), set()).add(index)
        return list(found.values())

    @cached_property
    def agreed(self) -> int | None:
        """The alternative that comes first everywhere, if it is one."""
        least = {min(subset) for subset in self._subsets}
        return least.pop() if len(least) == 1 else None

    @cached_property
    def is_undecidable(self) -> bool:
        """Whether several alternatives will stay, as far as the rule tells."""
        if all(state.is_stop for state, _, _ in self.places):
            return True
        by_state: dict[State, set[int]] = {}
        for state, index, _ in self.places:
            by_state.setdefault(state, set()).add(index)
        conflict = any(len(subset) > 1 for subset in self._subsets)
        return conflict and all(len(found) > 1 for found in by_state.values())


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
        self._grammar: Final = grammar()
        self._context: _Context | None = None
        self._depths: Final[dict[str, int]] = dict.fromkeys(self._grammar.rules, 0)
        self._is_recovering = False
        self._last_position = -1
        self._last_states: set[State] = set()
        self._recoveries = 0
        self.repaired: Final[list[Token]] = []
        """The tokens as they are understood: without those too many, with those that are missing."""
        self._starts: Final[list[int]] = []
        """Where each of the rules being read starts."""
        self._steps = 0
        self._bottom: Final = _Stack(None, None)
        self._sets: Final[dict[frozenset[tuple[_Config, bool]], _Places]] = {}
        self._beginnings: Final[dict[State, _Places]] = {}
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
        self._count_steps(1)
        caller, outer_strength = self.state, self.strength
        follow = None if caller.calls is None else caller.calls[1]
        self._context = _Context(follow, self._context)
        self._depths[name] += 1
        if self._depths[name] > self._max_depth:
            self._errors.stop(f"expression recursion limit exceeded: {self._max_depth}")
        self.strength = strength
        start = self._tokens[self.position].offset
        self._starts.append(start)
        try:
            self._grammar.rules[name].read(self)
        except Failure as failure:
            self._tell(failure.position, failure.message)
            self._recover()
            if name == "escapeIdent" and caller.rule == "member":
                self.unnamed.append(start)
            elif name == "escapeIdent":
                # Told at the first of all fields.
                self.unnamed.append(self._starts[-3])
        self._starts.pop()
        self._depths[name] -= 1
        self._context = self._context.parent
        self.state, self.strength = caller, outer_strength

    def match(self, kinds: Tokens) -> None:
        """Takes a token of one of some kinds, past one that is too many; or thinks of one that is missing."""
        if self.kind not in kinds:
            self._count_recovery()
        if self.kind in kinds or self._delete_token():
            self._matched()
            self.repaired.append(self._tokens[self.position])
            self._consume()
            return
        following = self.state.moves[0][1]
        if self.kind in self._expected_at(following):
            if not self._is_recovering:
                self._is_recovering = True
                self._say(f"missing {_name_set(self._expected())} at {self._shown()}")
            self.supply_token(min(kinds))
            return
        raise Failure(self.position, self._mismatch())

    def mark(self) -> tuple[int, int]:
        """How far the text was understood."""
        return len(self.repaired), len(self.unnamed)

    def reset(self, mark: tuple[int, int]) -> None:
        """Takes what was understood since a mark as not there."""
        del self.repaired[mark[0] :]
        del self.unnamed[mark[1] :]

    def supply_token(self, kind: int) -> None:
        """Takes a token as read that is not there."""
        text = "<missing>" if kind == IDENTIFIER else ""
        self.repaired.append(Token(kind, text, self._tokens[self.position].offset))

    def supply_rule(self, name: str) -> None:
        """Takes what a rule reads as read: a name, or an operand."""
        if name in ("escapeIdent", "optField"):
            self.supply_token(IDENTIFIER)
            return
        # The place of an operand is only known if it was clear that one begins.
        self.repaired.append(Token(OPERAND, "", self._starts[-1] if name == "unary" else UNREAD_OFFSET))

    def _matched(self) -> None:
        self._is_recovering = False
        self._last_states = set()
        self._last_position = -1

    def synchronize(self) -> None:
        """Looks whether what comes next can be right here, and mends it if it is one token too many."""
        if self._is_recovering:
            return
        following = first_tokens(self.state)
        if self.kind in following or EPSILON in following:
            return
        if not self.state.is_loop_back:
            if not self._delete_token():
                raise Failure(self.position, self._mismatch())
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
            found |= first_tokens(context.follow)
            context = context.parent
        found.discard(EPSILON)
        return found

    def _expected(self) -> set[int]:
        return self._expected_at(self.state)

    def _expected_at(self, state: State) -> set[int]:
        """What can come next at a place, also after the rules that may end there."""
        following = first_tokens(state)
        found = set(following)
        context = self._context
        while EPSILON in following and context is not None and context.follow is not None:
            following = first_tokens(context.follow)
            found |= following
            context = context.parent
        if EPSILON in following:
            found.add(EOF)
        found.discard(EPSILON)
        return found

    # Looking ahead: all alternatives are followed at once until one is left.

    def predict(self, decision: State) -> int:
        """Which way to go from a place."""
        firsts = [first_tokens(target) for _, target in decision.moves]
        fitting = [index for index, first in enumerate(firsts) if self.kind in first]
        if len(fitting) == 1 and not any(EPSILON in first for first in firsts):
            return fitting[0]
        chosen = self._simulate(decision, self._bottom, is_full=False)
        if chosen is not None:
            return chosen
        stack = self._bottom if self._context is None else self._context.stack()
        return self._simulate(decision, stack, is_full=True) or 0

    def _simulate(self, decision: State, bottom: _Stack, *, is_full: bool) -> int | None:
        """The alternative that is left. None if it takes the rules that are being read to tell, which are only looked
        at if `is_full`.
        """
        current = self._begin(decision, bottom, is_full=is_full)
        position = self.position
        while True:
            kind = self._kind_at(position)
            reached = self._move(current, kind, is_full=is_full)
            if not reached.places:
                finished = [index for (state, index, _), left in current.places.items() if left or state.is_stop]
                if finished:
                    return min(finished)
                raise Failure(position, self.no_viable(self.position, position))
            if reached.only is not None:
                return reached.only
            if is_full:
                if reached.agreed is not None:
                    return reached.agreed
            elif reached.is_undecidable:
                return None
            if kind == EOF:
                return min(reached.alternatives)
            current = reached
            position += 1

    def _begin(self, decision: State, bottom: _Stack, *, is_full: bool) -> _Places:
        """The places that a decision leads to before any token."""
        known = None if is_full else self._beginnings.get(decision)
        if known is not None:
            return known
        places: _Configs = {}
        for index, (_, target) in enumerate(decision.moves):
            self._close(target, index, bottom, places, {}, left=False, is_full=is_full)
        begun = self._known(places, is_full=is_full)
        if not is_full:
            self._beginnings[decision] = begun
        return begun

    def _move(self, current: _Places, kind: int, *, is_full: bool) -> _Places:
        """The places that a token leads to."""
        known = current.moves.get(kind)
        if known is not None:
            return known
        self._count_steps(len(current.places))
        reached: _Configs = {}
        busy: _Configs = {}
        for (state, index, stack), left in current.places.items():
            for tokens, target in state.moves:
                if tokens is not None and kind in tokens:
                    self._close(target, index, stack, reached, busy, left=left, is_full=is_full)
        if kind == EOF:
            reached = {config: left for config, left in reached.items() if config[0].is_stop}
        found = current.moves[kind] = self._known(reached, is_full=is_full)
        return found

    def _count_steps(self, steps: int) -> None:
        self._steps += steps
        if self._steps > _MAX_STEPS:
            raise StopReading

    def _known(self, places: _Configs, *, is_full: bool) -> _Places:
        """The one object for a set of places, where the rules being read are not looked at: the same come again."""
        if is_full:
            return _Places(places)
        key = frozenset(places.items())
        found = self._sets.get(key)
        if found is None:
            found = self._sets[key] = _Places(places)
        return found

    def _close(
        self,
        state: State,
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
        self._count_steps(1)
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


def _quoted(text: str) -> str:
    return "'" + text.replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r") + "'"


def _name_set(kinds: set[int]) -> str:
    names = [_NAMES[kind] for kind in sorted(kinds)]
    return names[0] if len(names) == 1 else f"{{{', '.join(names)}}}"


class Repaired(NamedTuple):
    """A text as it was understood in spite of its errors."""

    tokens: list[Token]
    unnamed: list[int]
    """Where fields should have had names."""


def explain(text: str, tokens: list[Token], max_depth: int, errors: SyntaxErrors) -> Repaired:
    """Reports the errors of a text that does not follow the grammar.

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
    return Repaired(reader.repaired, reader.unnamed)
