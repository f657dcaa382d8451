"""Commands in simulated containers: whatever they do, they give way, on large files and long words too."""

from __future__ import annotations

import time
from functools import cache
from typing import Final

from steersman.nodes.shell.effects import Answer, InputBuffer, Read, ReadLine, Wait, World, Write
from steersman.nodes.shell.shell import Shell
from tools.fuzz.target import Target, Wrong

_BETWEEN: Final = 0.005
"""Seconds of processor time between two effects, on a machine on which `_work` takes `_WORK`."""
_WORK: Final = 0.004
_AGAIN: Final = 4
"""Times that an input which took long is tried again: others use the machine too."""
_MOST_EFFECTS: Final = 200
_MOST_SECONDS: Final = 0.15
_MOST_WRITTEN: Final = 8 << 20
"""Bytes of one effect: several times what any program makes of its arguments and a line."""
_STDIN: Final = b"\0"
"""Between a script and what it reads; without, the script is what a shell reads."""


@cache
def _files() -> dict[str, bytes]:
    """A million empty lines, one long line, words, lines, and many files."""
    lines = b"".join(b"%d line of text %d\n" % (number * 7919 % 10007, number) for number in range(30_000))
    return {
        "/big": b"\n" * 1_000_000,
        "/long": b"x" * 1_000_000,
        "/words": b"a " * (128 << 10),
        "/mix": lines,
        **{f"/d/{number % 50}/{number}": b"" for number in range(2000)},
    }


def _world() -> World:
    variables = {"W": "a " * (128 << 10), "L": "b" * (256 << 10), "HOME": "/root"}
    return World("pod", variables, lambda: 1_800_000_000.0, dict(_files()))


def _allowed() -> float:
    """Return the seconds that a program may run between two effects on this machine at this time."""
    return _BETWEEN * max(1.0, min(_work() for _ in range(5)) / _WORK)


def _work() -> float:
    began = time.thread_time()
    sum(number * number % 7 for number in range(50_000))
    return time.thread_time() - began


def shell(data: bytes) -> str:
    """The end of a script. No effect of it takes long."""
    longest, end = _longest(data)
    tried = 0
    while longest > _BETWEEN and longest > (allowed := _allowed()):
        if tried == _AGAIN:
            raise Wrong(f"worked for {longest * 1000:.1f} ms between two effects, {allowed * 1000:.1f} are allowed")
        longest, tried = min(longest, _longest(data)[0]), tried + 1
    return end


def _longest(data: bytes) -> tuple[float, str]:
    """The longest time between two effects, and the end."""
    script, separator, stdin = data.partition(_STDIN)
    source = InputBuffer()
    # what is read comes again and again, as a client may send much
    source.add((stdin if separator else script) * 50)
    words = ["sh", "-c", script.decode(errors="replace")] if separator else ["sh"]
    execution = Shell(_world()).run(words)
    answer: Answer = None
    longest = spent = 0.0
    told = ""
    for _ in range(_MOST_EFFECTS):
        began = time.thread_time()
        try:
            effect = execution.send(answer)
        except StopIteration as done:
            return max(longest, time.thread_time() - began), f"{done.value} {told}"
        taken = time.thread_time() - began
        longest, spent = max(longest, taken), spent + taken
        if spent > _MOST_SECONDS or (isinstance(effect, Wait) and effect.seconds == float("inf")):
            break
        answer = None
        if isinstance(effect, Write) and len(effect.data) > _MOST_WRITTEN:
            raise Wrong(f"wrote {len(effect.data)} bytes at once")
        if isinstance(effect, Write) and effect.stream == 2:
            told = effect.data[:30].decode(errors="replace")
        if isinstance(effect, Read):
            answer = source.piece()
        elif isinstance(effect, ReadLine):
            answer = source.line() or source.rest()
    return longest, f"goes on {told}"


_WORDS: Final = (
    b"$W",
    b"$L",
    b'"$W"',
    b'"$L"',
    b" /big",
    b" /long",
    b" /words",
    b" /mix",
    b" /d",
    b" < /big",
    b" < /long",
    b" | ",
    b"; ",
    b" > /f",
    b" >> /f",
    b"$(",
    b")",
    b"`",
    b"while read x; do ",
    b"done",
    b"for i in ",
    b"; do ",
    b"if ",
    b"; then ",
    b"fi",
    b"case $L in ",
    b"esac",
    b";;",
    b"{ ",
    b"; }",
    b"f() ",
    b"f ",
    b"eval ",
    b"sh -c ",
    b"grep ",
    b"grep -c ",
    b"sed ",
    b"'s/a*/b/g' ",
    b"sort ",
    b"uniq -c ",
    b"cut -f1- ",
    b"tr a b ",
    b"wc ",
    b"head -n 99999 ",
    b"tail -n 99999 ",
    b"awk '{print $9}' ",
    b"cat ",
    b"tee /g ",
    b"find / -name '*1*' ",
    b"ls -l ",
    b"rm -r ",
    b"cp -r /d /e; ",
    b"tar cf - ",
    b"tar xf - ",
    b"dd if=/dev/zero of=/z bs=1k count=900; ",
    b"printf '%999d%s' ",
    b"echo -e ",
    b"test -d ",
    b"${L##*c}",
    b"${W%a*}",
    b"base64 ",
    b"md5sum ",
    b"export ",
    b"set -- ",
    b"read a b; ",
    b"seq 1 5000 ",
    b"<<E\n",
    b"\nE\n",
    b"'(.*z)*' ",
    b"\0",
    b"sed 's/.*/&&&&&&&&/' ",
    b"-e 's/.*/&&/' ",
    b"awk '{print $0,$0,$0,$0,$0,$0,$0,$0}' ",
    b"stat -c %n%n%n%n ",
    b"date +",
    b"%Y",
    b"trap $L S",
    b"[[[[[[[[[[[[[[[[",
    b"*a*b*a*b*a*b[ab]?c",
    b"-E '(.{30}){30}x' ",
    b"tar cf /t /d /d /d /mix ",
    b" -o -d /x -o -d /d/9",
    b"mkdir -p /d/a/a/a/a/a/a/a/a/a/a/a/a ",
    b"rm -f /a /b /c /a /b /c ",
)

TARGETS: Final = (Target("shell", shell, words=_WORDS, base=3.0, most=2048),)
