"""ControllerRevisions: earlier templates of a DaemonSet or StatefulSet, kept for rollbacks."""

from __future__ import annotations

from collections.abc import Iterator

from steersman.api.apps.v1 import ControllerRevision
from steersman.kinds.built_in import built_in
from steersman.machinery.codec.serializer import compact, escape_html
from steersman.machinery.errors.field import FieldError, Path, Verbatim, invalid, required
from steersman.machinery.go.strings import to_lower
from steersman.machinery.validation.leaves import FIELD_IMMUTABLE, validate_nonnegative
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource
from steersman.rest.strategy import Strategy


def controller(revision: ControllerRevision) -> str:
    """Return the managing owner, e.g. `daemonset.apps/fluentd`."""
    for owner in revision.metadata.owner_references:
        if owner.controller:
            group = owner.api_version.rpartition("/")[0]
            kind = to_lower(owner.kind)
            return f"{kind}.{group}/{owner.name}" if group else f"{kind}/{owner.name}"
    return "<none>"


def _validate(revision: ControllerRevision) -> Iterator[FieldError]:
    yield from validate_nonnegative(revision.revision, Path("revision"))


class ControllerRevisionStrategy(Strategy[ControllerRevision]):
    def validate(self, ctx: Context, revision: ControllerRevision) -> Iterator[FieldError]:
        yield from _validate(revision)
        if revision.data is None or bytes(revision.data) == b"null":
            yield required(Path("data"), "data is mandatory")
        elif not bytes(revision.data).lstrip().startswith(b"{"):
            yield required(Path("data"), "data must be a valid JSON object")

    def validate_update(self, ctx: Context, new: ControllerRevision, old: ControllerRevision) -> Iterator[FieldError]:
        yield from _validate(new)
        # Stored data has passed an encoder that escapes HTML characters; otherwise bytes are compared.
        data = escape_html(bytes(new.data or b""))
        if data != bytes(old.data or b""):
            yield invalid(Path("data"), Verbatim(compact(data or b"null").decode()), FIELD_IMMUTABLE)


CONTROLLER_REVISIONS = Resource(
    kind=built_in(ControllerRevision, keeps_raw_data=True),
    plural="controllerrevisions",
    strategy=ControllerRevisionStrategy(),
    name_validator=name_is_dns_subdomain,
    revalidates_metadata=True,
    columns=(
        Column("Controller", controller, description="Controller of the object"),
        Column("Revision", lambda r: r.revision),
        AGE,
    ),
    storage_version_hash="85nkx63pcBU=",
)
