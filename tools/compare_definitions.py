"""Creates the definitions that well-known projects publish, on two servers, and compares all that comes of them.

    python -m tools.compare_definitions --a COMMAND --b COMMAND [--objects 20] [--only TEXT] [MODULE@VERSION ...]

The definitions are read out of Go modules, which `go mod download` fetches; nothing of them is kept here. Compared are
the answers to their creation, their conditions once settled, discovery, the OpenAPI v3 documents of their group
versions, and the answers to objects made at random of their schemas.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Final

from .compare_openapi import comparable
from .compare_openapi import differences as document_differences
from .differential.case import Case, Step
from .differential.command import Comparer
from .differential.custom import Cases
from .differential.custom_definitions import COLLECTION, Defined
from .differential.server import Client, Server
from .differential.serving import await_served
from .published import Body, documents, files_of, folder_of

MODULES: Final = (
    "github.com/argoproj/argo-rollouts@v1.8.3",
    "github.com/cert-manager/cert-manager@v1.21.2",
    "github.com/external-secrets/external-secrets@v1.3.2",
    "github.com/fluxcd/source-controller@v1.7.0",
    "github.com/kedacore/keda/v2@v2.21.0",
    "github.com/kyverno/kyverno@v1.19.1",
    "github.com/prometheus-operator/prometheus-operator@v0.85.0",
    "github.com/tektoncd/pipeline@v1.3.0",
    "github.com/vmware-tanzu/velero@v1.18.3",
    "istio.io/api@v1.31.1",
    "knative.dev/serving@v0.51.0",
    "sigs.k8s.io/cluster-api@v1.14.2",
    "sigs.k8s.io/gateway-api@v1.4.0",
    "sigs.k8s.io/karpenter@v1.8.0",
    "github.com/argoproj/argo-workflows/v3@v3.7.0",
    "knative.dev/eventing@v0.46.0",
    "github.com/crossplane/crossplane@v1.20.0",
    "github.com/open-policy-agent/gatekeeper/v3@v3.23.1",
    "sigs.k8s.io/kueue@v0.14.0",
)
_MARK: Final = b"kind: CustomResourceDefinition"
_SETTLED: Final = 3.0
"""Seconds after the last definition is served until the first object is made."""
_PUBLISHED: Final = 40.0
"""Seconds that a document may take to have all of a group version."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 1 if anything differs."""
    parser = argparse.ArgumentParser(prog="compare_definitions", description="Compare real definitions on two servers.")
    parser.add_argument("--a", required=True, metavar="CMD", help="starts the server that is right")
    parser.add_argument("--b", required=True, metavar="CMD", help="starts the server to compare with it")
    parser.add_argument("--objects", type=int, default=20, help="objects of each definition (default: 20)")
    parser.add_argument("--only", default="", help="definitions whose name has this in it")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=60, help="differences to show (default: 60)")
    parser.add_argument("--jobs", type=int, default=4, help="requests at the same time (default: 4)")
    parser.add_argument("modules", nargs="*", metavar="MODULE@VERSION", help="Go modules (default: a list of its own)")
    options = parser.parse_args(arguments)
    found: dict[str, Body] = {}
    for module in options.modules or MODULES:
        definitions = {each["metadata"]["name"]: each for each in definitions_of(module) if options.only in _name(each)}
        print(f"{module}: {len(definitions)} definitions", flush=True)
        found |= definitions
    with Server(options.a) as a, Server(options.b) as b:
        comparison = _Comparison(a, b, options)
        comparison.run([found[name] for name in sorted(found)])
        return 1 if comparison.different else 0


def _name(definition: Body) -> str:
    return str(definition["metadata"].get("name"))


def definitions_of(module: str) -> Iterator[Body]:
    """The definitions in the YAML files of a Go module, without conversion by webhooks. Raises CalledProcessError."""
    for _, text in files_of(folder_of(module), _MARK):
        yield from definitions_in(text)


def definitions_in(text: bytes) -> Iterator[Body]:
    """Yield the definitions among the objects of a file, without patches, which have no names or groups."""
    for each in documents(text):
        is_definition = (each["kind"], each["apiVersion"]) == ("CustomResourceDefinition", "apiextensions.k8s.io/v1")
        if is_definition and "name" in each["metadata"] and "group" in (each.get("spec") or ()):
            each["spec"].pop("conversion", None)
            yield each


class _Comparison:
    def __init__(self, a: Client, b: Client, options: argparse.Namespace) -> None:
        self._clients = (a, b)
        self._comparer = Comparer(a, b)
        self._options = options
        self.different = 0
        self.requests = 0

    def run(self, definitions: Sequence[Body]) -> None:
        """Compares all of them, and tells how many differences there were."""
        self._comparer.prepare()
        made = [defined for each in definitions if (defined := self._create(each)) is not None]
        for client in self._clients:
            for each in made:
                await_served(client, each, _PUBLISHED)
        time.sleep(_SETTLED)
        self._compare_published(made)
        with ThreadPoolExecutor(self._options.jobs) as pool:
            parts = [made[job :: self._options.jobs] for job in range(self._options.jobs)]
            list(pool.map(self._compare_objects, parts))
        print(f"{len(definitions)} definitions, {len(made)} served, {self.requests} requests, {self.different} differ")

    def _play(self, comparer: Comparer, title: str, *steps: Step) -> None:
        self.requests += len(steps)
        found = comparer.play(Case(title, list(steps)))
        if found is not None and comparer.play(Case(title, list(steps))) is not None:
            self._tell(found.report(""))

    def _tell(self, text: str) -> None:
        self.different += 1
        if self.different <= self._options.show:
            print(text, flush=True)

    def _create(self, body: Body) -> Defined | None:
        self._play(self._comparer, _name(body), Step("POST", f"{COLLECTION}?dryRun=All", body))
        codes = {client.ask("POST", COLLECTION, body).code for client in self._clients}
        return Defined(body) if codes == {201} else None

    def _compare_published(self, made: Sequence[Defined]) -> None:
        group_versions: dict[tuple[str, str], list[Defined]] = {}
        for each in made:
            self._play(self._comparer, each.path, Step("GET", each.path, conditions=True))
            for version in each.versions:
                group_versions.setdefault((each.body["spec"]["group"], version["name"]), []).append(each)
        for (group, served), group_definitions in sorted(group_versions.items(), key=lambda item: item[0]):
            path = f"/apis/{group}/{served}"
            self._play(self._comparer, path, Step("GET", path), Step("GET", f"/apis/{group}"))
            self._compare_documents(f"/openapi/v3{path}", len(group_definitions))

    def _compare_documents(self, path: str, count: int) -> None:
        end = time.monotonic() + _PUBLISHED
        while True:
            self.requests += 1
            theirs, ours = (client.ask("GET", path).body for client in self._clients)
            found = list(document_differences(path, comparable(theirs), comparable(ours)))
            if not found or time.monotonic() > end:
                break
            time.sleep(1)
        for place, one, other in found[:5]:
            self._tell(f"== {place} ({count} definitions)\n   a {str(one)[:400]}\n   b {str(other)[:400]}")

    def _compare_objects(self, made: Sequence[Defined]) -> None:
        comparer = self._comparer.another()
        for each in made:
            random = Random(f"{self._options.seed}/{each.path}")
            for _ in range(self._options.objects):
                self._play(comparer, each.path, Cases(random, each).attempt())
        comparer.close()


if __name__ == "__main__":
    sys.exit(main())
