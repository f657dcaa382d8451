"""Servers of scenarios that ask for their own, by the `server.yaml` of their area and what they lay over it themselves:

    flags: ['--audit-policy-file={dir}/policy.yaml']   # in place of the usual of the same name; `--x=` takes one away
    files: {policy.yaml: {...}}           # in {dir}; a text as it is, anything else as JSON
    hooks: {sink: {/audit: {body: {}}}}   # servers as for `serve`, up before the start; {sink.url} is filled in

Each scenario has a fresh server. Certificates, keys and restarts are not made here yet.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from steersman.testing import ServerProcess
from tests.conformance.scenario_answers import dig
from tests.conformance.scenario_hooks import HookServer, serve

SERVER_FILE: Final = "server.yaml"
_KNOWN: Final = {"flags", "files", "hooks"}
_PATIENCE: Final = 10.0


def fill(value: Any, variables: dict[str, str]) -> Any:
    """`value` with every {name} of a known variable replaced, in whole containers too."""
    if isinstance(value, str):
        for name, known in variables.items():
            if name.endswith(".port") and value == "{" + name + "}":
                return int(known)
            value = value.replace("{" + name + "}", str(known))
        return value
    if isinstance(value, dict):
        return {fill(key, variables): fill(each, variables) for key, each in value.items()}
    if isinstance(value, list):
        return [fill(each, variables) for each in value]
    return value


def asks_for_its_own(file: Path) -> bool:
    """Whether a scenario has a server of its own."""
    return (file.parent / SERVER_FILE).exists()


def with_flags(usual: Sequence[str], given: Sequence[str]) -> list[str]:
    """The usual flags with those given in place of the ones of the same name."""
    names = {flag.partition("=")[0] for flag in given}
    return [*(flag for flag in usual if flag.partition("=")[0] not in names), *given]


def _asked(file: Path) -> dict[str, Any]:
    """What a scenario's server is to be. Raises ValueError for what is not known here."""
    area: dict[str, Any] = yaml.safe_load((file.parent / SERVER_FILE).read_text()) or {}
    own: dict[str, Any] = yaml.safe_load(file.read_text()).get("server") or {}
    if unknown := ({*area, *own} - _KNOWN):
        raise ValueError(f"{file}: servers with {', '.join(sorted(unknown))} are not started here")
    found = {key: area.get(key, {}) | own.get(key, {}) for key in ("files", "hooks")}
    return found | {"flags": with_flags(area.get("flags", []), own.get("flags", []))}


class OwnServer:
    """A scenario's own server, with what is in front of it: `folder` has its files, `hooks` are up."""

    def __init__(self, file: Path, folder: Path, namespace: str) -> None:
        self._asked = _asked(file)
        self.folder = folder
        self.variables = {"dir": str(folder), "ns": namespace}
        self.hooks: dict[str, HookServer] = {}
        self._read: dict[str, int] = {}
        for name in self._asked["hooks"]:
            self.hooks[name] = serve(name, {}, self.variables)
            del self.variables[f"{name}.ip"]  # may be 127.0.0.1, which is no name to give an address in answers
        for name, paths in self._asked["hooks"].items():
            self.script(name, paths)
        for name, content in self._asked["files"].items():
            filled = fill(content, self.variables)
            (folder / name).write_text(filled if isinstance(filled, str) else json.dumps(filled, indent=1))

    def flags(self, usual: Sequence[str]) -> list[str]:
        """The usual flags and its own."""
        return [flag for flag in with_flags(usual, fill(self._asked["flags"], self.variables)) if flag[-1] != "="]

    def script(self, name: str, paths: dict[str, Any]) -> None:
        """Has a hook answer so from now on."""
        self.hooks[name].script = fill(paths, self.variables)

    def lines(self, name: str, where: dict[str, Any], count: int) -> list[Any]:
        """The JSON lines that a file has got since last asked, in the order of their requests, where these paths hold;
        waits for so many."""
        path, since = self.folder / name, self._read.get(name, 0)
        deadline = time.monotonic() + (_PATIENCE if count else 0)
        while True:
            text = path.read_text() if path.exists() else ""
            lines = text[: text.rfind("\n") + 1].splitlines()
            some = [
                each
                for each in map(json.loads, lines[since:])
                if all(dig(each, path) == value for path, value in where.items())
            ]
            if len(some) >= count or time.monotonic() > deadline:
                self._read[name] = len(lines)
                return sorted(some, key=lambda each: str(each.get("requestReceivedTimestamp")))
            time.sleep(0.05)

    def close(self) -> None:
        """Ends its hooks."""
        for hook in self.hooks.values():
            hook.shutdown()
            hook.server_close()


@contextlib.contextmanager
def started(own: OwnServer, usual: Sequence[str], data: Path) -> Iterator[ServerProcess]:
    """The server, until the end of the block."""
    process = ServerProcess(data, *own.flags(usual))
    try:
        process.start()
        yield process
    finally:
        process.kill()
        own.close()
