"""Programs that read and write text line by line."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator
from heapq import merge
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from steersman.net.ascii import is_digits
from steersman.nodes.shell.effects import PIECE, Buffer, Execution, Missing, Repeated, Wait, Work, World, Write, line
from steersman.nodes.shell.lines import Input
from steersman.nodes.shell.options import Options, options_of
from steersman.nodes.shell.paths import absolute
from steersman.nodes.shell.patterns import MOST_SEARCHED, PatternError, literal, regular, search_work, searching
from steersman.work.patterns import late_pattern

if TYPE_CHECKING:
    import re2

_MOST_SORTED: Final = 4 << 20
"""Bytes that `sort` buffers, with the overhead of each line."""
_LINE_ITSELF: Final = 48
"""Overhead of a line in bytes."""
_AT_ONCE: Final = 512
"""Lines that are processed between two effects."""
_MERGED_AT_ONCE: Final = 128
"""Lines that `sort` merges between two effects; each is compared several times."""
_SORTED_NUMBER: Final = late_pattern(rb"\s{0,64}(-?[0-9]{1,18}(?:\.[0-9]{1,9})?)")
_MOST_COLUMNS: Final = 100
"""Columns that `awk` prints."""
_FOLLOWED_EVERY: Final = 1.0
"""Seconds between two reads of a followed file."""
_PRINTED_COLUMNS: Final = late_pattern(r"\{ *print ((?:\$[0-9]{1,3}(?:, ?)?)+) *\}", re.ASCII)
_COLUMN: Final = late_pattern(r"\$([0-9]+)", re.ASCII)
_RANGE: Final = late_pattern("([0-9]{1,9})?(-)?([0-9]{1,9})?", re.ASCII)
_SETS: Final = MappingProxyType(
    {
        "[:upper:]": "A-Z",
        "[:lower:]": "a-z",
        "[:digit:]": "0-9",
        "[:alpha:]": "A-Za-z",
        "[:alnum:]": "A-Za-z0-9",
        "[:space:]": " \\t\\n\\r",
        "[:blank:]": " \\t",
    }
)
_ESCAPES: Final = MappingProxyType({"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "0": "\0"})


def cat(world: World, words: list[str]) -> Execution:
    """`cat [FILE...]`; input is written at once."""
    source = Input(world, "cat", [each for each in words if not each.startswith("-") or each == "-"])
    while piece := (yield from source.piece()):
        yield Write(1, piece)
    return source.code


def head(world: World, words: list[str]) -> Execution:
    """`head [-n LINES | -c BYTES] [FILE...]`; with `-LINES` or `-BYTES` everything but so many last ones."""
    count, in_bytes, paths, _ = _ends(words)
    number = _number(count)
    source = Input(world, "head", paths)
    if count.startswith("-"):
        return (yield from (_all_but_last_bytes if in_bytes else _all_but_last_lines)(source, number))
    if in_bytes:
        while number > 0 and (piece := (yield from source.piece())):
            yield Write(1, piece[:number])
            number -= len(piece)
        return source.code
    while number > 0 and (lines := (yield from source.lines())):
        yield Write(1, b"".join(lines[:number]))
        number -= len(lines)
    return source.code


def _all_but_last_lines(source: Input, count: int) -> Execution:
    """Write all lines but the last `count` ones, which are buffered."""
    memory, held = source.world.memory, 0
    last: deque[bytes] = deque()
    try:
        while lines := (yield from source.lines()):
            more = sum(map(len, lines)) + _LINE_ITSELF * len(lines)
            if not memory.reserve(more):
                return (yield from _failed("head: out of memory"))
            held += more
            last += lines
            written = [last.popleft() for _ in range(len(last) - count)]
            if written:
                yield Write(1, b"".join(written))
                less = sum(map(len, written)) + _LINE_ITSELF * len(written)
                memory.release(less)
                held -= less
        return source.code
    finally:
        memory.release(held)


def _all_but_last_bytes(source: Input, count: int) -> Execution:
    """Write all bytes but the last `count` ones, which are buffered."""
    memory, last = source.world.memory, bytearray()
    held = 0
    try:
        while piece := (yield from source.piece()):
            if not memory.reserve(len(piece)):
                return (yield from _failed("head: out of memory"))
            held += len(piece)
            last += piece
            written = bytes(last[: max(0, len(last) - count)])
            if written:
                del last[: len(written)]
                yield Write(1, written)
                memory.release(len(written))
                held -= len(written)
        return source.code
    finally:
        memory.release(held)


def tail(world: World, words: list[str]) -> Execution:
    """`tail [-n LINES | -n +LINE | -c BYTES] [-f | -F] [FILE...]`.

    With `-f` appended text is written until the program is ended, with `-F` also of files that do not exist yet.
    """
    count, in_bytes, paths, follows = _ends(words)
    number = _number(count)
    source = Input(world, "tail", paths)
    data = yield from source.all()
    if count.startswith("+"):
        first = max(number, 1)
        at = min(first - 1, len(data)) if in_bytes else (yield from _line_at(world, data, first))
    else:
        at = max(0, len(data) - number) if in_bytes else (yield from _last_lines(world, data, number))
    if data[at:]:
        yield Write(1, data[at:])
    if follows and paths and (not source.code or follows == "-F"):
        yield from _followed(world, [absolute(world, each) for each in paths], waits=follows == "-F")
    return source.code


def _followed(world: World, paths: list[str], *, waits: bool) -> Work[None]:
    """Write what is appended to files, once a second. With `waits`, also wait for files that do not exist yet."""
    seen = {path: len(data) for path in paths if (data := world.read(path)) is not None}
    if not seen and not waits:
        yield Wait(float("inf"))
    while True:
        yield Wait(_FOLLOWED_EVERY)
        is_quiet = True
        for path in paths:
            yield from world.spend(lines=8)
            data = world.read(path) or b""
            before = seen.get(path, 0)
            seen[path] = len(data)
            if more := data[before if len(data) >= before else 0 :]:
                is_quiet = False
                yield Write(1, more)
        if is_quiet:
            yield Repeated(_FOLLOWED_EVERY)


def _line_at(world: World, data: bytes, number: int) -> Work[int]:
    """Return the position of a line; the first line is 1."""
    at = 0
    for passed in range(number - 1):
        if not passed % _AT_ONCE:
            yield from world.spend(lines=_AT_ONCE)
        at = data.find(b"\n", at) + 1
        if not at:
            return len(data)
    return at


def _last_lines(world: World, data: bytes, wanted: int) -> Work[int]:
    """Return the position of the last `wanted` lines of a text."""
    at = len(data)
    if wanted and data.endswith(b"\n"):
        at -= 1
    for number in range(wanted):
        if not number % _AT_ONCE:
            yield from world.spend(lines=_AT_ONCE)
        at = data.rfind(b"\n", 0, at)
        if at < 0:
            break
    return at + 1 if wanted else len(data)


def _ends(words: list[str]) -> tuple[str, bool, list[str], str]:
    """Parse the arguments of head and tail.

    Returns the number of lines or bytes with its sign, True if the number counts bytes, the paths, and the option for
    following files.
    """
    wanted, in_bytes, follows = "10", False, ""
    paths: list[str] = []
    rest = deque(words)
    while rest:
        word = rest.popleft()
        if word in ("-f", "-F"):
            follows = word
        elif word in ("-n", "-c") and rest and is_digits(rest[0].lstrip("+-")):
            wanted, in_bytes = rest.popleft(), word == "-c"
        elif word.startswith(("-n+", "-c+", "-n-", "-c-")) and is_digits(word[3:]):
            wanted, in_bytes = word[2:], word.startswith("-c")
        elif word.startswith("-") and is_digits(word.lstrip("-nc")):
            wanted, in_bytes = word.lstrip("-nc"), word.startswith("-c")
        elif not word.startswith("-") or word == "-":
            paths.append(word)
    return wanted, in_bytes, paths, follows


def _number(count: str) -> int:
    """Parse a number of lines or bytes without its sign."""
    return int(count.lstrip("+-")[:9])


def wc(world: World, words: list[str]) -> Execution:
    """`wc [-l] [-w] [-c] [FILE...]`."""
    source = Input(world, "wc", [each for each in words if not each.startswith("-")])
    lines = count = size = 0
    in_word = False
    while piece := (yield from source.piece()):
        lines += piece.count(b"\n")
        size += len(piece)
        found = len(piece.split())
        count += found - (in_word and found > 0 and not piece[:1].isspace())
        in_word = not piece[-1:].isspace()
    counts = {"-l": lines, "-w": count, "-c": size}
    columns = [each for each in words if each in counts] or list(counts)
    yield line(" ".join(str(counts[each]) for each in columns))
    return source.code


def grep(world: World, words: list[str]) -> Execution:
    """`grep [-EFcilnoqsvwx] [-m LINES] [-e] PATTERN [FILE...]`."""
    options = options_of(words, "EFPGRchHilnoqrsvwxa", "emABC")
    if options is None or options.values("A") or options.values("B") or options.values("C"):
        return (yield from _unknown("grep", words))
    patterns = [*options.values("e"), *(options.rest[:1] if not options.values("e") else ())]
    paths = options.rest[0 if options.values("e") else 1 :]
    if not patterns:
        yield Write(2, b"grep: no pattern\n")
        return 2
    flags = options.flags
    parts = [part for each in patterns for part in each.split("\n")]
    try:
        pattern = regular(
            *(map(literal, parts) if "F" in flags else parts),
            extended="E" in flags or "P" in flags,
            ignores_case="i" in flags,
            whole="x" if "x" in flags else "w" if "w" in flags else "",
        )
    except PatternError as error:
        yield Write(2, f"grep: bad regex '{patterns[0]}': {error}\n".encode(errors="replace"))
        return 2
    return (yield from _grepped(Input(world, "grep", paths), pattern, options))


def _grepped(source: Input, wanted: re2._Regexp, options: Options) -> Execution:
    flags, count, number = options.flags, 0, 0
    most = int(options.values("m")[-1][:9]) if options.values("m") and is_digits(options.values("m")[-1]) else 1 << 40
    while count < most and (block := (yield from source.block())):
        looks_at_block = "v" not in flags and search_work(wanted, len(block)) <= MOST_SEARCHED >> 2
        if looks_at_block and wanted.search(block) is None:  # no line of it is found, and most blocks are like this
            number += block.count(b"\n")
            continue
        for lines in _batches(block):
            taken: list[bytes] = []
            for each in lines:
                number += 1
                yield from searching(source.world, wanted, len(each))
                match = wanted.search(each)
                if (match is None) != ("v" in flags) or count >= most:
                    continue
                count += 1
                text = match[0] if "o" in flags and match is not None else each
                taken.append(b"%d:%s\n" % (number, text) if "n" in flags else text + b"\n")
            if "q" in flags and count:
                return 0
            if taken and not flags & {"c", "q", "l"}:
                yield Write(1, b"".join(taken))
            yield from source.world.spend(lines=8 * len(lines))
    if "c" in flags:
        yield line(str(count))
    elif "l" in flags and count:
        yield line(source.path if source.path != "-" else "(standard input)")
    if source.code:
        return 2
    return int(not count)


def _batches(block: bytes) -> Iterator[list[bytes]]:
    """Yield the lines of a block without newlines, a few at a time."""
    lines = block.removesuffix(b"\n").split(b"\n")
    for at in range(0, len(lines), _AT_ONCE):
        yield lines[at : at + _AT_ONCE]


def awk(world: World, words: list[str]) -> Execution:
    """`awk [-F SEPARATOR] '{print $1, $3}'`; nothing else of the language is supported."""
    options = options_of(words, "", "F")
    columns = _PRINTED_COLUMNS.fullmatch(options.rest[0]) if options is not None and options.rest else None
    if options is None or columns is None:
        return (yield from _unknown("awk", words))
    separator = options.values("F")[-1].encode(errors="replace") if options.values("F") else b" "
    source = Input(world, "awk", options.rest[1:])
    numbers = [int(each) for each in _COLUMN.findall(columns[1])]
    if len(numbers) > _MOST_COLUMNS:
        return (yield from _unknown("awk", words))
    while lines := (yield from source.lines()):
        made: list[bytes] = []
        size = 0
        for each in lines:
            text = each.rstrip(b"\n")
            parts = [text, *(text.split() if separator == b" " else text.split(separator))]
            made += (b" ".join(parts[at] if at < len(parts) else b"" for at in numbers), b"\n")
            size += len(made[-2])
            if size > PIECE:
                yield Write(1, b"".join(made))
                made, size = [], 0
            yield from world.spend(len(text), lines=len(numbers))
        if made:
            yield Write(1, b"".join(made))
    return source.code


def sort(world: World, words: list[str]) -> Execution:
    """`sort [-bfnru] [-k FIELD] [-t SEPARATOR] [FILE...]`."""
    options = options_of(words, "bdfghinrsuVz", "ktoS")
    if options is None:
        return (yield from _unknown("sort", words))
    held = 0
    try:
        runs: list[list[bytes]] = []
        source, key = Input(world, "sort", options.rest), _key_of(options)
        while lines := (yield from source.lines()):
            more = sum(map(len, lines)) + _LINE_ITSELF * len(lines)
            if held + more > _MOST_SORTED or not world.memory.reserve(more):
                yield Write(2, b"sort: out of memory\n")
                return 1
            held += more
            runs.append(sorted((each.rstrip(b"\n") for each in lines), key=key, reverse="r" in options.flags))
        yield from _merged(world, runs, key, options)
        return source.code
    finally:
        world.memory.release(held)


def _merged(
    world: World, runs: list[list[bytes]], key: Callable[[bytes], tuple[float, bytes]], options: Options
) -> Work[None]:
    """Merge sorted runs of lines and write the result."""
    last: tuple[float, bytes] | None = None
    merged: Iterator[bytes] = merge(*runs, key=key, reverse="r" in options.flags)
    while batch := list(islice(merged, _MERGED_AT_ONCE)):
        yield from world.spend(lines=4 * len(batch))
        if "u" in options.flags:
            kept: list[bytes] = []
            for each in batch:
                this = key(each)
                if this != last:
                    kept.append(each)
                last = this
            batch = kept
        if batch:
            yield Write(1, b"\n".join(batch) + b"\n")


def _key_of(options: Options) -> Callable[[bytes], tuple[float, bytes]]:
    said = options.values("k")[-1] if options.values("k") else ""
    field = re.match("[0-9]{1,4}", said, re.ASCII)
    at = int(field[0]) - 1 if field is not None else None
    by_number = "n" in options.flags or "n" in said or "h" in options.flags
    separator = options.values("t")[-1].encode(errors="replace")[:1] if options.values("t") else None

    def key(text: bytes) -> tuple[float, bytes]:
        if at is not None:
            parts = text.split(separator, at + 1)
            text = parts[at] if 0 <= at < len(parts) else b""
        if "f" in options.flags:
            text = text.lower()
        if not by_number:
            return 0.0, text
        match = _SORTED_NUMBER.match(text[:128])
        return (float(match[1]) if match is not None else 0.0), text

    return key


def uniq(world: World, words: list[str]) -> Execution:
    """`uniq [-c] [-d] [-u] [FILE]`."""
    options = options_of(words, "cdui", "")
    if options is None:
        return (yield from _unknown("uniq", words))
    source, flags = Input(world, "uniq", options.rest[:1]), options.flags
    last: bytes | None = None
    count = 0

    def group_lines() -> list[bytes]:
        if last is None or ("d" in flags and count < 2) or ("u" in flags and count > 1):
            return []
        return [b"%7d %s\n" % (count, last) if "c" in flags else last + b"\n"]

    while lines := (yield from source.lines()):
        made: list[bytes] = []
        for each in lines:
            text = each.rstrip(b"\n")
            if text == last:
                count += 1
                continue
            made += group_lines()
            last, count = text, 1
        if made:
            yield Write(1, b"".join(made))
    if made := group_lines():
        yield Write(1, made[0])
    return source.code


def cut(world: World, words: list[str]) -> Execution:
    """`cut -d SEPARATOR -f LIST`, `cut -c LIST`, `cut -b LIST`."""
    options = options_of(words, "s", "dfcb")
    said = [] if options is None else [value for letter, value in options.given if letter in "fcb"]
    ranges = _ranges(said[0]) if said else None
    if options is None or ranges is None:
        return (yield from _unknown("cut", words) if options is None else _failed("cut: bad list"))
    source = Input(world, "cut", options.rest)
    separator = options.values("d")[-1].encode(errors="replace")[:1] if options.values("d") else b"\t"
    by_field = bool(options.values("f"))
    while lines := (yield from source.lines()):
        made: list[bytes] = []
        for each in lines:
            text = each.rstrip(b"\n")
            if not by_field:
                made.append(b"".join(text[start:end] for start, end in ranges) + b"\n")
            elif separator in text:
                parts = text.split(separator, ranges[-1][1])
                if ranges[-1][1] >= 0:
                    parts = parts[: ranges[-1][1]]
                chosen = [part for start, end in ranges for part in parts[start : None if end < 0 else end]]
                made.append(separator.join(chosen) + b"\n")
            elif "s" not in options.flags:
                made.append(text + b"\n")
            if len(made) % 64 == 0 and len(text) > 1024:
                yield from world.spend(len(text) * 8)
        yield Write(1, b"".join(made))
    return source.code


def _ranges(said: str) -> list[tuple[int, int]] | None:
    """Parse a list such as `1,3-5,7-` into starts and ends, -1 for an open end; None for invalid text."""
    ranges: list[tuple[int, int]] = []
    for each in said.split(",")[:100]:
        match = _RANGE.fullmatch(each)
        if match is None or not (match[1] or match[3]):
            return None
        start = int(match[1] or 1)
        end = int(match[3]) if match[3] else (-1 if match[2] else start)
        if start < 1 or 0 <= end < start:
            return None
        ranges.append((start - 1, end))
    ranges.sort()
    joined: list[tuple[int, int]] = []
    for start, end in ranges:
        if not joined or 0 <= joined[-1][1] < start:
            joined.append((start, end))
        elif joined[-1][1] >= 0:  # overlapping ranges are written once
            joined[-1] = (joined[-1][0], -1 if end < 0 else max(end, joined[-1][1]))
    return joined


def tr(world: World, words: list[str]) -> Execution:
    """`tr [-d] [-s] [-c] SET [SET]`."""
    options = options_of(words, "dsc", "")
    if options is None or not options.rest:
        return (yield from _unknown("tr", words))
    flags = options.flags
    first = _set_of(options.rest[0])
    if "c" in flags:
        first = bytes(each for each in range(256) if each not in first)
    second = _set_of(options.rest[1]) if len(options.rest) > 1 else b""
    table = None
    if second and "d" not in flags:
        padded = (second + second[-1:] * 256)[: len(first)]
        table = bytes.maketrans(first, padded)
    squeezed = re.compile(b"([%s])\\1+" % re.escape(second or first)) if "s" in flags and (second or first) else None
    source = Input(world, "tr", [])
    while piece := (yield from source.piece()):
        made = piece.translate(table, first) if "d" in flags else piece.translate(table)
        if squeezed is not None:
            made = squeezed.sub(rb"\1", made)
        if made:
            yield Write(1, made)
    return source.code


def _set_of(said: str) -> bytes:
    """Return the characters of a set in order, each once."""
    for name, meant in _SETS.items():
        said = said.replace(name, meant)
    said = re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), said[:1024])
    found: list[int] = []
    at = 0
    data = said.encode("latin-1", errors="replace")
    while at < len(data):
        if data[at + 1 : at + 2] == b"-" and at + 2 < len(data):
            found += range(data[at], data[at + 2] + 1)
            at += 3
        else:
            found.append(data[at])
            at += 1
    return bytes(dict.fromkeys(found))


def tee(world: World, words: list[str]) -> Execution:
    """`tee [-a] FILE...`."""
    source, taken = Input(world, "tee", []), Buffer(world.memory)
    while piece := (yield from source.piece()):
        yield Write(1, piece)
        taken.add(piece)
    for each in words:
        if each.startswith(("-", "/dev/")):
            continue
        path = absolute(world, each)
        before = (world.read(path) or b"") if "-a" in words else b""
        yield from world.spend(len(taken.data), files=world.many_files)
        if not world.put(path, before + taken.data):
            yield Write(2, f"tee: {each}: No space left on device\n".encode(errors="replace"))
            return 1
    return source.code


def _failed(why: str) -> Execution:
    yield Write(2, f"{why}\n".encode(errors="replace"))
    return 1


def _unknown(name: str, words: list[str]) -> Execution:
    """Report an unsupported use of a program."""
    answer = yield Missing(name)
    if isinstance(answer, int):
        return answer
    yield Write(2, f"{name}: not known here: {' '.join(words)}\n".encode(errors="replace")[:1024] + b"\n")
    return 127
