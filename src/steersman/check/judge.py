"""Judges documents by sending them to a server, in the order of their dependencies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from steersman.authentication.user import UserInfo
from steersman.check.definitions import changes
from steersman.check.documents import Document, mapping, sequence, text
from steersman.check.finding import CheckedObject, Finding, Level, Report, Rule
from steersman.check.malformed import field_of
from steersman.check.order import in_order
from steersman.check.pods import Pods, pods_of
from steersman.check.references import dangling_references
from steersman.check.server import ADMIN, Answer, JudgingServer, judging_server, path_of
from steersman.check.verdicts import Verdict, verdicts, without_consequences
from steersman.client.client import MERGE_PATCH
from steersman.endpoints.discovery import ServedResource
from steersman.machinery.codec.yaml_positions import lines_of, steps_of
from steersman.machinery.patch.merge_patch import merge_patch_of

_RBAC: Final = "rbac.authorization.k8s.io"
_DEFINITION: Final = ("apiextensions.k8s.io", "CustomResourceDefinition")
_SHARED_BY_VERSIONS: Final = {
    "validation": "schema",
    "subresources": "subresources",
    "additionalPrinterColumns": "additionalPrinterColumns",
    "selectableFields": "selectableFields",
}
"""Fields of versions by the names that the server gives them in `spec` if they are the same in all versions."""
_ELSEWHERE: Final = frozenset({"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "APIService"})
_POLICIES: Final = frozenset({"ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"})
_CONDITIONS: Final = {"NamesAccepted": "False", "NonStructuralSchema": "True"}
"""Conditions of definitions that are served in part only."""
Identity = tuple[str, str, str, str]
"""Group, kind, namespace and name of an object."""


class Settings(Struct, frozen=True):
    """Settings of a check."""

    namespace: str = "default"
    """Namespace of objects that name none."""
    user: UserInfo | None = None
    """User who sends the documents; None for an administrator."""
    ignored: frozenset[Rule] = frozenset()


async def check(
    documents: Sequence[Document], old: Sequence[Document] = (), settings: Settings | None = None
) -> Report:
    """Judge documents, and return the report. `old` are objects that exist before, some in another form.

    Raises OSError if no temporary folder can be made.
    """
    settings = settings or Settings()
    async with judging_server() as server:
        judge = _Judge(server, settings)
        await judge.run(documents, old)
    found = [*judge.findings, *judge.references(documents, old)]
    return Report(
        _with_lines([(each, finding) for each, finding in found if finding.rule not in settings.ignored]),
        [CheckedObject(each.source.name, each.line, judge.subject(each)) for each in documents],
    )


class _Judge:
    """The course of a check: findings with their documents, and objects that exist on the server."""

    def __init__(self, server: JudgingServer, settings: Settings) -> None:
        self.findings: list[tuple[Document, Finding]] = []
        self._server = server
        self._settings = settings
        self._namespaces = {"default", "kube-system", "kube-public", "kube-node-lease"}
        self._quotas: set[str] = set()
        """Namespaces with quotas."""
        self._old: dict[Identity, Document] = {}
        self._judged: dict[Identity, Document] = {}

    def references(self, documents: Sequence[Document], old: Sequence[Document]) -> Iterator[tuple[Document, Finding]]:
        """Yield findings about references that lead nowhere."""
        for document, field, message in dangling_references(documents, old, self._settings.namespace):
            yield document, self._finding(document, Rule.DANGLING_REFERENCE, message, field, Level.WARNING)

    def subject(self, document: Document) -> Any:
        """Return the object of a document, with the namespace that it goes to."""
        return document.subject(self._place(document))

    async def run(self, documents: Sequence[Document], old: Sequence[Document]) -> None:
        """Judge all documents."""
        parameters = frozenset(_parameters((*old, *documents)))
        await self._store_old(in_order(old, parameters))
        if self._settings.user is not None:
            for each in in_order(documents, parameters):
                if each.group == _RBAC:
                    await self._send(each, None, ADMIN)
        ordered = in_order(documents, parameters)
        definitions = [each for each in ordered if (each.group, each.kind) == _DEFINITION]
        for each in definitions:
            await self._judge(each)
        await self._server.settle()
        for each in definitions:
            await self._judge_definition(each)
        await self._server.settle()
        await self._judge_stored(old)
        for each in ordered:
            if (each.group, each.kind) != _DEFINITION:
                await self._judge(each)

    async def _store_old(self, old: Sequence[Document]) -> None:
        settled = False
        for each in old:
            if each.kind in _ELSEWHERE:
                continue
            if not settled and (each.group, each.kind) != _DEFINITION:
                await self._server.settle()
                settled = True
            if (await self._send(each, None, ADMIN, strict=False)).error is None:
                self._old[self._identity(each)] = each
                await self._prepare(each)
        await self._server.settle()

    async def _judge(self, document: Document) -> None:
        """Judge a document, and leave its object on the server if it is accepted."""
        for each in document.problems:
            self._add(document, Rule.UNREADABLE, each)
        identity = self._identity(document)
        earlier = self._judged.setdefault(identity, document)
        if earlier is not document and document.metadata.get("name"):
            place = f"{earlier.source.name}:{earlier.line}"
            self._add(document, Rule.DUPLICATE, f"the object is also in {place}", level=Level.WARNING)
            return
        if self._server.resource_for(document.api_version, document.kind) is None:
            self._add(document, Rule.UNKNOWN_KIND, self._unknown_kind(document))
            return
        accepted = await self._is_accepted(document)
        if self._settings.user is not None:  # for the other objects it exists, whatever the user's rights
            await self._send(document, self._old.get(self._identity(document)), ADMIN, strict=False)
        if not accepted:
            return
        await self._prepare(document)
        pods = pods_of(document)
        if pods is not None:
            await self._judge_pods(document, pods)

    async def _is_accepted(self, document: Document) -> bool:
        """Write an object, tell what the server says, and return True if it accepts the object.

        Without its unknown fields an object is judged once more, so that what else is wrong with it is told too.
        """
        unknown: list[Verdict] = []
        for strict in (True, False):
            answer = await self._write(document, strict=strict)
            if strict or answer.error is None:
                for each in answer.warnings:
                    self._add(document, Rule.WARNING, each, level=Level.WARNING)
            if answer.error is None:
                return True
            found = list(without_consequences(verdicts(answer.error), unknown))
            for verdict in found:
                field = verdict.field
                if verdict.rule is Rule.MALFORMED:
                    field = field_of(document.plain, verdict.message, field)
                self._add(document, verdict.rule, verdict.message, field)
            if any(each.rule is not Rule.UNKNOWN_FIELD for each in found):
                return False
            unknown = found
        return False

    async def _write(self, document: Document, *, strict: bool) -> Answer:
        """Write an object, or change the old one to it; as a user who is no administrator only try it."""
        user = self._settings.user
        old = self._old.get(self._identity(document))
        if user is None:
            return await self._send(document, old, ADMIN, strict=strict)
        answer = await self._send(document, old, user, strict=strict, dryRun="All")
        if answer.error is not None and answer.error.reason == "AlreadyExists" and document.group == _RBAC:
            return Answer(warnings=answer.warnings)  # written before the others, as the user's rights
        return answer

    async def _send(
        self, document: Document, old: Document | None, user: UserInfo, *, strict: bool = True, **query: str
    ) -> Answer:
        """Create an object, or change the old one as `kubectl apply` does: by what differs between the documents."""
        served = self._server.resource_for(document.api_version, document.kind)
        if served is None:
            return Answer()
        namespace = await self._namespace(document, served)
        query["fieldValidation"] = "Strict" if strict else "Ignore"
        if old is None:
            return await self._server.send("POST", path_of(served, namespace), document.plain, user=user, **query)
        path, patch = path_of(served, namespace, document.name), merge_patch_of(old.plain, document.plain)
        return await self._server.send("PATCH", path, patch, user=user, media=MERGE_PATCH, **query)

    async def _namespace(self, document: Document, served: ServedResource) -> str:
        """Return the namespace of an object, which is created if no document has created it."""
        if not served.resource.namespaced:
            return ""
        namespace = document.namespace or self._settings.namespace
        if namespace not in self._namespaces:
            self._namespaces.add(namespace)
            plain = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            await self._server.send("POST", "/api/v1/namespaces", plain)
        return namespace

    async def _prepare(self, document: Document) -> None:
        """Do what controllers would do with an object before others are judged."""
        if document.kind == "Namespace" and not document.group:
            self._namespaces.add(document.name)
        if document.kind == "ResourceQuota" and not document.group:
            namespace = document.namespace or self._settings.namespace
            served = self._server.resource_for("v1", "ResourceQuota")
            assert served is not None
            path = path_of(served, namespace, document.name, "status")
            hard = mapping(mapping(document.plain.get("spec")).get("hard"))
            status = {"status": {"hard": hard, "used": dict.fromkeys(hard, "0")}}
            await self._server.send("PATCH", path, status, media=MERGE_PATCH)
            self._quotas.add(namespace)

    async def _judge_pods(self, document: Document, pods: Pods) -> None:
        """Judge the pods of a workload: one, or with a quota as many as it wants."""
        namespace = self._place(document)
        has_quota = namespace in self._quotas
        path = f"/api/v1/namespaces/{namespace}/pods"
        for index in range(pods.number if has_quota else 1):
            pod = pods.pod(document, namespace, index)
            query = {} if has_quota else {"dryRun": "All"}
            answer = await self._server.send("POST", path, pod, user=pods.user, **query)
            if answer.error is None:
                continue
            for each in verdicts(answer.error):
                field = f"{pods.path}.{each.field}" if each.field else pods.path
                self._add(document, Rule.POD_REFUSED, each.message, field)
            return

    async def _judge_definition(self, document: Document) -> None:
        """Judge what becomes of a definition, and let objects of all its versions be judged without its webhook."""
        served = self._server.resource_for(document.api_version, document.kind)
        if served is None:
            return
        path = path_of(served, "", document.name)
        answer = await self._server.send("GET", path, None)
        if answer.error is not None:
            return
        for each in sequence(mapping(answer.plain.get("status")).get("conditions")):
            if _CONDITIONS.get(each["type"]) == each["status"]:
                self._add(document, Rule.REFUSED, f"{each['type']}={each['status']}: {each['message']}")
        if mapping(mapping(answer.plain["spec"]).get("conversion")).get("strategy") == "Webhook":
            none = {"spec": {"conversion": {"strategy": "None", "webhook": None}}}
            await self._server.send("PATCH", path, none, media=MERGE_PATCH)
        old = self._old.get(self._identity(document))
        for change in () if old is None else changes(old.plain, document.plain):
            self._add(document, change.rule, change.message, change.field, change.level)

    async def _judge_stored(self, old: Sequence[Document]) -> None:
        """Judge old custom resources under new definitions, without what is forgiven to values that do not change."""
        changed = {
            (text(mapping(each.plain.get("spec")).get("group")), text(mapping(names).get("kind")))
            for each in self._judged.values()
            if (each.group, each.kind) == _DEFINITION
            for names in [mapping(each.plain.get("spec")).get("names")]
        }
        for each in old:
            if (each.group, each.kind) not in changed or self._identity(each) not in self._old:
                continue
            answer = await self._send(each, None, ADMIN, dryRun="All")
            if answer.error is None or answer.error.reason == "AlreadyExists":
                continue
            for verdict in verdicts(answer.error):
                self._add(each, Rule.STORED_OBJECT, verdict.message, verdict.field)

    def _unknown_kind(self, document: Document) -> str:
        message = f'no matches for kind "{document.kind}" in version "{document.api_version}"'
        versions = self._server.versions_with(document.kind)
        return f"{message}: it is served in {', '.join(versions)}" if versions else message

    def _identity(self, document: Document) -> Identity:
        return (document.group, document.kind, self._place(document), document.name)

    def _place(self, document: Document) -> str:
        """Return the namespace that an object goes to, "" for one without."""
        served = self._server.resource_for(document.api_version, document.kind)
        namespaced = served is None or served.resource.namespaced
        return (document.namespace or self._settings.namespace) if namespaced else ""

    def _add(self, document: Document, rule: Rule, message: str, field: str = "", level: Level = Level.ERROR) -> None:
        self.findings.append((document, self._finding(document, rule, message, field, level)))

    def _finding(self, document: Document, rule: Rule, message: str, field: str, level: Level) -> Finding:
        return Finding(level, rule, message, document.source.name, document.line, field, self.subject(document))


def _parameters(documents: Sequence[Document]) -> Iterator[tuple[str, str]]:
    """Yield the kinds of objects that policies read as their parameters."""
    for each in documents:
        if each.kind in _POLICIES:
            kind = mapping(mapping(each.plain.get("spec")).get("paramKind"))
            yield text(kind.get("apiVersion")), text(kind.get("kind"))


def _with_lines(found: list[tuple[Document, Finding]]) -> list[Finding]:
    """Return findings with the lines of their fields, in the order of the sources and lines."""
    by_source: dict[str, list[tuple[Document, Finding]]] = {}
    for each in found:
        by_source.setdefault(each[0].source.name, []).append(each)
    findings: list[Finding] = []
    for here in by_source.values():
        fields = [(document.number, (*document.path, *_steps(document, finding.field))) for document, finding in here]
        lines = lines_of(here[0][0].source.data, fields)
        placed = [replace(each, line=lines.get(number, each.line)) for number, (_, each) in enumerate(here)]
        findings += sorted(placed, key=lambda each: each.line)
    return findings


def _steps(document: Document, field: str) -> tuple[str, ...]:
    """Return the steps to a field. What all versions of a definition share is reported as `spec.validation` and such."""
    steps = steps_of(field)
    if (document.group, document.kind) == _DEFINITION and steps[:1] == ("spec",) and steps[1:2]:
        shared = _SHARED_BY_VERSIONS.get(steps[1])
        return steps if shared is None else ("spec", "versions", "0", shared, *steps[2:])
    return steps
