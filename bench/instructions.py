#!/usr/bin/env python3
"""Machine instructions for one request, compared between two versions of the server: a figure without noise.

    python -m bench.instructions --a OLD/.venv/bin/steersman --b .venv/bin/steersman [--only pod] [--storage sqlite]

Each command is started under Valgrind's callgrind (`valgrind` and `callgrind_control` must be there), which counts what
its processes execute; the same requests are sent to both over TLS and HTTP/1.1. Instructions are not time: counting
bytes is cheap for its instructions, missing a cache is dear. So a ratio says that something changed, and about how
much; `side_by_side.py` says what it costs. Takes some three minutes.

With `--faults N` both have N Faults, of other resources than those of the requests.

Creates are dry runs, on storage in memory, so that all are equal; with `--storage sqlite` they are stored, and the work of
SQLite counts.
"""

from __future__ import annotations

import argparse
import http.client
import json
import re
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench.first_list import pod

WARM_UP = 40
COUNTED = 100
COUNTED_LARGE = 8
LISTED = 1000
PODS = "/api/v1/namespaces/default/pods"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
FAULTS = "/apis/simulation.steersman.dev/v1alpha1/faults"
LISTED_PODS = "/api/v1/namespaces/kube-public/pods"
LARGE_LIST = f"list {LISTED:,} pods"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"

Operation = Callable[[], None]


class Connection(http.client.HTTPSConnection):
    """A connection that sends a head and a body at once.

    A server that is quick enough would read them one by one now and then, which costs it a task.
    """

    _held = b""

    def send(self, data: Any) -> None:
        self._held += data

    def getresponse(self) -> http.client.HTTPResponse:
        held, self._held = self._held, b""
        super().send(held)
        return super().getresponse()


class Client:
    """One connection to a server, as its administrator."""

    def __init__(self, url: str, folder: Path) -> None:
        tls = ssl.create_default_context(cafile=str(folder / "ca.crt"))
        tls.load_cert_chain(folder / "admin.crt", folder / "admin.key")
        self._connection = Connection(urlsplit(url).netloc, context=tls, timeout=600)

    def ask(self, method: str, path: str, body: Any = None, media: str = "application/json") -> Any:
        """The object in the answer. Ends the program if it is an error."""
        headers = {"accept": "application/json", "content-type": media}
        data = None if body is None else json.dumps(body, separators=(",", ":"))
        self._connection.request(method, path, data, headers)
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status >= 300:
            sys.exit(f"{method} {path}: {answer.status} {content.decode()}")
        return json.loads(content)


@contextmanager
def counted(
    command: Path, folder: Path, storage: str, flags: Sequence[str] = ()
) -> Iterator[tuple[Client, Callable[[str], None]]]:
    """A server that runs under callgrind, and what ends a count and gives it a name."""
    python = command.with_name("python")
    process = subprocess.Popen(
        [
            "valgrind",
            "--quiet",
            "--tool=callgrind",
            f"--callgrind-out-file={folder}/out",
            python,
            command,
            "serve",
            f"--storage={storage}",
            f"--data-dir={folder}/data",
            "--secure-port=0",
            "--disable-admission-plugins=ServiceAccount",
            *flags,
        ],
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONHASHSEED": "0", "PATH": "/usr/bin:/bin"},
    )
    try:
        assert process.stdout is not None
        ready = re.search(r"url=(\S+)", process.stdout.readline())
        if ready is None:
            sys.exit(f"{command} did not start")

        def end_count(name: str) -> None:
            subprocess.run(["callgrind_control", "--dump=" + name, str(process.pid)], check=True, capture_output=True)

        yield Client(ready[1], folder / "data"), end_count
    finally:
        process.terminate()
        process.wait()


def operations(client: Client, *, are_stored: bool) -> dict[str, Operation]:
    """Return the counted operations, by name; `are_stored` is False if creates are dry runs."""
    for number in range(20):
        client.ask("POST", CONFIG_MAPS, config_map(f"listed-{number}"))
    made_pod = client.ask("POST", PODS, pod("pod"))
    made_map = client.ask("POST", CONFIG_MAPS, config_map("map"))
    for each in (made_pod, made_map):
        del each["metadata"]["resourceVersion"]
    count = iter(range(1_000_000))

    def create(collection: str, make: Callable[[str], dict[str, Any]]) -> Operation:
        def send() -> None:
            made = make("new")
            if are_stored:
                made["metadata"]["name"] = f"new-{next(count)}"
            client.ask("POST", collection if are_stored else f"{collection}?dryRun=All", made)

        return send

    def change(made: dict[str, Any], collection: str, method: str, media: str = "application/json") -> Operation:
        def send() -> None:
            name, label = made["metadata"]["name"], {media.rpartition("/")[2].partition("+")[0]: str(next(count))}
            made["metadata"]["labels"] = label
            body = made
            if method == "PATCH":
                body = {"apiVersion": "v1", "kind": made["kind"], "metadata": {"name": name, "labels": label}}
            client.ask(method, f"{collection}/{name}?fieldManager=bench", body, media)

        return send

    return {
        "get pod": lambda: client.ask("GET", f"{PODS}/pod"),
        "list 21 configmaps": lambda: client.ask("GET", f"{CONFIG_MAPS}?limit=500"),
        "create pod": create(PODS, pod),
        "create configmap": create(CONFIG_MAPS, config_map),
        "put pod": change(made_pod, PODS, "PUT"),
        "put configmap": change(made_map, CONFIG_MAPS, "PUT"),
        "merge pod": change(made_pod, PODS, "PATCH", MERGE),
        "apply configmap": change(made_map, CONFIG_MAPS, "PATCH", APPLY),
        "apply pod": change(made_pod, PODS, "PATCH", APPLY),
        LARGE_LIST: lambda: client.ask("GET", LISTED_PODS),
    }


def config_map(name: str) -> dict[str, Any]:
    """A ConfigMap of 1 KB."""
    metadata = {"name": name, "namespace": "default"}
    data = {f"key-{number}": "x" * 100 for number in range(9)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def add_faults(client: Client, number: int) -> None:
    """Create Faults that hit none of the requests, and wait until they are active."""
    for each in range(number):
        spec = {"match": {"resources": ["endpointslices"]}, "effect": {"status": {"code": 503}}}
        made = {"apiVersion": "simulation.steersman.dev/v1alpha1", "kind": "Fault", "metadata": {"name": f"f{each}"}}
        client.ask("POST", FAULTS, {**made, "spec": spec})
    while not all(each.get("status", {}).get("conditions") for each in client.ask("GET", FAULTS)["items"]):
        time.sleep(1)


def count(command: Path, only: str, storage: str, faults: int | None = None) -> dict[str, float]:
    """Instructions for one of each operation whose name has `only` in it; `faults` is None for a server without."""
    flags = () if faults is None else ("--faults",)
    with tempfile.TemporaryDirectory(prefix="steersman-bench-") as name:
        folder = Path(name)
        with counted(command, folder, storage, flags) as (client, end_count):
            if faults:
                add_faults(client, faults)
            for title, operation in operations(client, are_stored=storage != "memory").items():
                if only not in title:
                    continue
                if title == LARGE_LIST:
                    for number in range(LISTED):
                        client.ask("POST", LISTED_PODS, pod(f"listed-{number}"))
                for _ in range(WARM_UP):
                    operation()
                end_count("what came before")
                for _ in range(times(title)):
                    operation()
                end_count(title)
        found: dict[str, float] = {}
        for dump in folder.glob("out.*"):
            text = dump.read_text()
            desc = re.search(r"^desc: Trigger: dump (.+)$", text, re.M)
            total = re.search(r"^summary: (\d+)", text, re.M)
            if desc is not None and total is not None:
                found[desc[1]] = int(total[1]) / times(desc[1])
        return found


def times(title: str) -> int:
    """Return how many operations of this name are counted."""
    return COUNTED_LARGE if title == LARGE_LIST else COUNTED


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--a", type=Path, required=True, metavar="COMMAND", help="the `steersman` of one version")
    parser.add_argument("--b", type=Path, required=True, metavar="COMMAND", help="that of the other")
    parser.add_argument("--only", default="", metavar="TEXT", help="operations whose name has this in it")
    parser.add_argument("--storage", choices=("memory", "sqlite"), default="memory", help="where the servers store")
    parser.add_argument(
        "--faults", type=int, metavar="N", help="active Faults of other resources; needs serve --faults"
    )
    args = parser.parse_args()
    a, b = (count(each.absolute(), args.only, args.storage, args.faults) for each in (args.a, args.b))
    print("| operation | A, thousand instructions | B | B/A |\n|---|--:|--:|--:|")
    for title in a:
        if title in b and title != "what came before":
            print(f"| {title} | {a[title] / 1000:,.0f} | {b[title] / 1000:,.0f} | {b[title] / a[title]:.3f} |")


if __name__ == "__main__":
    main()
