"""Built-in commands of a shell, which act on the shell itself: variables, exit, traps, nested scripts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from steersman.net.ascii import is_digits
from steersman.nodes.shell.effects import Execution, ReadLine, Write
from steersman.nodes.shell.expansion import Break, Exit, Expansion, Return
from steersman.nodes.shell.paths import absolute
from steersman.nodes.shell.programs import PROGRAMS
from steersman.nodes.shell.syntax import Reader
from steersman.work.patterns import late_pattern

SHELLS: Final = frozenset({"sh", "bash", "ash", "dash"})
_INTEGER: Final = late_pattern("-?[0-9]{1,18}", re.ASCII)
_MOST_TRAPS: Final = 64
"""Signals of one `trap` command."""


def _exit(shell: Expansion, rest: list[str]) -> Execution:
    yield from ()
    raise Exit(int(rest[0]) & 255 if rest and _INTEGER.fullmatch(rest[0]) else shell.code)


def _return(shell: Expansion, rest: list[str]) -> Execution:
    yield from ()
    raise Return(int(rest[0]) & 255 if rest and _INTEGER.fullmatch(rest[0]) else shell.code)


def _break(shell: Expansion, rest: list[str]) -> Execution:
    yield from ()
    raise Break(again=False)


def _continue(shell: Expansion, rest: list[str]) -> Execution:
    yield from ()
    raise Break(again=True)


def _export(shell: Expansion, rest: list[str]) -> Execution:
    shell.assign(dict(each.partition("=")[::2] for each in rest if "=" in each))
    yield from shell.world.spend(lines=len(rest))
    return 0


def _unset(shell: Expansion, rest: list[str]) -> Execution:
    for each in rest:
        shell.world.unset(each)
    yield from shell.world.spend(lines=len(rest))
    return 0


def _set(shell: Expansion, rest: list[str]) -> Execution:
    yield from ()
    for number, each in enumerate(rest):
        if not each.startswith(("-", "+")) or each == "--":
            shell.given = rest[number + (each == "--") :]
            break
        if "e" in each or (each == "-o" and rest[number + 1 : number + 2] == ["errexit"]):
            shell.fails_at_once = each.startswith("-")
        if each in ("-o", "+o"):
            break
    return 0


def _shift(shell: Expansion, rest: list[str]) -> Execution:
    yield from ()
    count = int(rest[0][:4]) if rest and is_digits(rest[0]) else 1
    if count > len(shell.given):
        return 1
    shell.given = shell.given[count:]
    return 0


_NUMBERED: Final = MappingProxyType({"0": "EXIT", "1": "HUP", "2": "INT", "15": "TERM"})


def _trap(shell: Expansion, rest: list[str]) -> Execution:
    """`trap COMMAND SIGNAL...`; the command `-`, and no command, remove the trap."""
    yield from ()
    text, names = (rest[0], rest[1:]) if len(rest) > 1 else ("-", rest)
    for each in names[:_MOST_TRAPS]:
        signal = _NUMBERED.get(each, each.removeprefix("SIG"))
        shell.set_trap(signal, "" if text == "-" else text)
    return 0


def _ignored(shell: Expansion, rest: list[str]) -> Execution:
    yield from ()
    return 0


def _wait(shell: Expansion, rest: list[str]) -> Execution:
    seconds, shell.background = shell.background, 0.0
    return (yield from shell.count_waits(PROGRAMS["sleep"](shell.world, [str(seconds)])))


def _eval(shell: Expansion, rest: list[str]) -> Execution:
    return (yield from shell.run_script((yield from shell.read(Reader(" ".join(rest)).whole()))))


def _source(shell: Expansion, rest: list[str]) -> Execution:
    """`. FILE`: run a script in this shell."""
    data = shell.world.read(absolute(shell.world, rest[0])) if rest else None
    if data is None:
        yield Write(2, f"{shell.name}: .: {rest[0] if rest else ''}: not found\n".encode(errors="replace"))
        return 1
    return (yield from shell.run_script((yield from shell.read(Reader(data.decode(errors="replace")).whole()))))


def _read_line(shell: Expansion, rest: list[str]) -> Execution:
    line = yield ReadLine()
    if not isinstance(line, bytes):
        return 1
    names = [each for each in rest if not each.startswith("-")] or ["REPLY"]
    yield from shell.world.spend(len(line), lines=len(names))
    values = line.decode(errors="replace").strip("\n").split(" ", len(names) - 1)
    shell.assign(dict(zip(names, [*values, *[""] * len(names)], strict=False)))
    return 0


def _local(shell: Expansion, rest: list[str]) -> Execution:
    return (yield from _export(shell, rest))


def where(shell: Expansion, rest: list[str]) -> Execution:
    """`command -v`, `type`, `which`: the paths of programs."""
    code = 0
    for each in rest:
        if each.startswith("-"):
            continue
        if each in shell.functions or each in BUILT_IN:
            yield Write(1, f"{each}\n".encode(errors="replace"))
        elif each in PROGRAMS or each in SHELLS:
            yield Write(1, f"/bin/{each}\n".encode(errors="replace"))
        else:
            code = 127
    return code


BUILT_IN: Final[Mapping[str, Callable[[Expansion, list[str]], Execution]]] = MappingProxyType(
    {
        "exit": _exit,
        "return": _return,
        "break": _break,
        "continue": _continue,
        "export": _export,
        "readonly": _export,
        "local": _local,
        "declare": _local,
        "unset": _unset,
        "set": _set,
        "shift": _shift,
        "trap": _trap,
        "umask": _ignored,
        "ulimit": _ignored,
        "alias": _ignored,
        "wait": _wait,
        "eval": _eval,
        ".": _source,
        "source": _source,
        "read": _read_line,
        "type": where,
        "which": where,
    }
)
"""Built-in commands by name."""
