"""`python -m tools.cluster_attacks.walk`: every field that an editor of a namespace may write, at its extremes.

    python -m tools.cluster_attacks.walk [--part 1/4] [--only REGEX] [--seconds N] [--held 50] [--memory 64] [KIND ...]

On one `steersman up`, in a namespace with a quota of pods, a service account with the role `edit` makes an object for
each attack and deletes it again. Told are attacks in which something held the event loop for longer than `--held`
milliseconds, the process grew by more than `--memory` MiB (three times that for kinds of which pods are made), a
request was answered with a panic, or a traceback was logged; such an attack is played again, and counts if it does it
again. Exit code 1 if there are any.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path as File
from typing import Any, Final, NamedTuple
from zlib import crc32

from tools.cluster_attacks.cluster import NAMESPACE, AttackedCluster, Plain
from tools.cluster_attacks.fields import FEW_SEEDS, SEEDS, Attempt, Field, Schemas, attempts, fields
from tools.cluster_attacks.samples import SAMPLES, resource_of, sample

_QUOTA: Final = "20"
_LONGEST: Final = 8.0
"""Seconds for which the consequences of an attack are watched at most."""
_MAKE_OTHERS: Final = frozenset(
    {
        "deployments",
        "replicasets",
        "statefulsets",
        "daemonsets",
        "jobs",
        "cronjobs",
        "replicationcontrollers",
        "services",
    }
)
_COPIES: Final = 3
"""Copies of a template that exist at the same time: in the object, in what is made of it, in a pod."""
_NEVER_STORED: Final = frozenset(
    {"localsubjectaccessreviews", "bindings", "tokenreviews", "serviceaccounts/token", "pods/eviction"}
)
_SELECTED: Final = (
    r"spec\.containers\.0\.(env|command|args)$|env\.0\.value$|terminationGracePeriod|activeDeadline|"
    r"spec\.(replicas|parallelism|completions|schedule|ordinals\.start|minReadySeconds|maxReplicas|backoffLimit)$|"
    r"simulation\.steersman\.dev/(run-for|logs|cpu)$|spec\.(containers|tolerations|volumes|template|rules)$|"
    r"ttlSecondsAfterFinished$|succeededIndexes$|spec\.(selector|hard)$"
)
"""Fields of which a short run is made."""


_PANIC: Final = "panic"
"""In the answer to a request whose handler failed. Other errors of a server are answers, as upstream has them."""
_MERGE_PATCH: Final = "application/merge-patch+json"
_TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"


class Kind(NamedTuple):
    """A kind that the attacker may make."""

    resource: str
    group: str
    version: str
    name: str

    @property
    def path(self) -> str:
        """Return the path at which objects of the kind are created."""
        return f"{self.prefix}/namespaces/{NAMESPACE}/{self.resource}"

    @property
    def prefix(self) -> str:
        """The path of its group version."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"


_Found = tuple[Kind, str, Plain, Field]
"""A field of a sample, with the name of that."""


class Broken(NamedTuple):
    """Bound that an attack has broken."""

    name: str
    what: str


def main() -> None:
    """Plays the attacks, and tells which are over the bounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="KIND")
    parser.add_argument("--part", default="1/1", metavar="N/OF")
    parser.add_argument("--only", default="", metavar="REGEX", help="of `KIND PATH`")
    parser.add_argument("--selection", action="store_true", help="a short run")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="after which no other attack is begun")
    parser.add_argument("--held", type=float, default=50, metavar="MILLISECONDS")
    parser.add_argument("--memory", type=float, default=64, metavar="MIB")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    broken = walk(
        kinds=options.kinds,
        part=options.part,
        only=options.only,
        selection=options.selection,
        seconds=options.seconds,
        held=options.held / 1000,
        memory=options.memory,
        told=partial(print, flush=True),
        verbose=options.verbose,
    )
    print(f"{len(broken)} over the bounds")
    sys.exit(1 if broken else 0)


def walk(
    *,
    kinds: Sequence[str] = (),
    part: str = "1/1",
    only: str = "",
    selection: bool = False,
    seconds: float = float("inf"),
    held: float = 0.05,
    memory: float = 64,
    told: Callable[[str], object],
    verbose: bool = False,
) -> list[Broken]:
    """Play the attacks on a cluster, and return those that are over the bounds."""
    only, seeds = (_SELECTED, FEW_SEEDS) if selection else (only, SEEDS)
    broken: list[Broken] = []
    began, number, played = time.monotonic(), 0, 0
    at, of = map(int, part.split("/"))
    with (
        tempfile.TemporaryDirectory(prefix="steersman-attacks-") as folder,
        AttackedCluster(File(folder), 3, role="edit", others=False, storage="--unsafe-no-fsync") as cluster,
    ):
        player = _Player(cluster, held, memory)
        chosen: Iterable[_Found] = player.fields(kinds, only)
        if selection:  # some of each kind, however short the time is
            chosen = sorted(chosen, key=lambda each: crc32(f"{each[1]} {dotted(each[3])}".encode()))
        for kind, name, obj, field in chosen:
            number += 1
            if number % of != at % of:
                continue
            if time.monotonic() - began > seconds:
                told(f"stopped at {kind.resource} {dotted(field)}: the time is over")
                break
            for attempt in attempts(obj, field, partial(player.takes, kind), seeds):
                what, found = f"{name} {dotted(field)} {attempt.name}", player.play(kind, attempt)
                played += found is not None
                if found or verbose:
                    told(f"{what}: {'is never valid' if found is None else found or 'does no harm'}")
                if found:
                    broken.append(Broken(what, found))
    told(f"{played} attacks on {number} fields in {time.monotonic() - began:.0f} s")
    return broken


def dotted(field: Field) -> str:
    """Return the path of a field, joined by dots."""
    return ".".join(map(str, field.path))


class _Player:
    def __init__(self, cluster: AttackedCluster, held: float, memory: float) -> None:
        self._cluster = cluster
        self._held = held
        self._memory = memory
        self._schemas: dict[str, Schemas] = {}
        self.posted = 0
        cluster.make(
            f"/api/v1/namespaces/{NAMESPACE}/resourcequotas",
            {"metadata": {"name": "pods"}, "spec": {"hard": {"pods": _QUOTA}}},
            by=cluster.admin,
        )

    def fields(self, wanted: Sequence[str], only: str) -> Iterator[_Found]:
        """Each field of each sample of each kind that the attacker may make."""
        for kind in self.kinds():
            names = [name for name in SAMPLES if resource_of(name) == kind.resource]
            if not names:
                raise LookupError(f"there is no sample of {kind.resource}")
            for name in names:
                if wanted and name not in wanted:
                    continue
                schemas = self._schemas_of(kind)
                obj = sample(name)
                code, answer = self._post(f"{kind.path}?dryRun=All", obj)
                if code != 201:
                    raise ValueError(f"the sample {name} is not valid: {answer}")
                for field in fields(schemas, schemas.of_kind(kind.group, kind.version, kind.name), obj):
                    if field.path and re.search(only, f"{name} {dotted(field)}"):
                        yield kind, name, obj, field

    def kinds(self) -> Iterator[Kind]:
        """The kinds of objects that the attacker may make in the namespace."""
        answered = self._cluster.make(
            "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {"spec": {"namespace": NAMESPACE}}
        )
        may = {
            (group, resource)
            for rule in answered["status"]["resourceRules"]
            if {"create", "*"}.intersection(rule["verbs"])
            for group in rule["apiGroups"]
            for resource in rule["resources"]
        }
        groups = self._cluster.admin.json("GET", "/apis")[1]["groups"]
        versions = [("", "v1"), *((each["name"], each["preferredVersion"]["version"]) for each in groups)]
        for group, version in versions:
            prefix = f"/apis/{group}/{version}" if group else "/api/v1"
            for each in self._cluster.admin.json("GET", prefix)[1]["resources"]:
                is_ours = (group, each["name"]) in may and each["namespaced"] and "/" not in each["name"]
                if is_ours and "create" in each["verbs"] and each["name"] not in _NEVER_STORED:
                    yield Kind(each["name"], group, version, each["kind"])

    def _schemas_of(self, kind: Kind) -> Schemas:
        if kind.prefix not in self._schemas:
            self._schemas[kind.prefix] = Schemas(self._cluster.admin.json("GET", f"/openapi/v3{kind.prefix}")[1])
        return self._schemas[kind.prefix]

    def takes(self, kind: Kind, obj: Plain) -> bool:
        """Return True if the server takes an object."""
        return self._post(f"{kind.path}?dryRun=All", obj)[0] == 201

    def _post(self, path: str, obj: Plain) -> tuple[int, Any]:
        while True:
            code, answer = self._ask("POST", path, obj)
            self.posted += 1
            if code != 429:
                return code, answer
            time.sleep(0.2)

    def _ask(self, method: str, path: str, body: Plain | None = None) -> tuple[int, Any]:
        """The answer to a request of the attacker's: what JSON says, else the text."""
        code, answer = self._cluster.client.request(method, path, body)
        try:
            return code, json.loads(answer)
        except ValueError:
            return code, answer.decode(errors="replace")

    def play(self, kind: Kind, attempt: Attempt) -> str | None:
        """Play an attack, and once more if it is over the bounds; return what is. None if no variant of it is valid."""
        what = ""
        for _ in range(2):
            was_made, what = self._play_once(kind, attempt)
            if not what:
                return what if was_made else None
        return what

    def _play_once(self, kind: Kind, attempt: Attempt) -> tuple[bool, str]:
        cluster = self._cluster
        memory = self._memory * (_COPIES if kind.resource in _MAKE_OTHERS else 1)
        cluster.begin()
        panics = ""
        was_made = False
        for variant in attempt.variants:
            code, answer = self._post(kind.path, variant())
            if code == 500 and _PANIC in str(answer):
                panics = f"answered {str(answer)[:200]}"
            if code == 201:
                was_made = True
                break
        if was_made:
            self._look(kind)
            cluster.quiet(_LONGEST)
            panics = self._clean_up(kind) or panics
            cluster.quiet(_LONGEST)
        return was_made, "; ".join(filter(None, (panics, *cluster.over(self._held, memory))))

    def _look(self, kind: Kind) -> None:
        """Read what a user of the kind reads."""
        client, pods = self._cluster.client, f"/api/v1/namespaces/{NAMESPACE}/pods"
        client.request("GET", kind.path, headers={"Accept": _TABLE})
        if kind.resource == "pods":
            self._cluster.quiet(2.0)
            client.request("GET", f"{pods}/attack/log?tailLines=3&container=c")

    def _clean_up(self, kind: Kind) -> str:
        """Deletes what was made; what was answered that is no answer."""
        told = ""
        for path in (f"{kind.path}/attack", kind.path, f"/api/v1/namespaces/{NAMESPACE}/pods?gracePeriodSeconds=0"):
            if path == kind.path and kind.resource in ("secrets", "serviceaccounts", "configmaps", "resourcequotas"):
                continue
            code, answer = self._ask("DELETE", path)
            if code >= 500 and _PANIC in str(answer):
                told = f"DELETE answered {str(answer)[:200]}"
        self._cluster.admin.request(
            "PATCH", f"{kind.path}/attack", {"metadata": {"finalizers": None}}, {"Content-Type": _MERGE_PATCH}
        )
        self._cluster.admin.json("DELETE", f"{kind.path}/attack?gracePeriodSeconds=0")
        return told


if __name__ == "__main__":
    main()
