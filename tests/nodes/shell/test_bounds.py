"""Programs in containers whose arguments or input demand much work.

Each pauses regularly, and none uses much memory.
"""

from __future__ import annotations

import io
import tarfile
import time
import tracemalloc
from collections.abc import Callable
from typing import Final

import pytest

from steersman.nodes.shell.effects import Answer, InputBuffer, Read, ReadLine, Wait, World, Write
from steersman.nodes.shell.shell import Shell

_MAX_BLOCKED: Final = 0.05
"""Allowed processor time in seconds between two effects; several times what the slowest program needs."""
_MEMORY: Final = 24 << 20
_MOST_EFFECTS: Final = 400
_RANDOM: Final = bytes(b"ab"[number * number % 7919 * 31 % 17 % 2] for number in range(60_000))
_FILES: Final = {f"/tmp/f{number}": b"" for number in range(5000)}
_FEW: Final = dict(list(_FILES.items())[:150])


def _run_some(words: list[str], files: dict[str, bytes], stdin: bytes) -> tuple[float, bytes, int | None]:
    """Run a command for some effects.

    Returns the longest time between two effects, the output, and the exit code if the command has ended.
    """
    world = World("pod", {}, lambda: 1_800_000_000.0, dict(files))
    source = InputBuffer()
    source.add(stdin)
    execution = Shell(world).run(words)
    answer: Answer = None
    longest, written = 0.0, bytearray()
    for _ in range(_MOST_EFFECTS):
        started_at = time.thread_time()
        try:
            effect = execution.send(answer)
        except StopIteration as done:
            return max(longest, time.thread_time() - started_at), bytes(written), done.value
        longest = max(longest, time.thread_time() - started_at)
        answer = None
        match effect:
            case Write(_, data):
                written += data[:100]
                assert len(data) <= 2 << 20
            case Read():
                answer = source.piece()
            case ReadLine():
                answer = source.line() or source.rest()
            case Wait(seconds) if seconds == float("inf"):
                break
    return longest, bytes(written), None


def _header(kind: bytes, size: bytes) -> bytes:
    """Return an archive header with any size field."""
    info = bytearray(tarfile.TarInfo("x").tobuf(tarfile.USTAR_FORMAT))
    info[124:136], info[156:157], info[148:156] = size.ljust(12, b"\0"), kind, b" " * 8
    info[148:156] = b"%06o\0 " % sum(info)
    return bytes(info)


def _extended(size: str) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.PAX_FORMAT) as archive:
        info = tarfile.TarInfo("x")
        info.pax_headers = {"size": size}
        archive.addfile(info)
    return data.getvalue()


_CASES: Final[dict[str, tuple[list[str], dict[str, bytes], bytes]]] = {
    "awk": (["awk", "{print " + "$0," * 20_000 + "$0}"], {}, b"a" * 60_000 + b"\n"),
    "case": (["sh", "-c", "x=$(cat /x); case $x in " + "*a*b" * 200 + "c) ;; esac"], {"/x": _RANDOM}, b""),
    "cat": (["cat", *["/tmp/f1"] * 60_000], _FILES, b""),
    "chmod": (["chmod", "644", *["/tmp/f1"] * 60_000], _FEW, b""),
    "cut": (["cut", "-d", ",", "-f", "1-," * 90 + "1"], {}, b"a,b" * 20_000 + b"\n"),
    "date": (["date", "+" + "%Y" * 130_000], {}, b""),
    "find": (["find", "/tmp", "-name", "[" * 1000], _FILES, b""),
    "grep": (["grep", "-E", "(.{30}){30}x[ab]*a[ab]{100}c"], {}, _RANDOM + b"\n"),
    "mkdir": (["mkdir", "-p", "/tmp" + "/a" * 60], _FILES, b""),
    "rm": (["rm", "-rf", *["/x"] * 60_000], _FEW, b""),
    "sed-addresses": (["sed", "-n", "\n".join(f"/x[ab]*y{each}/=" for each in range(100))], {}, b"ab\n" * 20_000),
    "sed-classes": (["sed", "\n".join(["/" + "[" * 1000 + "/p"] * 100)], {}, b"a\n"),
    "sed-grows": (["sed", *["-es/.*/&&/"] * 60], {}, b"a" * 1000 + b"\n"),
    "sed-much": (["sed", "s/.*/" + "&" * 1000 + "/"], {}, b"a" * 60_000 + b"\n"),
    "sed-prints": (["sed", ";".join("p" * 100)], {}, b"a" * 60_000 + b"\n"),
    "stat": (["stat", "-c", "%n" * 20_000, "/" + "./" * 50_000 + "tmp"], {}, b""),
    "tar": (["tar", "cf", "/tmp/a.tar", *["/tmp"] * 100], {f"/tmp/{each}": b"x" * 1000 for each in range(900)}, b""),
    "test": (["test", *["-d", "/x", "-o"] * 3000], _FILES, b""),
    "touch": (["touch", *["/tmp/f1"] * 60_000], _FEW, b""),
}


@pytest.mark.parametrize("name", _CASES)
def test_gives_way_and_takes_little(name: str) -> None:
    # a second time only if something else held up the first
    assert any(_run_some(*_CASES[name])[0] < _MAX_BLOCKED for _ in range(2))


@pytest.mark.parametrize("name", ["awk", "sed-grows", "sed-much", "stat", "tar"])
def test_takes_little_memory(name: str) -> None:
    tracemalloc.start()
    try:
        _run_some(*_CASES[name])
        assert tracemalloc.get_traced_memory()[1] < _MEMORY
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", [b"g", b"x", b"0", b"L"])
@pytest.mark.parametrize("size", [b"-1000", b"-2000", b"+1000", b"0o1000", b"1_000"])
def test_an_archive_whose_sizes_are_no_numbers_is_refused(kind: bytes, size: bytes) -> None:
    _, written, code = _run_some(["tar", "xf", "-"], {}, _header(kind, size) + bytes(1024))
    assert (written, code) == (b"tar: invalid tar magic\n", 1)


def test_an_extended_header_with_a_size_of_many_digits_is_refused() -> None:
    _, written, code = _run_some(["tar", "xf", "-"], {}, _extended("9" * 5000))
    assert (written, code) == (b"tar: invalid tar magic\n", 1)


@pytest.mark.parametrize("words", [["sleep", "\udc80"], ["kill", "\udc80"]])
def test_words_that_are_no_unicode_are_reported(words: list[str]) -> None:
    _, written, code = _run_some(words, {}, b"")
    assert b"\x80" in written
    assert code == 1


_KEPT: Final[dict[str, Callable[[int], str]]] = {
    "traps": lambda number: f'trap "$b" S{number}',
    "functions": lambda number: f"f{number}() {{ {'echo word; ' * 300} }}",
}


@pytest.mark.parametrize("kind", _KEPT)
def test_what_a_shell_keeps_is_bounded(kind: str) -> None:
    lines = "\n".join(_KEPT[kind](number) for number in range(120))
    _, written, _ = _run_some(["sh"], {"/b": b"a" * 20_000}, f"b=$(cat /b)\n{lines}\n".encode())
    assert b"out of memory" in written


def test_what_inner_shells_kept_is_given_back() -> None:
    script = "f() { echo word; }; trap : EXIT TERM"
    text = f"i=0; while [ $i -lt 30 ]; do sh -c '{script}'; x=$({script}); (f() {{ f; }}); i=$((i+1)); done"
    world = World("pod", {}, lambda: 0.0)
    execution = Shell(world).run(["sh", "-c", text])
    for _ in execution:
        pass
    assert world.count_characters((1 << 20) - 2000)


def test_cut_writes_what_two_ranges_have_in_common_once() -> None:
    _, written, _ = _run_some(["cut", "-c", "3-5,1-4,2"], {}, b"abcdefg\n")
    assert written == b"abcde\n"
