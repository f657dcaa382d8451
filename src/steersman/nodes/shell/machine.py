"""Programs that report about the container: its user, kernel, processes and network."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from steersman.nodes.shell.effects import Execution, Missing, Process, Resolve, World, Write, line

_NAMES: Final = MappingProxyType({0: "root", 1: "daemon", 2: "bin", 8: "mail", 33: "www-data", 65534: "nobody"})
"""Names of users, and of their groups, that are common in images."""
_SERVER: Final = "10.96.0.10"
"""Address of the cluster's DNS server, as in `/etc/resolv.conf`."""


def hostname(world: World, words: list[str]) -> Execution:
    """`hostname`: the container's host name, or with `-i` its address."""
    if words == ["-i"]:
        yield line(world.environment.get("_POD_IP", "127.0.0.1"))
    else:
        yield line(world.hostname)
    return 0


def whoami(world: World, words: list[str]) -> Execution:
    """`whoami`: the user's name; exit code 1 for a user without a name."""
    user = world.identity.user
    if user not in _NAMES:
        yield Write(2, f"whoami: unknown uid {user}\n".encode())
        return 1
    yield line(_NAMES[user])
    return 0


def identity(world: World, words: list[str]) -> Execution:
    """`id`: user and groups; with `-u` and `-g` the number alone, with `-G` all groups."""
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
            groups_text = ",".join(_with_name(each) for each in groups)
            yield line(f"uid={_with_name(user)} gid={_with_name(group)} groups={groups_text}")
    return 0


def _with_name(number: int) -> str:
    return f"{number}({_NAMES[number]})" if number in _NAMES else str(number)


def uname(world: World, words: list[str]) -> Execution:
    """`uname [-a]`: the kernel."""
    yield line(f"Linux {world.hostname} 6.12.0 #1 SMP x86_64 Linux" if "-a" in words else "Linux")
    return 0


def mount(world: World, words: list[str]) -> Execution:
    """`mount [-t TYPE]`: the mounted file systems."""
    kind = words[words.index("-t") + 1] if "-t" in words[:-1] else ""
    mounted = {"/": "overlay", "/proc": "proc", "/sys/fs/cgroup": "cgroup2", **world.file_systems}
    for path, file_system in mounted.items():
        if kind in ("", file_system):
            yield line(f"{file_system} on {path} type {file_system} (rw,relatime)")
    return 0


def ps(world: World, words: list[str]) -> Execution:
    """`ps`, `ps aux`, `ps -ef`, `ps -o pid,user,comm,args`: the container's processes, and `ps` itself."""
    known = world.processes or (Process(1, "sh", world.identity.user),)
    own = Process(max(each.number for each in known) + 6, " ".join(["ps", *words]), world.identity.user)
    said = " ".join(words)
    columns = ["pid", "user", "time", "args"]
    heads = {"pid": "PID  ", "user": "USER    ", "time": "TIME", "args": "COMMAND", "comm": "COMMAND"}
    if "-o" in words[:-1]:
        columns = words[words.index("-o") + 1].split(",")[:10]
    elif "aux" in said or "-ef" in said:
        columns = ["user", "pid", "time", "args"]
    yield line(" ".join(heads.get(each, each.upper()) for each in columns).rstrip())
    for each in (*known, own):
        user = _NAMES.get(each.user, str(each.user))
        shown = {
            "pid": f"{each.number:>5}",
            "user": f"{user:<8}",
            "time": "0:00",
            "args": each.command,
            "comm": each.command.partition(" ")[0].rpartition("/")[2],
        }
        yield line(" ".join(shown.get(column, "-") for column in columns).rstrip())
    return 0


def nslookup(world: World, words: list[str]) -> Execution:
    """`nslookup NAME [SERVER]`: the addresses of a Service, or of the pods behind it."""
    names = [each for each in words if not each.startswith("-")]
    if not names:
        yield Write(2, b"nslookup: no name\n")
        return 1
    found = yield Resolve(names[0])
    if not isinstance(found, bytes):
        answer = yield Missing("nslookup")
        if isinstance(answer, int):
            return answer
        yield Write(1, f"Server:\t\t{_SERVER}\nAddress:\t{_SERVER}:53\n\n".encode())
        yield Write(1, f"** server can't find {names[0]}: NXDOMAIN\n\n".encode(errors="replace"))
        return 1
    yield Write(1, f"Server:\t\t{_SERVER}\nAddress:\t{_SERVER}:53\n\n".encode())
    name, *addresses = found.decode().split(" ")
    for each in addresses:
        yield Write(1, f"Name:\t{name}\nAddress: {each}\n".encode())
    yield line("")
    return 0


def getent(world: World, words: list[str]) -> Execution:
    """`getent hosts NAME`: the addresses of a Service, or of the pods behind it."""
    found = (yield Resolve(words[1])) if len(words) == 2 and words[0] in ("hosts", "ahosts") else None
    if not isinstance(found, bytes):
        answer = yield Missing("getent")
        return answer if isinstance(answer, int) else 2
    name, *addresses = found.decode().split(" ")
    for each in addresses:
        yield line(f"{each:<17} {name}")
    return 0


def nproc(world: World, words: list[str]) -> Execution:
    """`nproc`: the number of processors, which is 1."""
    yield line("1")
    return 0


def uptime(world: World, words: list[str]) -> Execution:
    """`uptime`: the time of day; the other figures are zero."""
    seconds = int(world.now()) % 86400
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    yield line(f" {clock} up 0 min,  load average: 0.00, 0.00, 0.00")
    return 0
