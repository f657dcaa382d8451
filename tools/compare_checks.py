"""Checks what projects publish with `steersman check`, and compares the verdicts with a server's dry runs.

    python -m tools.compare_checks --server COMMAND [--broken 500] [--seed 1] [MODULE@VERSION | FOLDER ...]

The definitions that a project brings are created on the server. Its other objects are sent there one by one (dry run,
strict validation), as they are and, of `--broken` of them, with one fault each: an unknown field, a value of another
type, a missing field, or a bad name. Compared are the verdicts' rules, fields and messages; a check may name a value of
another type more exactly. Left out are objects that change what happens to others: policies, quotas, webhooks and
APIServices; and Services with an address of their own.
"""

from __future__ import annotations

import argparse
import asyncio
import copy
import itertools
import random
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from steersman.check.documents import Document, Source, read
from steersman.check.finding import Level, Report, Rule
from steersman.check.judge import check
from steersman.check.verdicts import Verdict, verdicts, without_consequences
from steersman.client.errors import status_error

from .compare_published import SOURCES, Paths
from .compare_published import Source as Published
from .differential.custom_definitions import COLLECTION, Defined
from .differential.server import Client, Server
from .differential.serving import await_served
from .published import Body

_OF_OTHERS: Final = frozenset(
    {
        "CustomResourceDefinition",
        "ResourceQuota",
        "LimitRange",
        "APIService",
        *(f"{each}AdmissionPolicy{end}" for each in ("Validating", "Mutating") for end in ("", "Binding")),
        *(f"{each}WebhookConfiguration" for each in ("Validating", "Mutating")),
    }
)
_COMPARED: Final = frozenset(
    {Rule.UNKNOWN_KIND, Rule.UNKNOWN_FIELD, Rule.MALFORMED, Rule.INVALID, Rule.FORBIDDEN, Rule.REFUSED}
)
_IN_BRACKETS: Final = re.compile(r"\[[^]]*\]")
_NAMESPACE: Final = "checked"
_NAMESPACES: Final = (None, _NAMESPACE, "default")
"""Namespaces of objects; a check makes every other one, and a server has no such namespace."""
_PATIENCE: Final = 30.0
Row = tuple[str, str, str]
"""Rule, field and message of a verdict."""


def objects_of(published: Published) -> Iterator[Body]:
    """Yield the objects of a project that can be compared, each with a name of its own."""
    for number, each in enumerate(published.all()):
        if each["kind"] in _OF_OTHERS or each["kind"].endswith("List") or not _name(each) or _has_own_address(each):
            continue
        body = copy.deepcopy(each)
        body["metadata"].pop("resourceVersion", None)  # a dry run accepts it, and a creation does not
        body["metadata"] |= {"name": f"{str(body['metadata']['name'])[:40]}-{number}"}
        if body["metadata"].get("namespace"):
            body["metadata"]["namespace"] = _NAMESPACE
        yield body


def _name(body: Body) -> str:
    """Return the name of an object; "" without one, or with a namespace that is no text."""
    metadata = body.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("namespace", ""), str):
        return ""
    name = metadata.get("name")
    return name if isinstance(name, str) else ""


def _has_own_address(body: Body) -> bool:
    """Return True for a Service with an address or port of its own, which a dry run treats in another way."""
    return body["kind"] == "Service" and ("clusterIP" in str(body.get("spec")) or "nodePort" in str(body.get("spec")))


def broken(body: Body, chance: random.Random) -> Body:
    """Return a copy of an object with one fault."""
    found = copy.deepcopy(body)
    places = [each for each in _objects_in(found) if each is not found]
    place = chance.choice(places)
    fault = chance.randrange(4)
    name = chance.choice(sorted(place)) if place else "none"
    if fault == 0 or not place:
        place["strangeField"] = "x"
    elif fault == 1:
        place[name] = chance.choice([{"a": 1}, [1], "text", 17, True])
    elif fault == 2:
        del place[name]
    else:
        found["metadata"]["name"] = chance.choice(["UPPER", "a_b", "x" * 300, "-a"])
    return found


def _broken(bodies: Sequence[Body], chance: random.Random) -> Iterator[Body]:
    """Yield copies of objects with one fault each, without end; a name and a known namespace remain in each."""
    while True:
        found = broken(chance.choice(bodies), chance)
        if _name(found) and found["metadata"].get("namespace") in _NAMESPACES:
            yield found


def _objects_in(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _objects_in(each)


def asked(client: Client, paths: Paths, body: Body) -> list[Row]:
    """Return the verdicts of a server."""
    found = paths.collection(body)
    if found is None:
        return [(Rule.UNKNOWN_KIND.value, "", "")]
    unknown: list[Verdict] = []
    rows: list[Row] = []
    for validation in ("Strict", "Ignore"):
        answer = client.ask("POST", f"{found[0]}?dryRun=All&fieldValidation={validation}", body)
        if answer.code < 300:
            break
        said = list(without_consequences(verdicts(status_error(answer.body, answer.code)), unknown))
        rows += [(each.rule.value, each.field, each.message) for each in said]
        if any(each.rule is not Rule.UNKNOWN_FIELD for each in said):
            break
        unknown = said
    return sorted(rows)


def checked(report: Report, documents: Sequence[Document]) -> list[list[Row]]:
    """Return the verdicts of a check for each document."""
    rows: dict[tuple[str, str, str], list[Row]] = {}
    for each in report.findings:
        if each.level is Level.ERROR and each.rule in _COMPARED:
            message = "" if each.rule is Rule.UNKNOWN_KIND else each.message
            subject = each.object
            rows.setdefault((subject.api_version, subject.kind, subject.name), []).append(
                (each.rule.value, each.field, message)
            )
    return [sorted(rows.get((each.api_version, each.kind, each.name), ())) for each in documents]


def agree(ours: Sequence[Row], theirs: Sequence[Row]) -> bool:
    """Return True if the verdicts are the same.

    Of a value of another type a check may know more about the position: a server names fields without items and keys,
    or none at all.
    """
    if len(ours) != len(theirs):
        return False
    for (rule, field, message), (their_rule, their_field, their_message) in zip(ours, theirs, strict=True):
        fields = {field, "", _IN_BRACKETS.sub("", field)} if rule == Rule.MALFORMED.value else {field}
        if (rule, message) != (their_rule, their_message) or their_field not in fields:
            return False
    return True


class Comparison:
    """Counts of what was compared, and of what differs."""

    def __init__(self, client: Client, options: argparse.Namespace) -> None:
        self._client = client
        self._paths = Paths(client)
        self._chance = random.Random(options.seed)
        self._show: int = options.show
        self._definitions: dict[str, Body] = {}
        """Definitions that the server has, of all projects so far."""
        self.documents = self.broken = self.different = 0
        client.ask("POST", "/api/v1/namespaces", {"metadata": {"name": _NAMESPACE}})
        for namespace in (_NAMESPACE, "default"):
            path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
            client.ask("POST", path, {"metadata": {"name": "default"}})

    def run(self, name: str, published: Published, share: int) -> None:
        """Compare the verdicts on a project's objects, and on `share` that are made of them with faults."""
        for definition, each in published.definitions.items():
            if self._client.ask("POST", COLLECTION, each).code == 201:  # another project may have brought it
                await_served(self._client, Defined(each), _PATIENCE)
                self._definitions[definition] = each
        self._paths = Paths(self._client)
        bodies = list(objects_of(published))
        faulty = list(itertools.islice(_broken(bodies, self._chance), share)) if bodies else []
        for number, each in enumerate(faulty):
            each["metadata"]["name"] = f"{each['metadata']['name']}{number}"
        self.documents += len(bodies)
        self.broken += len(faulty)
        self._compare([*self._definitions.values()], [*bodies, *faulty])
        print(f"{name}: {len(bodies)} documents, {len(faulty)} broken; {self.different} differ so far", flush=True)

    def _compare(self, definitions: list[Body], bodies: list[Body]) -> None:
        found = [_document(each, number) for number, each in enumerate([*definitions, *bodies])]
        report = asyncio.run(check(found))
        for document, ours in zip(found[len(definitions) :], checked(report, found)[len(definitions) :], strict=True):
            theirs = asked(self._client, self._paths, document.plain)
            if not agree(ours, theirs):
                self.different += 1
                if self.different <= self._show:
                    print(f"{document.kind} {document.name}:\n  check:  {ours}\n  server: {theirs}", flush=True)


def _document(body: Body, number: int) -> Document:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, f"{number}.yaml")
        file.write_text(yaml.safe_dump(body))
        documents, _ = read([str(file)])
    (document,) = documents
    return Document(document.plain, Source(f"{number}.yaml", document.source.data), document.line)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, and return 1 if anything differs."""
    parser = argparse.ArgumentParser(prog="compare_checks", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--server", required=True, metavar="CMD", help="starts the server that is right")
    parser.add_argument("--broken", type=int, default=500, help="documents with faults (default: 500)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=20, help="differences to show (default: 20)")
    parser.add_argument("sources", nargs="*", metavar="SOURCE", help="Go modules, or folders")
    options = parser.parse_args(arguments)
    published = [(each, Published(each)) for each in options.sources or SOURCES]
    projects = [(name, each) for name, each in published if next(objects_of(each), None)]
    with Server(options.server) as client:
        comparison = Comparison(client, options)
        left = options.broken
        for number, (name, each) in enumerate(projects):
            share = -(-left // (len(projects) - number))
            comparison.run(name, each, share)
            left -= share
    print(f"{comparison.documents} documents and {comparison.broken} broken ones, {comparison.different} differ")
    return 1 if comparison.different else 0


if __name__ == "__main__":
    sys.exit(main())
