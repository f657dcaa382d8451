"""CertificateSigningRequests: requests for a certificate, which an approver approves and a signer signs."""

from __future__ import annotations

from collections.abc import Iterator

from steersman.api.certificates.v1 import (
    CertificateSigningRequest,
    CertificateSigningRequestCondition,
    CertificateSigningRequestStatus,
)
from steersman.kinds.built_in import built_in
from steersman.machinery.errors.field import FieldError
from steersman.machinery.validation.object_meta import name_is_path_segment
from steersman.machinery.values import times
from steersman.registry.certificates.validation import (
    Allowance,
    allowance_of_update,
    validate_request,
    validate_request_update,
)
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource, Subresource
from steersman.rest.strategy import StatusStrategy, Strategy

Conditions = list[CertificateSigningRequestCondition]


class CSRStrategy(Strategy[CertificateSigningRequest]):
    resets = ("spec", "status")

    def prepare_for_create(self, ctx: Context, request: CertificateSigningRequest) -> None:
        # The requestor is always the request user, whatever the object says.
        spec, user = request.spec, ctx.user
        spec.username, spec.uid = user.name, user.uid
        spec.groups = list(user.groups)
        spec.extra = {key: list(values) for key, values in user.extra.items()}
        request.status = CertificateSigningRequestStatus()

    def validate(self, ctx: Context, request: CertificateSigningRequest) -> Iterator[FieldError]:
        return validate_request(request, Allowance())

    def validate_update(
        self, ctx: Context, new: CertificateSigningRequest, old: CertificateSigningRequest
    ) -> Iterator[FieldError]:
        return validate_request_update(new, old, allowance_of_update(new, old))


class CSRStatusStrategy(StatusStrategy[CertificateSigningRequest]):
    """The strategy of `/status` for signers, which cannot change approval or denial."""

    resets = ("spec", "status/conditions")

    def prepare_for_update(self, ctx: Context, new: CertificateSigningRequest, old: CertificateSigningRequest) -> None:
        new.spec = old.spec
        for condition_type in ("Approved", "Denied"):
            _keep_conditions(new.status.conditions, old.status.conditions, condition_type)
        _set_times(new.status.conditions, old.status.conditions)

    def validate_update(
        self, ctx: Context, new: CertificateSigningRequest, old: CertificateSigningRequest
    ) -> Iterator[FieldError]:
        return validate_request_update(new, old, allowance_of_update(new, old, certificate=True))


class CSRApprovalStrategy(StatusStrategy[CertificateSigningRequest]):
    """The strategy of `/approval` for approvers, which can change only conditions."""

    resets = ("spec", "status/certificate")

    def prepare_for_update(self, ctx: Context, new: CertificateSigningRequest, old: CertificateSigningRequest) -> None:
        super().prepare_for_update(ctx, new, old)
        _set_times(new.status.conditions, old.status.conditions)

    def validate_update(
        self, ctx: Context, new: CertificateSigningRequest, old: CertificateSigningRequest
    ) -> Iterator[FieldError]:
        return validate_request_update(new, old, allowance_of_update(new, old, approval=True))


def _keep_conditions(new: Conditions, old: Conditions, condition_type: str) -> None:
    before = [condition for condition in old if condition.type == condition_type]
    positions = [index for index, condition in enumerate(new) if condition.type == condition_type]
    if len(before) == len(positions):
        for position, condition in zip(positions, before, strict=True):
            new[position] = condition


def _set_times(new: Conditions, old: Conditions) -> None:
    now = times.now()
    known: dict[tuple[str, str], str] = {}
    for before in old:
        if before.last_transition_time:
            known.setdefault((before.type, before.status), before.last_transition_time)
    for condition in new:
        condition.last_update_time = condition.last_update_time or now
        if not condition.last_transition_time:
            condition.last_transition_time = known.get((condition.type, condition.status), now)


def condition(request: CertificateSigningRequest) -> str:
    """Return the state of the request, e.g. `Approved,Issued`."""
    types = {each.type for each in request.status.conditions}
    text = "Denied" if "Denied" in types else "Approved" if "Approved" in types else "Pending"
    if "Failed" in types:
        text += ",Failed"
    if request.status.certificate:
        text += ",Issued"
    return text


def requested_duration(request: CertificateSigningRequest) -> str:
    """Return the requested lifetime of the certificate."""
    seconds = request.spec.expiration_seconds
    return "<none>" if seconds is None else times.human_duration(seconds)


CERTIFICATE_SIGNING_REQUESTS = Resource(
    kind=built_in(CertificateSigningRequest),
    plural="certificatesigningrequests",
    namespaced=False,
    short_names=("csr",),
    strategy=CSRStrategy(),
    name_validator=name_is_path_segment,
    columns=(
        AGE,
        Column("SignerName", lambda r: r.spec.signer_name or "<none>"),
        Column("Requestor", lambda r: r.spec.username),
        Column("RequestedDuration", requested_duration),
        Column("Condition", condition),
    ),
    selectable_fields={"spec.signerName": lambda r: r.spec.signer_name},
    subresources=(
        Subresource(name="approval", strategy=CSRApprovalStrategy()),
        Subresource(name="status", strategy=CSRStatusStrategy()),
    ),
    storage_version_hash="95fRKMXA+00=",
)
