"""The command: starts a server, and has schemathesis try each of its documents."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from tools.differential.server import Client, Server

_WITH_TOOLS: Final = os.pathsep.join(filter(None, (str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH"))))
_LEFT_OUT: Final = "/(proxy|exec|attach|portforward|log)($|/)|/watch/"
"""Paths whose answers are another server's, which is not there, or that go on for as long as they are asked to."""
_CHECKS: Final = "not_a_server_error"
_REQUEST_TIMEOUT: Final = 70
"""Seconds: longer than the server has for a request."""
_LEAST: Final = 5
"""Seconds for a document."""
_ARGUMENTS: Final = (
    "--phases=fuzzing",
    f"--checks={_CHECKS}",
    "--continue-on-failure",
    "--suppress-health-check=all",
    "--warnings=off",
    "--mode=all",
    "--max-examples=100000",
    f"--exclude-path-regex={_LEFT_OUT}",
    f"--request-timeout={_REQUEST_TIMEOUT}",
    "--generation-database=none",
    "--no-color",
    "--output-sanitize=true",
)


def documents(client: Client) -> Iterator[tuple[str, Any]]:
    """The documents of version 3, by the group version that each is about."""
    paths = client.ask("GET", "/openapi/v3").body["paths"]
    for name, found in sorted(paths.items()):
        if name.startswith(("api/", "apis/")) and name.count("/") >= 1:
            yield name, _without_long_ones(client.ask("GET", found["serverRelativeURL"]).body)


def _without_long_ones(document: Any) -> Any:
    """The document without the parameters that make a list a watch, as that goes on."""
    for path in document["paths"].values():
        for each in (path, *(operation for operation in path.values() if isinstance(operation, dict))):
            if "parameters" in each:
                each["parameters"] = [one for one in each["parameters"] if one.get("name") not in ("watch", "follow")]
    return document


def fuzz(client: Client, name: str, document: Any, *, seconds: int, seed: int, folder: Path) -> bool:
    """Fuzz a document's requests. Return True if none was answered with a 5xx; print those that were."""
    path = folder / f"{name.replace('/', '_')}.json"
    path.write_text(json.dumps(document))
    command = [
        sys.executable,
        "-m",
        "schemathesis.cli",
        "run",
        str(path),
        f"--url={client.found['url']}",
        f"--tls-verify={client.found['ca']}",
        f"--header=Authorization: Bearer {client.found['token']}",
        f"--max-time={seconds}",
        f"--seed={seed}",
        *_ARGUMENTS,
    ]
    environment = os.environ | {"SCHEMATHESIS_HOOKS": "tools.openapi_fuzz.hooks", "PYTHONPATH": _WITH_TOOLS}
    ran = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, check=False)
    summary = [line.strip() for line in ran.stdout.splitlines() if "generated" in line or "passed" in line]
    print(f"{name}: exit {ran.returncode} {'; '.join(summary[-2:])}", flush=True)
    if ran.returncode:
        print(ran.stdout[-20_000:], ran.stderr[-2000:], flush=True)
    return ran.returncode == 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 1 if anything was answered with a 5xx or not at all."""
    parser = argparse.ArgumentParser(prog="openapi_fuzz", description="Random requests out of OpenAPI documents.")
    parser.add_argument("--start", required=True, metavar="CMD", help="starts the server, and says where it listens")
    parser.add_argument("--seconds", type=int, default=1800, help="for all documents together (default: 1800)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", metavar="TEXT", help="the documents whose names have this in them")
    options = parser.parse_args(arguments)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="openapi-fuzz-") as folder, Server(options.start) as client:
        found = [each for each in documents(client) if options.only in each[0]]
        paths = sum(len(document["paths"]) for _, document in found)
        good = [
            fuzz(
                client,
                name,
                document,
                seconds=max(_LEAST, options.seconds * len(document["paths"]) // paths),
                seed=options.seed,
                folder=Path(folder),
            )
            for name, document in found
        ]
        alive = client.ask("GET", "/readyz").code == 200
    print(f"{len(found)} documents, {good.count(False)} with failures, {time.monotonic() - began:.0f} s", flush=True)
    return 0 if all(good) and alive else 1
