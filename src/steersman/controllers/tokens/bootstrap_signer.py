"""Controller that signs the ConfigMap `cluster-info` with each bootstrap token
(pkg/controller/bootstrap/bootstrapsigner.go).

A joining node verifies the ConfigMap by the signature of its own token.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any, Final

from steersman.api.core.v1 import ConfigMap
from steersman.client.errors import ignoring, is_conflict, is_not_found
from steersman.client.resources import CONFIG_MAPS, SECRETS
from steersman.controllers.controller import Controller, ControllerDependencies
from steersman.controllers.tokens.bootstrap_tokens import NAMESPACE, signing_token
from steersman.machinery.built_in.bootstrap_tokens import SECRET_TYPE
from steersman.machinery.codec.serializer import deep_copy, encode
from steersman.machinery.values import times

CLUSTER_INFO: Final = "cluster-info"
PUBLIC: Final = "kube-public"
_KUBECONFIG: Final = "kubeconfig"
_PREFIX: Final = "jws-kubeconfig-"


class BootstrapSigner(Controller[str]):
    """Signs the ConfigMap, for which there is a single key."""

    name = "bootstrap-signer-controller"
    account = "bootstrap-signer"
    on_by_default = False
    workers = 1

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        self._secrets = self.informers.for_resource(SECRETS, field_selector=f"type={SECRET_TYPE}")
        self._infos = self.informers.for_resource(CONFIG_MAPS, field_selector=f"metadata.name={CLUSTER_INFO}")
        self._secrets.on_change(self._changed)
        self._infos.on_change(self._changed)

    def _changed(self, old: Any, new: Any) -> None:
        self.queue.add(CLUSTER_INFO)

    async def sync(self, key: str) -> None:
        info = self._infos.get(PUBLIC, CLUSTER_INFO)
        data = None if info is None else self._signed(info)
        if info is None or data is None or data == info.data:
            return
        changed = deep_copy(info)
        changed.data = data
        with ignoring(is_conflict, is_not_found):
            await self.client.update(CONFIG_MAPS, changed)

    def _signed(self, info: ConfigMap) -> dict[str, str] | None:
        """Return the ConfigMap's data with current signatures; None if it has no kubeconfig."""
        content = info.data.get(_KUBECONFIG)
        if content is None:
            return None
        data = {name: text for name, text in info.data.items() if not name.startswith(_PREFIX)}
        now = times.unix_now()
        for secret in self._secrets.list(NAMESPACE):
            token = signing_token(secret, now)
            if token is not None:
                data[_PREFIX + token[0]] = detached_signature(content, *token)
        return data


def detached_signature(content: str, token_id: str, token: str) -> str:
    """Return a JWS without its content (RFC 7515, appendix F), signed by HMAC-SHA-256 with the token as key."""
    header = _base64url(encode({"alg": "HS256", "kid": token_id}))
    signed = f"{header}.{_base64url(content.encode())}"
    key = token.encode("utf-8", "surrogateescape")
    return f"{header}..{_base64url(hmac.digest(key, signed.encode(), hashlib.sha256))}"


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
