"""Functions of jq that expressions may call, without those that assign or read anything but the object."""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import quote

from steersman.machinery.values import times
from steersman.net import ascii
from steersman.nodes.stages.jq import values
from steersman.nodes.stages.jq.filters import Filter, Function, Scope, identity, literal
from steersman.nodes.stages.jq.parser import Native, parse_definitions
from steersman.nodes.stages.jq.values import JQError, Run, Value, number, shown, to_json, to_text, truth, type_name

_MOST_PATTERN: Final = 1000
_LONGEST_TIME: Final = 64
_SPACE: Final = " \t\r\n\v\f"


# Natives of values: they take the input and the values of their arguments


def _of_values(call: Callable[..., Value]) -> Native:
    """Return a native that is called with the input and with each combination of its arguments' values."""

    def native(*arguments: Filter) -> Filter:
        def combined(scope: Scope, value: Value, at: int, given: tuple[Value, ...]) -> Iterator[Value]:
            if at == len(arguments):
                scope.run.spend()
                yield call(scope.run, value, *given)
                return
            for each in arguments[at](scope, value):
                yield from combined(scope, value, at + 1, (*given, each))

        def filter_(scope: Scope, value: Value) -> Iterator[Value]:
            yield from combined(scope, value, 0, ())

        return filter_

    return native


def _error(run: Run, value: Value, *given: Value) -> Value:
    raise JQError(given[0] if given else value)


def _length(run: Run, value: Value) -> Value:
    if value is None:
        return 0
    if isinstance(value, bool):
        raise JQError(f"{shown(run, value)} has no length")
    return abs(value) if isinstance(value, int | float) else len(value)


def _keys(run: Run, value: Value) -> Value:
    if isinstance(value, dict):
        return values.sorted_keys(run, value)
    if isinstance(value, list):
        run.spend(len(value))
        return list(range(len(value)))
    raise JQError(f"{shown(run, value)} has no keys")


def _has(run: Run, value: Value, key: Value) -> Value:
    if isinstance(value, dict) and isinstance(key, str):
        return key in value
    if isinstance(value, list) and type_name(key) == "number":
        return 0 <= key < len(value)
    raise JQError(f"Cannot check whether {type_name(value)} has a {type_name(key)} key")


def _number_of(run: Run, value: Value) -> Value:
    if type_name(value) == "number":
        return value
    if isinstance(value, str):
        shortened = ascii.lower(value)[:_LONGEST_TIME]
        if len(value) <= _LONGEST_TIME and re.fullmatch(
            r"-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]{1,4})?", shortened
        ):
            whole = shortened.removeprefix("-")
            return int(shortened) if ascii.is_digits(whole) and len(whole) < 19 else number(float(shortened))
        raise JQError(f"{shown(run, value)} cannot be parsed as a number")
    raise JQError(f"{shown(run, value)} cannot be parsed as a number")


def _real(call: Callable[[float], float]) -> Native:
    def applied(run: Run, value: Value) -> Value:
        if type_name(value) != "number":
            raise JQError(f"{shown(run, value)} number required")
        try:
            return number(call(value))
        except (ValueError, OverflowError):
            return math.nan if math.isfinite(value) or math.isnan(value) else value

    return _of_values(applied)


def _power(run: Run, value: Value, base: Value, exponent: Value) -> Value:
    if type_name(base) != "number" or type_name(exponent) != "number":
        raise JQError("pow: number required")
    try:
        found = math.pow(base, exponent)
    except (ValueError, OverflowError, ZeroDivisionError):
        return math.nan
    return number(found)


def _list_of(run: Run, value: Value, whose: str) -> list[Value]:
    if not isinstance(value, list):
        raise JQError(f"{shown(run, value)} cannot be {whose}, as it is not an array")
    run.spend(len(value))
    return value


def _sort(run: Run, value: Value) -> Value:
    return sorted(_list_of(run, value, "sorted"), key=values.key_of(run))


def _flatten(run: Run, value: Value, depth: Value = 1e9) -> Value:
    if type_name(depth) != "number" or depth < 0:
        raise JQError("flatten depth must not be negative")
    found: list[Value] = []
    for each in values.values_of(run, value):
        run.spend()
        found += _flatten(run, each, depth - 1) if isinstance(each, list) and depth >= 1 else [each]
    return found


def _reverse(run: Run, value: Value) -> Value:
    if value is None:
        return []
    if isinstance(value, str):
        run.spend_on_text(len(value))
        return value[::-1]
    return _list_of(run, value, "reversed")[::-1]


def _text_of(run: Run, value: Value, whose: str) -> str:
    if not isinstance(value, str):
        raise JQError(f"{whose} input must be a string")
    run.spend_on_text(len(value))
    return value


def _trimmed(name: str, left: str, right: str) -> Native:
    def trimmed(run: Run, value: Value) -> Value:
        found = _text_of(run, value, name)
        return found.lstrip(left).rstrip(right)

    return _of_values(trimmed)


def _affix(test: Callable[[str, str], bool], name: str) -> Native:
    def found(run: Run, value: Value, part: Value) -> Value:
        if not isinstance(value, str) or not isinstance(part, str):
            raise JQError(f"{name}() requires string inputs")
        run.spend_on_text(len(part))
        return test(value, part)

    return _of_values(found)


def _without(cut: Callable[[str, str], str]) -> Native:
    def found(run: Run, value: Value, part: Value) -> Value:
        if not isinstance(value, str) or not isinstance(part, str):
            return value
        run.spend_on_text(len(value))
        return cut(value, part)

    return _of_values(found)


def _split(run: Run, value: Value, separator: Value) -> Value:
    if not isinstance(value, str) or not isinstance(separator, str):
        raise JQError("split input and separator must be strings")
    return values.split(run, value, separator)


def _join(run: Run, value: Value, separator: Value) -> Value:
    found = []
    for each in values.values_of(run, value):
        if isinstance(each, list | dict):
            raise JQError(f"{shown(run, separator)} and {shown(run, each)} cannot be added")
        found.append("" if each is None else to_text(run, each))
    if not found:
        return ""
    if not isinstance(separator, str):
        raise JQError(f"{shown(run, separator)} cannot be joined by")
    run.spend_on_text(sum(map(len, found)) + len(separator) * len(found))
    return separator.join(found)


def _ascii_case(change: Callable[[str], str], name: str) -> Native:
    return _of_values(lambda run, value: change(_text_of(run, value, name)))


def _ascii_upper(text: str) -> str:
    return "".join(chr(ord(each) - 32) if "a" <= each <= "z" else each for each in text)


def _explode(run: Run, value: Value) -> Value:
    found = _text_of(run, value, "explode")
    run.spend(len(found))
    return [ord(each) for each in found]


def _implode(run: Run, value: Value) -> Value:
    found = _list_of(run, value, "imploded")
    if not all(isinstance(each, int) and 0 <= each <= 0x10FFFF for each in found):
        raise JQError("Unicode codepoint must be numeric")
    return "".join("\ufffd" if 0xD800 <= each < 0xE000 else chr(each) for each in found)


def _from_json(run: Run, value: Value) -> Value:
    found = _text_of(run, value, "fromjson")
    try:
        return json.loads(found)
    except (ValueError, RecursionError):
        raise JQError(f"{found[:11]} (while parsing '{found[:100]}')") from None


def _least(run: Run, value: Value, keys: Value, *, most: bool) -> Value:
    """Return the first least, or the last greatest, of an array by its keys."""
    found, best = None, None
    for each, key in zip(_list_of(run, value, "searched"), keys, strict=True):
        order = 0 if best is None else values.compare(run, key, best[0])
        if best is None or (order >= 0 if most else order < 0):
            best, found = (key,), each
    return found


def _index_of(run: Run, value: Value, wanted: Value, *, last: bool) -> Value:
    found = values.indices(run, value, wanted)
    return found[-1 if last else 0] if found else None


def _path_of(run: Run, value: Value, path: Value) -> Value:
    for key in _list_of(run, path, "a path"):
        if value is None:
            return None
        value = values.index(run, value, key)
    return value


def _paths(scope: Scope, value: Value) -> Iterator[Value]:
    """Yield the paths of all parts of a value."""

    def below(here: Value, path: list[Value]) -> Iterator[Value]:
        items: Any = here.items() if isinstance(here, dict) else enumerate(here) if isinstance(here, list) else ()
        for key, each in items:
            scope.run.spend(1 + len(path))
            yield [*path, key]
            yield from below(each, [*path, key])

    yield from below(value, [])


def _from_entries(run: Run, value: Value) -> Value:
    found: dict[str, Value] = {}
    for each in _list_of(run, value, "entries"):
        if not isinstance(each, dict):
            raise JQError(f"Cannot index {type_name(each)} with string")
        key = next((each[name] for name in ("key", "k", "name", "Name", "Key", "K") if name in each), None)
        content = next((each[name] for name in ("value", "v", "Value") if name in each), None)
        found[to_text(run, key)] = content
    return found


def _transpose(run: Run, value: Value) -> Value:
    rows = [_list_of(run, each, "transposed") for each in _list_of(run, value, "transposed")]
    width = max(map(len, rows), default=0)
    run.spend(width * len(rows))
    return [[row[at] if at < len(row) else None for row in rows] for at in range(width)]


# Natives of filters


def _empty() -> Filter:
    def filter_(scope: Scope, value: Value) -> Iterator[Value]:
        return
        yield

    return filter_


def _range(*bounds: Filter) -> Filter:
    def filter_(scope: Scope, value: Value) -> Iterator[Value]:
        begin, end = (literal(0), bounds[0]) if len(bounds) == 1 else bounds[:2]
        steps = bounds[2] if len(bounds) == 3 else literal(1)
        for first in begin(scope, value):
            for last in end(scope, value):
                for step in steps(scope, value):
                    if any(type_name(each) != "number" for each in (first, last, step)):
                        raise JQError("Range bounds must be numeric")
                    at = first
                    while step != 0 and (at < last if step > 0 else at > last):
                        scope.run.spend()
                        yield at
                        at = number(at + step)

    return filter_


def _limit(count: Filter, limited: Filter) -> Filter:
    def filter_(scope: Scope, value: Value) -> Iterator[Value]:
        for most in count(scope, value):
            if type_name(most) != "number":
                raise JQError("Invalid arguments to limit")
            left = most
            if left <= 0:
                continue
            for each in limited(scope, value):
                yield each
                left -= 1
                if left <= 0:
                    break

    return filter_


def _quantifier(source: Filter, test: Filter, *, wanted: bool) -> Filter:
    """Return `any` (wanted True) or `all` (wanted False)."""

    def filter_(scope: Scope, value: Value) -> Iterator[Value]:
        for each in source(scope, value):
            for found in test(scope, each):
                scope.run.spend()
                if truth(found) is wanted:
                    yield wanted
                    return
        yield not wanted

    return filter_


def _is_empty(tested: Filter) -> Filter:
    def filter_(scope: Scope, value: Value) -> Iterator[Value]:
        yield next((False for _ in tested(scope, value)), True)

    return filter_


def _by_keys(call: Callable[[Run, list[Value], list[Value]], Value]) -> Native:
    """Return a native of an array and the keys of its elements, of which each is an array of values."""

    def native(key: Filter) -> Filter:
        def filter_(scope: Scope, value: Value) -> Iterator[Value]:
            items = _list_of(scope.run, value, "sorted")
            keys = []
            for each in items:
                scope.run.spend()
                keys.append(list(key(scope, each)))
            yield call(scope.run, items, keys)

        return filter_

    return native


def _groups(run: Run, items: list[Value], keys: list[Value]) -> list[list[Value]]:
    order = values.key_of(run)
    found: list[list[Value]] = []
    last: tuple[Value, ...] = ()
    for key, each in sorted(zip(keys, items, strict=True), key=lambda pair: order(pair[0])):
        if not last or values.compare(run, last[0], key) != 0:
            found.append([])
            last = (key,)
        found[-1].append(each)
    return found


def _sorted_by(run: Run, items: list[Value], keys: list[Value]) -> Value:
    order = values.key_of(run)
    return [each for _, each in sorted(zip(keys, items, strict=True), key=lambda pair: order(pair[0]))]


# Regular expressions, times, formats


def _matches(run: Run, value: Value, given: Value, flags: Value = None) -> list[Any]:
    """Return the matches of a pattern in a string. Raises JQError."""
    import re2

    if isinstance(given, list):
        given, flags = [*given, None][:2]
    if not isinstance(value, str) or not isinstance(given, str) or not isinstance(flags, str | None):
        raise JQError(f"{shown(run, value)} cannot be matched, as it is not a string")
    chosen = frozenset(flags or "")
    if len(given) > _MOST_PATTERN or chosen - frozenset("gisnx"):
        raise JQError(f"{given[:100]} (at offset 0) is not a valid regex")
    run.spend(100)
    run.spend_on_text(len(value) * 8)
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = "i" not in chosen
    options.dot_nl = "s" in chosen
    try:
        compiled = re2.compile(given, options)
    except re2.error:
        raise JQError(f"{given} (at offset 0) is not a valid regex") from None
    found = []
    for each in compiled.finditer(value):
        run.spend()
        if each.end() > each.start() or "n" not in chosen:
            found.append(each)
        if found and "g" not in chosen:
            break
    return found


def _match_object(run: Run, match: Any) -> Value:
    names = {at: name for name, at in match.re.groupindex.items()}
    run.spend(1 + match.re.groups)
    return {
        "offset": match.start(),
        "length": match.end() - match.start(),
        "string": match[0],
        "captures": [
            {
                "offset": match.start(at),
                "length": max(match.end(at) - match.start(at), 0),
                "string": match[at],
                "name": names.get(at),
            }
            for at in range(1, match.re.groups + 1)
        ],
    }


def _match(*given: Filter) -> Filter:
    found = _of_values(lambda run, value, *rest: [_match_object(run, each) for each in _matches(run, value, *rest)])

    def filter_(scope: Scope, value: Value) -> Iterator[Value]:
        for some in found(*given)(scope, value):
            yield from some

    return filter_


def _scan(run: Run, value: Value, *given: Value) -> Value:
    flags = (given[1] if len(given) > 1 else None) or ""
    some = _matches(run, value, given[0], f"{flags}g" if isinstance(flags, str) else flags)
    return [[each[at] for at in range(1, each.re.groups + 1)] if each.re.groups else each[0] for each in some]


def _replaced(pattern: Filter, replacement: Filter, flags: Filter, *, every: bool) -> Filter:
    def filter_(scope: Scope, value: Value) -> Iterator[Value]:
        run = scope.run
        for given in pattern(scope, value):
            for chosen in flags(scope, value):
                wanted = f"{chosen or ''}{'g' if every else ''}" if isinstance(chosen, str | None) else chosen
                found, at = "", 0
                for each in _matches(run, value, given, wanted):
                    names = {name: each[place] for name, place in each.re.groupindex.items()}
                    made = next(replacement(scope, names), "")
                    if not isinstance(made, str):
                        raise JQError(f"{shown(run, names)} cannot be added to a string")
                    run.spend_on_text(len(found) + len(made) + each.start() - at)
                    found += value[at : each.start()] + made
                    at = each.end()
                yield found + value[at:]

    return filter_


def _time(run: Run, value: Value) -> Value:
    try:
        return int(times.parse(_text_of(run, value, "fromdate")[:_LONGEST_TIME]).timestamp())
    except times.TimeError:
        raise JQError(f"date {shown(run, value)} does not match format") from None


def _time_text(run: Run, value: Value) -> Value:
    if type_name(value) != "number" or not 0 <= value < 253402300800:
        raise JQError("strftime/1 requires parsed datetime inputs")
    return datetime.fromtimestamp(int(value), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _base64_decoded(run: Run, value: Value) -> str:
    found = to_text(run, value)
    try:
        return base64.b64decode(found + "=" * (-len(found) % 4)).decode(errors="replace")
    except (binascii.Error, ValueError):
        raise JQError(f"{shown(run, value)} is not valid base64 data") from None


def _html(run: Run, value: Value) -> str:
    found = to_text(run, value)
    for char, escaped in {"&": "&amp;", "<": "&lt;", ">": "&gt;", "'": "&#39;", '"': "&quot;"}.items():
        found = found.replace(char, escaped)
    run.spend_on_text(len(found))
    return found


FORMATS: Final[Mapping[str, Callable[[Run, Value], str]]] = MappingProxyType(
    {
        "@base64": lambda run, value: base64.b64encode(to_text(run, value).encode(errors="replace")).decode(),
        "@base64d": _base64_decoded,
        "@html": _html,
        "@json": to_json,
        "@text": to_text,
        "@uri": lambda run, value: quote(to_text(run, value).encode(errors="replace"), safe="-_.~"),
    }
)

NATIVES: Final[Mapping[str, Native]] = MappingProxyType(
    {
        "all/2": lambda source, test: _quantifier(source, test, wanted=False),
        "any/2": lambda source, test: _quantifier(source, test, wanted=True),
        "ascii_downcase/0": _ascii_case(ascii.lower, "ascii_downcase"),
        "ascii_upcase/0": _ascii_case(_ascii_upper, "ascii_upcase"),
        "ceil/0": _real(math.ceil),
        "contains/1": _of_values(values.contains),
        "debug/0": lambda: identity,
        "empty/0": _empty,
        "endswith/1": _affix(str.endswith, "endswith"),
        "env/0": lambda: literal({}),
        "error/0": _of_values(_error),
        "error/1": _of_values(_error),
        "exp/0": _real(math.exp),
        "explode/0": _of_values(_explode),
        "fabs/0": _real(math.fabs),
        "false/0": lambda: literal(False),
        "first/1": lambda source: _limit(literal(1), source),
        "flatten/0": _of_values(_flatten),
        "flatten/1": _of_values(_flatten),
        "floor/0": _real(math.floor),
        "from_entries/0": _of_values(_from_entries),
        "fromdateiso8601/0": _of_values(_time),
        "fromjson/0": _of_values(_from_json),
        "getpath/1": _of_values(_path_of),
        "group_by/1": _by_keys(_groups),
        "gsub/2": lambda pattern, by: _replaced(pattern, by, literal(None), every=True),
        "gsub/3": lambda pattern, by, flags: _replaced(pattern, by, flags, every=True),
        "halt/0": _of_values(lambda run, value: _error(run, "halt is not supported")),
        "has/1": _of_values(_has),
        "implode/0": _of_values(_implode),
        "index/1": _of_values(lambda run, value, wanted: _index_of(run, value, wanted, last=False)),
        "indices/1": _of_values(values.indices),
        "infinite/0": lambda: literal(math.inf),
        "input/0": _of_values(lambda run, value: _error(run, "No more inputs")),
        "inputs/0": _empty,
        "isempty/1": _is_empty,
        "isinfinite/0": _of_values(lambda run, value: type_name(value) == "number" and math.isinf(value)),
        "isnan/0": _of_values(lambda run, value: type_name(value) == "number" and math.isnan(value)),
        "join/1": _of_values(_join),
        "keys/0": _of_values(_keys),
        "keys_unsorted/0": _of_values(lambda run, value: list(value) if isinstance(value, dict) else _keys(run, value)),
        "length/0": _of_values(_length),
        "limit/2": _limit,
        "log/0": _real(math.log),
        "log10/0": _real(math.log10),
        "log2/0": _real(math.log2),
        "ltrim/0": _trimmed("ltrim", _SPACE, ""),
        "ltrimstr/1": _without(str.removeprefix),
        "match/1": _match,
        "match/2": _match,
        "max/0": _of_values(lambda run, value: _least(run, value, value, most=True)),
        "max_by/1": _by_keys(lambda run, items, keys: _least(run, items, keys, most=True)),
        "min/0": _of_values(lambda run, value: _least(run, value, value, most=False)),
        "min_by/1": _by_keys(lambda run, items, keys: _least(run, items, keys, most=False)),
        "nan/0": lambda: literal(math.nan),
        "not/0": _of_values(lambda run, value: not truth(value)),
        "now/0": _of_values(lambda run, value: times.unix_now()),
        "null/0": lambda: literal(None),
        "paths/0": lambda: _paths,
        "pow/2": _of_values(_power),
        "range/1": _range,
        "range/2": _range,
        "range/3": _range,
        "reverse/0": _of_values(_reverse),
        "rindex/1": _of_values(lambda run, value, wanted: _index_of(run, value, wanted, last=True)),
        "round/0": _real(lambda value: math.floor(abs(value) + 0.5) * math.copysign(1, value)),
        "rtrim/0": _trimmed("rtrim", "", _SPACE),
        "rtrimstr/1": _without(str.removesuffix),
        "scan_all/1": _of_values(_scan),
        "scan_all/2": _of_values(_scan),
        "sort/0": _of_values(_sort),
        "sort_by/1": _by_keys(_sorted_by),
        "split/1": _of_values(_split),
        "sqrt/0": _real(math.sqrt),
        "startswith/1": _affix(str.startswith, "startswith"),
        "sub/2": lambda pattern, by: _replaced(pattern, by, literal(None), every=False),
        "sub/3": lambda pattern, by, flags: _replaced(pattern, by, flags, every=False),
        "test/1": _of_values(lambda run, value, pattern: bool(_matches(run, value, pattern))),
        "test/2": _of_values(lambda run, value, pattern, flags: bool(_matches(run, value, pattern, flags))),
        "toarray/0": _of_values(lambda run, value: value if isinstance(value, list) else [value]),
        "todateiso8601/0": _of_values(_time_text),
        "tojson/0": _of_values(to_json),
        "tonumber/0": _of_values(_number_of),
        "tostring/0": _of_values(to_text),
        "transpose/0": _of_values(_transpose),
        "trim/0": _trimmed("trim", _SPACE, _SPACE),
        "true/0": lambda: literal(True),
        "trunc/0": _real(math.trunc),
        "type/0": _of_values(lambda run, value: type_name(value)),
        "unique_by/1": _by_keys(lambda run, items, keys: [each[0] for each in _groups(run, items, keys)]),
        "utf8bytelength/0": _of_values(
            lambda run, value: len(_text_of(run, value, "utf8bytelength").encode(errors="replace"))
        ),
    }
)

_IN_JQ: Final = """
def map(f): [.[] | f];
def select(f): if f then . else empty end;
def recurse(f): def r: ., (f | r); r;
def recurse(f; c): def r: ., (f | select(c) | r); r;
def recurse: recurse(.[]?);
def values: select(. != null);
def nulls: select(. == null);
def booleans: select(type == "boolean");
def numbers: select(type == "number");
def strings: select(type == "string");
def arrays: select(type == "array");
def objects: select(type == "object");
def iterables: select(type == "array" or type == "object");
def scalars: select(type != "array" and type != "object");
def abs: if type == "number" and . < 0 then -. else . end;
def add: reduce .[] as $x (null; . + $x);
def add(f): reduce f as $x (null; . + $x);
def any: any(.[]; .);
def any(f): any(.[]; f);
def all: all(.[]; .);
def all(f): all(.[]; f);
def in(xs): . as $x | xs | has($x);
def inside(xs): . as $x | xs | contains($x);
def first: .[0];
def last: .[-1];
def last(f): reduce f as $x (null; $x);
def nth($n): .[$n];
def nth($n; f): last(limit($n + 1; f));
def until(c; u): def r: if c then . else (u | r) end; r;
def while(c; u): def r: if c then ., (u | r) else empty end; r;
def repeat(f): def r: ., (f | r); r;
def unique: unique_by(.);
def to_entries: [keys_unsorted[] as $k | {key: $k, value: .[$k]}];
def with_entries(f): to_entries | map(f) | from_entries;
def map_values(f): if type == "array" then [.[] | first(f)] else
  . as $o | [keys_unsorted[] as $k | {key: $k, value: first($o[$k] | f)}] | from_entries end;
def walk(f): def w: (if type == "object" then map_values(w) elif type == "array" then map(w) else . end) | f; w;
def paths(f): . as $o | paths | . as $p | select($o | getpath($p) | f);
def leaf_paths: paths(scalars);
def date: todateiso8601;
def todate: todateiso8601;
def fromdate: fromdateiso8601;
def fromdateiso8601(f): f | fromdateiso8601;
def scan($re): scan_all($re)[];
def scan($re; $flags): scan_all($re; $flags)[];
def capture($re; $flags): match($re; $flags) | [.captures[] | select(.name != null) | {key: .name, value: .string}]
  | from_entries;
def capture($re): capture($re; null);
def split($re; $flags): . as $s | [foreach (match($re; ($flags // "") + "g"), null) as $m ({at: 0};
  if $m == null then {out: $s[.at:]} else {out: $s[.at:$m.offset], at: ($m.offset + $m.length)} end; .out)];
def splits($re; $flags): split($re; $flags)[];
def splits($re): splits($re; null);
"""


@cache
def library() -> Mapping[str, Function]:
    """Return the functions that are defined in jq itself, by `NAME/ARITY`."""
    return {each.name: each for each in parse_definitions(_IN_JQ, NATIVES, FORMATS)}
