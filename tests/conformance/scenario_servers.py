"""Servers of scenarios that ask for their own, by the `server.yaml` of their area and what they lay over it themselves:

    flags: ['--audit-policy-file={dir}/policy.yaml']   # in place of the usual of the same name; `--x=` takes one away
    files: {policy.yaml: {...}}           # in {dir}; a text as it is, anything else as JSON; {NAME.crt} is the text of
                                          # a certificate, {KEY.pub} of a key, {HOOK.pem} of a hook's certificate
    hooks: {sink: {/audit: {body: {}}}}   # servers as for `serve`, up before the start; {sink.url} is filled in; a path
                                          # may be `jwks: [KEY]`, or a list of cases: the first counts whose `if` holds
    certificates: {ca: {cn: CA}, jane: {ca: ca, cn: jane, o: [dev], client: true}}   # {dir}/NAME.crt and .key
    keys: {k1: {}, k2: {type: ec}}        # that sign tokens (see scenario_credentials.py)

Each scenario has a fresh server, which knows proxies in front of it as the one did that answers were recorded from,
unless flags say otherwise.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from steersman.testing import ServerProcess
from tests.conformance.scenario_answers import dig
from tests.conformance.scenario_credentials import Key, make_certificate
from tests.conformance.scenario_hooks import HookServer, serve

SERVER_FILE: Final = "server.yaml"
_BY_NAME: Final = ("files", "hooks", "certificates", "keys")
_PATIENCE: Final = 10.0
_PROXY_CA: Final = "front-proxy-ca"
_PROXY_FLAGS: Final = (
    f"--requestheader-client-ca-file={{dir}}/{_PROXY_CA}.crt",
    "--requestheader-allowed-names=front-proxy-client",
    "--requestheader-username-headers=X-Remote-User",
    "--requestheader-group-headers=X-Remote-Group",
    "--requestheader-extra-headers-prefix=X-Remote-Extra-",
)


def fill(value: Any, variables: dict[str, str]) -> Any:
    """Return `value` with every {name} of a known variable replaced, also inside lists and mappings."""
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
    """Return True if a scenario has a server of its own."""
    return (file.parent / SERVER_FILE).exists()


def with_flags(usual: Sequence[str], given: Sequence[str]) -> list[str]:
    """Return the usual flags, in which a given flag replaces the usual one of the same name."""
    names = {flag.partition("=")[0] for flag in given}
    return [*(flag for flag in usual if flag.partition("=")[0] not in names), *given]


def _asked(file: Path) -> dict[str, Any]:
    """Return the settings of a scenario's server. Raises ValueError for unknown settings."""
    area: dict[str, Any] = yaml.safe_load((file.parent / SERVER_FILE).read_text()) or {}
    return _laid_over(area, yaml.safe_load(file.read_text()).get("server") or {})


def _laid_over(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Return settings in which `above` overrides `below`: flags by flag name, all others by key. Raises ValueError."""
    if unknown := ({*below, *above} - {"flags", *_BY_NAME}):
        raise ValueError(f"servers with {', '.join(sorted(unknown))} are not started here")
    found: dict[str, Any] = {key: below.get(key, {}) | above.get(key, {}) for key in _BY_NAME}
    return found | {"flags": with_flags(below.get("flags", []), above.get("flags", []))}


class OwnServer:
    """A scenario's own server, with its files in `folder` and its running `hooks`."""

    def __init__(self, file: Path, folder: Path, namespace: str) -> None:
        self._asked = _asked(file)
        self.folder = folder
        self.variables = {"dir": str(folder), "ns": namespace}
        self.hooks: dict[str, HookServer] = {}
        self.restart: Callable[[], tuple[str, str]] | None = None
        """Restarts the server with its current settings and returns its URL and CA."""
        self._read: dict[str, int] = {}
        for name, each in ({_PROXY_CA: {"cn": _PROXY_CA}} | self._asked["certificates"]).items():
            make_certificate(folder, name, each)
        self._keys = {name: Key(name, **_key_of(each)) for name, each in self._asked["keys"].items()}
        for name in self._asked["hooks"]:
            self.hooks[name] = serve(name, {}, self.variables)
            del self.variables[f"{name}.ip"]  # may be 127.0.0.1, which is no name to give an address in answers
        self._texts = self.variables | {each.name: each.read_text() for each in folder.iterdir()}
        """Texts that files and flags may refer to, by name."""
        self._texts |= {f"{name}.pub": key.pem() for name, key in self._keys.items()}
        self._texts |= {f"{name}.pem": hook.pem for name, hook in self.hooks.items()}
        for name, paths in self._asked["hooks"].items():
            self.script(name, paths)
        self.write(self._asked["files"])

    def flags(self, usual: Sequence[str]) -> list[str]:
        """Return the usual flags with the server's own flags."""
        given = fill(with_flags(_PROXY_FLAGS, self._asked["flags"]), self._texts)
        return [flag for flag in with_flags(usual, given) if flag[-1] != "="]

    def script(self, name: str, paths: dict[str, Any]) -> None:
        """Replace the script of a hook."""
        self.hooks[name].script = {path: self._published(each) for path, each in fill(paths, self._texts).items()}

    def _published(self, answer: Any) -> Any:
        if not isinstance(answer, dict) or "jwks" not in answer:
            return answer
        return {"body": {"keys": [self._keys[key].jwk() for key in answer["jwks"]]}}

    def write(self, files: dict[str, Any]) -> None:
        """Write files, each atomically."""
        for name, content in files.items():
            filled = fill(content, self._texts)
            fresh = self.folder / f".{name}.new"
            fresh.write_text(filled if isinstance(filled, str) else json.dumps(filled, indent=1))
            fresh.replace(self.folder / name)

    def token(self, asked: dict[str, Any]) -> str:
        """Return a signed token for {jwt: KEY, claims, expires, header}."""
        key = self._keys[asked["jwt"]]
        return key.sign(asked.get("claims", {}), asked.get("expires", 600), asked.get("header"))

    def certificate(self, name: str) -> tuple[Path, Path]:
        """Return the files of a certificate and of its key."""
        return self.folder / f"{name}.crt", self.folder / f"{name}.key"

    def ask_anew(self, above: dict[str, Any]) -> tuple[str, str]:
        """Restart the server on its data, with its settings overridden by `above`. Return its URL and CA."""
        assert self.restart is not None
        self._asked = _laid_over(self._asked, above)
        self.write(above.get("files", {}))
        return self.restart()

    def lines(self, name: str, where: dict[str, Any], count: int) -> list[Any]:
        """Return the JSON lines that a file got since the last call and whose values at the paths of `where` are equal.

        Waits up to 10 s for `count` lines. The lines are in the order of their requests.
        """
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
        """Stop the server's hooks."""
        for hook in self.hooks.values():
            hook.shutdown()
            hook.server_close()


def _key_of(asked: dict[str, Any] | None) -> dict[str, str]:
    return {"kind": asked["type"]} if asked and "type" in asked else {}


@contextlib.contextmanager
def started(own: OwnServer, usual: Sequence[str], data: Path) -> Iterator[ServerProcess]:
    """Run the server until the end of the block."""
    process = ServerProcess(data, *own.flags(usual))

    def restarted() -> tuple[str, str]:
        process.stop()
        process.flags = tuple(own.flags(usual))
        process.start()
        return process.url, str(process.ca)

    own.restart = restarted
    try:
        process.start()
        yield process
    finally:
        process.kill()
        own.close()
