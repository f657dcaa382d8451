"""ImagePolicyWebhook: a webhook decides which images pods may run (ImageReview of imagepolicy.k8s.io/v1alpha1)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Final, NamedTuple

from msgspec import Struct

from steersman.admission.interface import CREATE, UPDATE, Attributes, Plugin
from steersman.admission_plugins.declaration import ConfiguredDeclaration, PluginDependencies
from steersman.api.core.v1 import Pod
from steersman.api.imagepolicy.v1alpha1 import ImageReview, ImageReviewContainerSpec, ImageReviewSpec, ImageReviewStatus
from steersman.kinds.built_in import classes_of
from steersman.machinery.codec.configuration import detect_media
from steersman.machinery.codec.serializer import encode
from steersman.machinery.codec.strict import DecodeError, decode_object, peek_type_meta
from steersman.machinery.errors.status import StatusError
from steersman.machinery.identity.schema import (
    GroupResource,
    GroupVersionError,
    no_kind_registered,
    parse_group_version,
)
from steersman.machinery.limited_log import LimitedLog
from steersman.machinery.values import times
from steersman.webhooks.client import WebhookClient, WebhookError
from steersman.webhooks.kubeconfig import Endpoint
from steersman.work.bounded_cache import BoundedCache

log: Final = LimitedLog(logging.getLogger(__name__))

_PODS: Final = GroupResource("", "pods")
_VERSION: Final = "imagepolicy.k8s.io/v1alpha1"
_KIND: Final = "ImageReview"
_ANNOTATIONS: Final = ".image-policy.k8s.io/"
_AUDITED: Final = "imagepolicywebhook.image-policy.k8s.io/"
_MAX_REMEMBERED: Final = 1024


class Settings(Struct, frozen=True):
    """Seconds for which verdicts are cached, and the verdict if the webhook fails."""

    allow_ttl: float = 300.0
    deny_ttl: float = 30.0
    default_allow: bool = False


class Configuration(NamedTuple):
    """Configuration of the plugin; `backoff` is in seconds."""

    endpoint: Endpoint
    backoff: float
    settings: Settings


class ImagePolicyWebhook(Plugin):
    """Asks the webhook about the images of pods.

    `post` sends a review and returns the response body; it raises StatusError and WebhookError. `clock` returns
    seconds. `hang_up` closes the connections.
    """

    name = "ImagePolicyWebhook"
    operations = frozenset({CREATE, UPDATE})
    resources = frozenset({_PODS})
    subresources = frozenset({"", "ephemeralcontainers"})
    validates = True

    def __init__(
        self,
        post: Callable[[bytes], Awaitable[bytes]],
        settings: Settings,
        clock: Callable[[], float] = times.monotonic,
        hang_up: Callable[[], None] = lambda: None,
    ) -> None:
        self._post = post
        self._hang_up = hang_up
        self._settings = settings
        self._clock = clock
        self._cached: BoundedCache[bytes, tuple[float, ImageReviewStatus]] = BoundedCache(_MAX_REMEMBERED)

    def close(self) -> None:
        self._hang_up()

    async def validate(self, attributes: Attributes) -> None:
        """Raise StatusError 403 for refused images, and for a failed webhook unless `default_allow` is set."""
        try:
            status = await self._status(_review(attributes))
        except (StatusError, WebhookError, DecodeError) as error:
            log.warning("", "error contacting webhook backend: %s", error)
            if self._settings.default_allow:
                attributes.annotate(f"{_AUDITED}failed-open", "true")
                return
            if isinstance(error, StatusError) and error.reason == "Forbidden":
                raise
            raise attributes.forbid(error) from None
        for key, value in status.audit_annotations.items():
            attributes.annotate(f"{_AUDITED}{key}", value)
        if not status.allowed:
            raise attributes.forbid(
                f"image policy webhook backend denied one or more images: {status.reason}"
                if status.reason
                else "one or more images rejected by webhook backend"
            )

    async def _status(self, spec: ImageReviewSpec) -> ImageReviewStatus:
        """Return the cached verdict on an equal review, or ask the webhook."""
        key = sha256(encode(spec)).digest()
        cached = self._cached[key]
        if cached is not None and cached[0] > self._clock():
            return cached[1]
        review = ImageReview(kind=_KIND, api_version=_VERSION, spec=spec)
        status = _decode(await self._post(encode(review) + b"\n"))
        settings = self._settings
        self._cached.keep(key, (self._clock() + (settings.allow_ttl if status.allowed else settings.deny_ttl), status))
        return status


def _review(attributes: Attributes) -> ImageReviewSpec:
    pod: Pod = attributes.obj
    spec = pod.spec
    is_debugging = attributes.action.subresource
    containers = spec.ephemeral_containers if is_debugging else [*(spec.containers or ()), *spec.init_containers]
    return ImageReviewSpec(
        containers=[ImageReviewContainerSpec(image=each.image) for each in containers],
        annotations={key: value for key, value in pod.metadata.annotations.items() if _ANNOTATIONS in key},
        namespace=attributes.action.namespace,
    )


def _decode(answer: bytes) -> ImageReviewStatus:
    """Return the status in a response. A response without kind or version is taken as a review. Raises DecodeError."""
    media = detect_media(answer)
    api_version, kind = peek_type_meta(answer, media)
    if (api_version or _VERSION, kind or _KIND) != (_VERSION, _KIND):
        raise DecodeError(_unexpected(api_version or _VERSION, kind or _KIND))
    return decode_object(ImageReview, answer, media, want_strict=False).obj.status


def _unexpected(api_version: str, kind: str) -> str:
    try:
        version = parse_group_version(api_version)
    except GroupVersionError as error:
        return str(error)
    try:
        cached = kind in classes_of(*version)
    except KeyError:
        cached = False
    if cached:
        return f"converting ({version.version}.{kind}) to (v1alpha1.ImageReview): unknown conversion"
    return no_kind_registered(kind, str(version))


def _make(dependencies: PluginDependencies, configuration: Configuration) -> ImagePolicyWebhook:
    client = WebhookClient(configuration.endpoint, configuration.backoff)
    return ImagePolicyWebhook(client.post, configuration.settings, hang_up=client.close)


IMAGE_POLICY_WEBHOOK: Final = ConfiguredDeclaration(ImagePolicyWebhook, on_by_default=False, make=_make)
