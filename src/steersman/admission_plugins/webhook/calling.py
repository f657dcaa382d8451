"""Call of one webhook, and its possible outcomes."""

from __future__ import annotations

import logging
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Final, Literal

from steersman.admission.interface import Attributes
from steersman.admission_plugins.matching.rules import MatchedResource
from steersman.admission_plugins.metrics import WebhookMetrics
from steersman.admission_plugins.webhook.clients import Clients
from steersman.admission_plugins.webhook.hooks import Hook
from steersman.admission_plugins.webhook.review import (
    InvalidAnswer,
    Verdict,
    decode_verdict,
    denial_error,
    encode_review,
)
from steersman.audit.latencies import MUTATING, VALIDATING
from steersman.audit.trail import timed
from steersman.machinery.codec.strict import DecodeError
from steersman.machinery.errors.field import quote
from steersman.machinery.errors.status import StatusError, bad_request, internal
from steersman.machinery.identity.names import new_uid
from steersman.machinery.limited_log import LimitedLog
from steersman.tracing.trace import (
    COMPONENT,
    UNRECORDED,
    Branching,
    StepKind,
    Unrecorded,
    add_event,
    branch,
    current_recorder,
)
from steersman.webhooks.client import Through, WebhookError
from steersman.webhooks.kubeconfig import KubeconfigError
from steersman.webhooks.reviews import is_large_review
from steersman.work.offloading import offload, offload_if

if TYPE_CHECKING:
    from steersman.faults.fault_set import FaultSet

_MUTATING_CALL: Final = StepKind("Call mutating webhook", COMPONENT)
_VALIDATING_CALL: Final = StepKind("Call validating webhook", COMPONENT)
_UNAVAILABLE: Final = 503
_BAD_REQUEST: Final = 400
_INTERNAL: Final = 500
_UNDECODABLE: Final = "its response cannot be decoded"


class CallFailed(Exception):
    """A webhook could not be called, or its response cannot be used.

    `code` is the status code for metrics. `logged` is the reason for the log, which has nothing of the response,
    because a response may repeat the object, which may be a Secret.
    """

    def __init__(self, hook: Hook, why: str, code: int, *, logged: str = "") -> None:
        super().__init__(f"failed calling webhook {quote(hook.name)}: {why}")
        self.code = code
        self.logged = logged or why


class Denied(Exception):
    """A webhook denied the request."""

    def __init__(self, error: StatusError) -> None:
        super().__init__(error.message)
        self.error = error


class Caller:
    """Calls webhooks of one kind; `type` is the kind's name in metrics."""

    def __init__(self, clients: Clients, metrics: WebhookMetrics, faults: FaultSet | None, *, mutating: bool) -> None:
        self._clients: Final = clients
        self._faults: Final = faults
        self._metrics: Final = metrics
        self._mutating: Final = mutating
        self._log: Final = LimitedLog(logging.getLogger(__name__))
        self.type: Final[Literal["admit", "validating"]] = "admit" if mutating else "validating"

    async def call(
        self, hook: Hook, attributes: Attributes, matched: MatchedResource, obj: bytes | None, old: bytes | None
    ) -> Verdict:
        """Call a webhook and return its verdict if it allows the request.

        Raises CallFailed, Denied, and StatusError 400 for a dry run that the webhook does not support.
        """
        if attributes.dry_run and not hook.supports_dry_run:
            if not hook.side_effects_given:
                raise CallFailed(hook, "Webhook SideEffects is nil", _BAD_REQUEST)
            raise bad_request(f"admission webhook {quote(hook.name)} does not support dry run")
        if not hook.review_version:
            why = "webhook does not accept known AdmissionReview versions (v1, v1beta1)"
            raise CallFailed(hook, f"could not create admission objects: {why}", _BAD_REQUEST)
        if hook.client is None:
            why = f"failed calling webhook {quote(hook.name)}: webhook configuration must have either service or URL"
            raise CallFailed(hook, f"could not get REST client: {why}", _INTERNAL)
        uid = new_uid()
        if (recorder := current_recorder()) is not None:
            recorder.set("UID", uid)
        review = await offload(encode_review, hook.review_version, uid, attributes, matched, obj, old)
        try:
            client = await self._clients.client_for(hook.client)
        except KubeconfigError as error:
            raise CallFailed(hook, f"could not get REST client: {error}", _INTERNAL) from None
        try:
            layer = MUTATING if self._mutating else VALIDATING
            through = self._through(hook, attributes)
            answer = await timed(
                attributes.audit, layer, client.post_with_timeout(review, hook.timeout, through=through)
            )
            # A response may be large even for a small object.
            verdict = await offload_if(is_large_review(answer), _decode, answer, hook, uid, self._mutating)
        except StatusError as error:
            logged = f"its response has the status code {error.code}"
            raise CallFailed(hook, f"failed to call webhook: {error.message}", error.code, logged=logged) from None
        except WebhookError as error:
            raise CallFailed(hook, f"failed to call webhook: {error}", _UNAVAILABLE) from None
        except DecodeError as error:
            raise CallFailed(hook, f"failed to call webhook: {error}", _UNAVAILABLE, logged=_UNDECODABLE) from None
        except InvalidAnswer as error:
            why = f"received invalid webhook response: {error}"
            raise CallFailed(hook, why, _UNAVAILABLE, logged=_UNDECODABLE) from None
        add_event("Request completed")
        if attributes.audit is not None:
            for key, value in verdict.audit_annotations.items():
                attributes.annotate(f"{hook.name}/{key}", value)
        attributes.warn(*verdict.warnings)
        if not verdict.allowed:
            raise Denied(denial_error(hook.name, verdict.status))
        return verdict

    def _through(self, hook: Hook, attributes: Attributes) -> Through | None:
        """Return the sender of a call that a fault hits, None for the usual one."""
        if self._faults is None:
            return None
        from steersman.faults.fault import Call
        from steersman.faults.fault_set import ANNOTATION, RESOURCE
        from steersman.faults.faulty_sender import FaultySender

        action = attributes.action
        if (action.group, action.resource) == RESOURCE:
            return None
        names = (f"{hook.configuration}/{hook.name}", hook.name, hook.configuration)
        fault = self._faults.choose_for_call(Call("webhooks", names))
        if fault is None:
            return None
        if attributes.audit is not None:
            attributes.annotate(ANNOTATION, fault.name)
        return partial(FaultySender, fault)

    def span(self, hook: Hook, attributes: Attributes, matched: MatchedResource) -> Branching | Unrecorded:
        """Return the span of a call, a context manager."""
        if current_recorder() is None:
            return UNRECORDED
        about = {
            "configuration": hook.configuration,
            "webhook": hook.name,
            "resource": _go_resource(matched),
            "subresource": attributes.action.subresource,
            "operation": attributes.operation,
        }
        return branch(_MUTATING_CALL if self._mutating else _VALIDATING_CALL, about)

    def record_outcome(
        self, hook: Hook, attributes: Attributes, failed: CallFailed | Denied | StatusError | None, began: float
    ) -> bool:
        """Count a call that began at the time `began` (perf_counter) and ended with `failed`, None for a success.

        Return True if the call failed and the failure is ignored. Raises StatusError if the request is refused.
        """
        took = perf_counter() - began
        if (recorder := current_recorder()) is not None:
            recorder.set(
                "verdict", "allowed" if failed is None else "denied" if isinstance(failed, Denied) else "failed"
            )
        operation = attributes.operation
        if failed is None:
            self._metrics.observe(hook.name, self.type, operation, took, 200, rejected=False)
            return False
        if isinstance(failed, CallFailed):
            goes_on = hook.ignores_failures
            how = "open" if goes_on else "closed"
            self._log.warning(hook.name, "Failed calling webhook, failing %s %s: %s", how, hook.name, failed.logged)
            self._metrics.observe(hook.name, self.type, operation, took, failed.code, rejected=not goes_on)
            if goes_on:
                self._metrics.count_fail_open(hook.name, self.type)
                return True
            self._metrics.count_rejection(hook.name, self.type, operation, "calling_webhook_error", failed.code)
            raise internal(failed)
        error = failed.error if isinstance(failed, Denied) else failed
        assert isinstance(error, StatusError)
        what, code = ("no_error", error.code) if isinstance(failed, Denied) else ("apiserver_internal_error", 0)
        self._metrics.count_rejection(hook.name, self.type, operation, what, code)
        self._metrics.observe(hook.name, self.type, operation, took, code, rejected=True)
        raise error


def _go_resource(matched: MatchedResource) -> str:
    """Return a resource as Go's GroupVersionResource.String prints it."""
    return f"{matched.group}/{matched.version}, Resource={matched.resource}"


def _decode(answer: bytes, hook: Hook, uid: str, mutating: bool) -> Verdict:
    return decode_verdict(answer, hook.review_version, uid, mutating=mutating)
