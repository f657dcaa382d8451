"""The API server of the cluster that this server is behind: its address, and requests to it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from steersman.client.api_resource import APIResource
from steersman.client.client import Client
from steersman.client.informer import Informer
from steersman.client.over_tls import TLSTransport
from steersman.client.resources import API_SERVICES, ENDPOINT_SLICES, SERVICES
from steersman.client.transport import Unreachable
from steersman.library.aggregation import ClusterError
from steersman.library.models import Plain
from steersman.machinery.errors.status import StatusError, service_unavailable
from steersman.machinery.go.strings import trim_space
from steersman.machinery.go.urls import redacted_url
from steersman.net.ascii import is_digits
from steersman.net.client.dial import host_port
from steersman.net.client.tls import HTTP2
from steersman.net.client.transport import Address
from steersman.webhooks.kubeconfig import Endpoint, KubeconfigError, always_with, client_tls
from steersman.webhooks.user_kubeconfig import load_kubeconfigs
from steersman.work.backoff import Backoff

R = TypeVar("R")

SECONDS: Final = 10.0
"""The most seconds for a request with all its attempts, as in upstream's delegating options."""
_MAX_ANSWER_BYTES: Final = 64 << 20
_STEPS: Final = 5
BACKOFF: Final = Backoff(0.5, factor=1.5, jitter=0.2)
_PASSING: Final = frozenset({"InternalError", "Timeout", "TooManyRequests", "ServerTimeout"})

_APPLIED: Final[Mapping[str, APIResource[Any]]] = {
    each.kind: each for each in (SERVICES, ENDPOINT_SLICES, API_SERVICES)
}
_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""The folder of the service account token and the API server's CA certificate in a pod."""


def find_cluster(kubeconfig: Path | str, *, account: Path = _ACCOUNT) -> Cluster:
    """Return the API server of a kubeconfig's current context; without a kubeconfig, that of the pod of this process.

    Raises ClusterError.
    """
    try:
        endpoint = load_kubeconfigs([Path(kubeconfig).expanduser()]) if kubeconfig else _endpoint_in_pod(account)
    except (KubeconfigError, OSError) as error:
        raise ClusterError(str(error)) from None
    if not endpoint.address.secure:
        raise ClusterError(f"{endpoint.shown} is no https URL: tokens are not sent unencrypted")
    return Cluster(endpoint)


def _endpoint_in_pod(account: Path) -> Endpoint:
    """Return the API server of the pod of this process. Raises ClusterError, OSError, KubeconfigError."""
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST", ""), os.environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not is_digits(port):
        raise ClusterError(
            "unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be "
            "defined: outside of a cluster, name a kubeconfig"
        )
    authority = (account / "ca.crt").read_bytes()
    token = account / "token"
    token.read_bytes()

    def credentials() -> str:
        # The file is replaced before the token expires.
        return f"Bearer {trim_space(token.read_text('ascii'))}"

    url, address = f"https://{host_port(host, int(port))}", Address(host, int(port))
    tls = always_with(client_tls(authority, protocols=HTTP2))
    return Endpoint(url, address, "/", tls, host, credentials, protocols=HTTP2)


class Cluster:
    """Requests to one API server, over pooled connections."""

    def __init__(self, endpoint: Endpoint) -> None:
        """Create the client; `endpoint` uses TLS."""
        self.shown: Final = redacted_url(endpoint.url)
        self.client: Final = Client(TLSTransport(endpoint, again=True, longest=_MAX_ANSWER_BYTES), "steersman")

    async def aclose(self) -> None:
        """Close the pooled connections."""
        await self.client.aclose()

    async def request(self, send: Callable[[], Awaitable[R]]) -> R:
        """Return the answer to a request; transient failures are retried while there is time.

        Raises StatusError: the cluster's own, or 503 if there is no usable answer.
        """
        try:
            async with asyncio.timeout(SECONDS):
                for step in range(_STEPS - 1):
                    try:
                        return await send()
                    except StatusError as error:
                        if error.reason not in _PASSING and not error.retry_after:
                            raise
                        await asyncio.sleep(error.retry_after or BACKOFF.wait(step))
                return await send()
        except StatusError as error:
            error.details_present = False
            raise
        except Unreachable as error:
            raise service_unavailable(str(error)) from None
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise service_unavailable(f"an answer of {self.shown} cannot be read") from None
        except TimeoutError:
            raise service_unavailable(f"{self.shown}: context deadline exceeded") from None

    async def start_informer(self, informer: Informer[Any]) -> None:
        """Start an informer, and return once it has synced. Raises StatusError as `request` does."""
        informer.start()
        await self.request(informer.wait_for_first_attempt)

    async def apply(self, manifests: Sequence[Plain]) -> None:
        """Apply the objects of `aggregation.manifests`, whoever owns their fields. Raises StatusError as `request` does."""
        for each in manifests:
            metadata = each["metadata"]
            await self.request(
                partial(
                    self.client.apply,
                    _APPLIED[each["kind"]],
                    metadata["name"],
                    metadata.get("namespace", ""),
                    each,
                )
            )
