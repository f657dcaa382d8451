"""Programs that tell of the container: as whom it runs, on what."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from steersman.nodes.shell.effects import Course, World, Write, line

_NAMES: Final = MappingProxyType({0: "root", 1: "daemon", 2: "bin", 8: "mail", 33: "www-data", 65534: "nobody"})
"""Of users, and of their groups, that images have."""


def hostname(world: World, words: list[str]) -> Course:
    """What the container calls itself; its address with `-i`."""
    if words == ["-i"]:
        yield line(world.environment.get("_POD_IP", "127.0.0.1"))
    else:
        yield line(world.hostname)
    return 0


def whoami(world: World, words: list[str]) -> Course:
    """The name of who runs it; 1 for a number without one."""
    user = world.identity.user
    if user not in _NAMES:
        yield Write(2, f"whoami: unknown uid {user}\n".encode())
        return 1
    yield line(_NAMES[user])
    return 0


def identity(world: World, words: list[str]) -> Course:
    """`id`, or the number alone with `-u` and `-g`, all groups with `-G`."""
    user, group, _ = world.identity
    groups = sorted({group, *world.identity.groups})
    match words:
        case ["-u"]:
            yield line(str(user))
        case ["-g"]:
            yield line(str(group))
        case ["-G"]:
            yield line(" ".join(str(each) for each in groups))
        case _:
            told = ",".join(_with_name(each) for each in groups)
            yield line(f"uid={_with_name(user)} gid={_with_name(group)} groups={told}")
    return 0


def _with_name(number: int) -> str:
    return f"{number}({_NAMES[number]})" if number in _NAMES else str(number)


def uname(world: World, words: list[str]) -> Course:
    """The kernel."""
    yield line(f"Linux {world.hostname} 6.12.0 #1 SMP x86_64 Linux" if "-a" in words else "Linux")
    return 0


def mount(world: World, words: list[str]) -> Course:
    """`mount [-t TYPE]`: what is mounted."""
    kind = words[words.index("-t") + 1] if "-t" in words[:-1] else ""
    mounted = {"/": "overlay", "/proc": "proc", "/sys/fs/cgroup": "cgroup2", **world.file_systems}
    for path, file_system in mounted.items():
        if kind in ("", file_system):
            yield line(f"{file_system} on {path} type {file_system} (rw,relatime)")
    return 0
