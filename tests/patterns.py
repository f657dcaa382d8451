"""Patterns of Python's `re` under test: collected when compiled, searched for ambiguous repetitions, and fed with text.

`watch` is called before anything of Steersman is imported. Published checkers such as regexploit do not know possessive
repetition and are not maintained. So this module searches the automaton of a pattern for ambiguity: two paths from a
state back to itself on the same text double the work with each repetition of the text.
"""

from __future__ import annotations

import re
import re._constants as op  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from steersman.work import patterns as late_patterns

Pattern = re.Pattern[Any]
Sets = tuple[tuple[int, int], ...]
"""Characters as ranges, both ends included."""

compiled: dict[tuple[str | bytes, int], str] = {}
"""Module and line that first compiled or declared each pattern of the package, by the pattern's text and flags."""

_LAST = 0x10FFFF
_MANY = 130
"""Most repetitions that are expanded; a repetition with a higher bound counts as unbounded."""
_IN_CATEGORY = {
    "DIGIT": ((48, 57),),
    "SPACE": ((9, 13), (32, 32)),
    "WORD": ((48, 57), (65, 90), (95, 95), (97, 122)),
}


def watch() -> None:
    """Collect every pattern that the package compiles from now on."""
    original = re._compile  # type: ignore[attr-defined]

    def compile_and_note(pattern: Any, flags: Any) -> Any:
        made = original(pattern, flags)
        if isinstance(pattern, str | bytes):
            _note(pattern, flags, sys._getframe(2))
        return made

    def note_late(pattern: Any, flags: Any = 0) -> Any:
        made = late(pattern, flags)
        if _note(pattern, flags, sys._getframe(1)):
            _ = made.match  # compiled now: some tests count the calls of code that uses it
        return made

    re._compile = compile_and_note  # type: ignore[attr-defined]
    late = late_patterns.late_pattern
    late_patterns.late_pattern = note_late


def _note(pattern: str | bytes, flags: Any, caller: FrameType) -> bool:
    """Collect a pattern if the caller is a module of the package; return True if it is."""
    module = caller.f_globals.get("__name__", "")
    is_ours: bool = module.startswith("steersman.") and module != late_patterns.__name__
    if is_ours:
        compiled.setdefault((pattern, int(flags)), f"{module.removeprefix('steersman.')}:{caller.f_lineno}")
    return is_ours


def complement(ranges: Sets) -> Sets:
    """Return the ranges of all characters that are not in these ranges."""
    out, at = [], 0
    for low, high in sorted(ranges):
        if at < low:
            out.append((at, low - 1))
        at = max(at, high + 1)
    return (*out, (at, _LAST)) if at <= _LAST else tuple(out)


def common(one: Sets, other: Sets) -> int | None:
    """Return a character that is in both, None if there is none."""
    for low, high in one:
        for low2, high2 in other:
            if max(low, low2) <= min(high, high2):
                return max(low, low2)
    return None


def _category(name: Any) -> Sets:
    text = str(name).removeprefix("CATEGORY_").removeprefix("UNI_").removeprefix("LOC_")
    return complement(_IN_CATEGORY[text[4:]]) if text.startswith("NOT_") else _IN_CATEGORY[text]


def _folded(ranges: Sets) -> Sets:
    extra = []
    for low, high in ranges:
        for first, last, shift in ((65, 90, 32), (97, 122, -32)):
            if max(low, first) <= min(high, last):
                extra.append((max(low, first) + shift, min(high, last) + shift))
    return (*ranges, *extra)


@dataclass
class _Part:
    """Part of a pattern: its first and last states, and the number of ways in which it matches the empty text."""

    first: list[int] = field(default_factory=list)
    last: list[int] = field(default_factory=list)
    empty: int = 1


class Automaton:
    """States of a pattern, one for each character in it (Glushkov's construction).

    Assertions count as true, so that the automaton accepts more than the pattern. They are kept in `assertions`.
    """

    def __init__(self, pattern: str | bytes, flags: int = 0) -> None:
        self.characters: list[Sets] = []
        self.next: dict[int, dict[int, int]] = {}
        """Next states of each state, each with the number of ways to it that backtracking may revisit."""
        self.assertions: list[Any] = []
        tree = parser.parse(pattern, flags)
        self._flags = tree.state.flags
        self.begins = self.sequence(tree).first

    def _state(self, ranges: Sets) -> _Part:
        self.characters.append(_folded(ranges) if self._flags & re.IGNORECASE else ranges)
        number = len(self.characters) - 1
        self.next[number] = {}
        return _Part([number], [number], 0)

    def _connect(self, last: Iterable[int], first: Iterable[int], *, certain: bool = False) -> None:
        first = list(first)
        for state in last:
            for following in first:
                self.next[state][following] = self.next[state].get(following, 0) + (not certain)

    def _then(self, whole: _Part, part: _Part) -> _Part:
        self._connect(whole.last, part.first)
        return _Part(
            whole.first + part.first * min(whole.empty, 2),
            part.last + whole.last * min(part.empty, 2),
            whole.empty * part.empty,
        )

    def sequence(self, items: Iterable[Any]) -> _Part:
        """Add the states of consecutive items of a parsed pattern."""
        whole = _Part()
        for item in items:
            whole = self._then(whole, self._part(*item))
        return whole

    def _part(self, code: Any, value: Any) -> _Part:
        if code is op.LITERAL:
            return self._state(((value, value),))
        if code is op.NOT_LITERAL:
            return self._state(complement(((value, value),)))
        if code is op.ANY:
            return self._state(((0, _LAST),) if self._flags & re.DOTALL else complement(((10, 10),)))
        if code is op.GROUPREF:
            return self._state(((0, _LAST),))
        if code is op.IN:
            return self._state(_ranges(value))
        if code is op.BRANCH:
            parts = [self.sequence(each) for each in value[1]]
            return _Part(
                [each for part in parts for each in part.first],
                [each for part in parts for each in part.last],
                sum(part.empty for part in parts),
            )
        if code is op.SUBPATTERN:
            return self.sequence(value[3])
        if code is op.ATOMIC_GROUP:
            return self.sequence(value)
        if code in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
            return self._repeated(*value, certain=code is op.POSSESSIVE_REPEAT)
        if code in (op.ASSERT, op.ASSERT_NOT):
            self.assertions.append(value[1])
            return _Part()
        if code is op.AT:
            return _Part()
        raise NotImplementedError(code)

    def _repeated(self, least: int, most: Any, body: Any, *, certain: bool) -> _Part:
        is_endless = most is op.MAXREPEAT or most > _MANY
        whole = _Part()
        for _ in range(min(least, _MANY) - is_endless):
            whole = self._then(whole, self.sequence(body))
        if is_endless:
            part = self.sequence(body)
            self._connect(part.last, part.first, certain=certain)
            if least == 0:
                part.empty = 1
            return self._then(whole, part)
        optional = _Part()
        for _ in range(most - least):  # from the last one to the first: each only follows the one before
            optional = self._then(self.sequence(body), optional)
            optional.empty = 1
        return self._then(whole, optional)

    def loops(self) -> list[set[int]]:
        """Return the groups of states that are reachable from each other."""
        return list(strong({state: list(following) for state, following in self.next.items()}))

    def loops_gone_back_on(self) -> list[set[int]]:
        """Return the loops of repetitions that are not possessive, which backtracking may revisit."""
        return list(
            strong(
                {state: [each for each, ways in following.items() if ways] for state, following in self.next.items()}
            )
        )

    def word(self, begin: Iterable[int], end: int) -> str | None:
        """Return the shortest text on a path from one of the states in `begin`, that state included, to `end`."""
        before: dict[int, int | None] = dict.fromkeys(begin)
        waiting = deque(before)
        while waiting:
            state = waiting.popleft()
            if state == end:
                path: list[int] = []
                at: int | None = state
                while at is not None:
                    path.append(at)
                    at = before[at]
                return "".join(chr(_shown(self.characters[each])) for each in reversed(path))
            for following in self.next[state]:
                if following not in before:
                    before[following] = state
                    waiting.append(following)
        return None


def _ranges(items: Any) -> Sets:
    found: list[tuple[int, int]] = []
    negated = False
    for code, value in items:
        if code is op.NEGATE:
            negated = True
        elif code is op.LITERAL:
            found.append((value, value))
        elif code is op.RANGE:
            found.append(value)
        elif code is op.CATEGORY:
            found += _category(value)
        else:
            raise NotImplementedError(code)
    return complement(tuple(found)) if negated else tuple(found)


def _shown(ranges: Sets) -> int:
    """Return a character of the ranges, a printable one if there is any."""
    for plain in ((97, 97), (48, 48), (33, 126)):
        found = common(ranges, (plain,))
        if found is not None:
            return found
    return ranges[0][0]


def strong(edges: dict[Any, list[Any]]) -> Iterator[set[Any]]:
    """Yield the strongly connected components that contain a cycle (Tarjan)."""
    index: dict[Any, int] = {}
    low: dict[Any, int] = {}
    stack: list[Any] = []
    on_stack: set[Any] = set()
    for root in edges:
        if root in index:
            continue
        work = [(root, iter(edges[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, following = work[-1]
            for each in following:
                if each not in index:
                    index[each] = low[each] = len(index)
                    stack.append(each)
                    on_stack.add(each)
                    work.append((each, iter(edges[each])))
                    break
                if each in on_stack:
                    low[node] = min(low[node], index[each])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    group = set()
                    while True:
                        each = stack.pop()
                        on_stack.discard(each)
                        group.add(each)
                        if each == node:
                            break
                    if len(group) > 1 or node in edges[node]:
                        yield group


def multiplies(pattern: str | bytes, flags: int = 0) -> str:
    """Return a text whose repetition doubles the ways in which the pattern may match, "" if there is none."""
    automaton = Automaton(pattern, flags)
    if found := _multiplies(automaton):
        return found
    for body in automaton.assertions:
        inner = Automaton("", flags)
        inner.sequence(body)
        if found := _multiplies(inner):
            return found
    return ""


def _multiplies(automaton: Automaton) -> str:
    for group in automaton.loops_gone_back_on():
        for state in group:
            for following, ways in automaton.next[state].items():
                if ways > 1 and following in group:
                    return automaton.word([following], state) or ""
        if len(group) > 1 and (found := _twice(automaton, group)):
            return found
    return ""


def _twice(automaton: Automaton, group: set[int]) -> str:
    """Return a text with two paths from one state of a loop to itself."""
    characters = automaton.characters
    on = {state: [each for each, ways in automaton.next[state].items() if ways and each in group] for state in group}
    edges: dict[tuple[int, int], list[tuple[int, int]]] = {}
    waiting = [(each, each) for each in group]
    while waiting:
        pair = waiting.pop()
        if pair in edges:
            continue
        one, other = pair
        edges[pair] = [
            (a, b) for a in on[one] for b in on[other] if a == b or common(characters[a], characters[b]) is not None
        ]
        waiting += edges[pair]
    for component in strong(edges):
        same = [one for one, other in component if one == other]
        if same and any(one != other for one, other in component):
            return automaton.word(list(automaton.next[same[0]]), same[0]) or "?"
    return ""


def pumps(pattern: str | bytes, flags: int = 0) -> Iterator[tuple[str, str]]:
    """Yield, for each state of a loop, a text that leads to the state and one that leads from it back to it."""
    automaton = Automaton(pattern, flags)
    for group in automaton.loops():
        for state in sorted(group):
            before = automaton.word(automaton.begins, state)
            again = automaton.word([each for each in automaton.next[state] if each in group], state)
            if before is not None and again:
                yield before, again
