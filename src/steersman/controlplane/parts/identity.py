"""Parts about identity: tokens and their keys, certificates, authentication and authorization."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack

from steersman.authentication.interface import Authenticator, TokenAuthenticator
from steersman.authentication.issued_tokens import IssuedTokens
from steersman.controlplane.authenticators import (
    ConfiguredTokens,
    authenticator,
    configured_tokens,
    token_authenticator,
    token_keys,
)
from steersman.controlplane.authorizers import AuthorizerChain
from steersman.controlplane.data_folder import any_keys, certificate_files, make_data_folder
from steersman.controlplane.flag_files import service_account_keys
from steersman.controlplane.legacy_token_tracking import TokenUse
from steersman.controlplane.options import Options
from steersman.controlplane.parts.basis import Common, Embedding, OutgoingRoutes, ValidatedFlags
from steersman.controlplane.parts.storing import FilledCaches, ObjectStores
from steersman.controlplane.token_keys import TokenKeys
from steersman.server.certificates import LOOPBACK_NAME, CertificateFiles
from steersman.work.forked import Forked, can_fork
from steersman.work.parts import Part, offered

logger = logging.getLogger(__name__)


class TokenFiles(Part):
    """Authenticators of tokens that files of flags configure: static ones, those of other issuers, a webhook."""

    options: Options
    common: Common
    ways: OutgoingRoutes
    embedding: Embedding
    configured: ConfiguredTokens = offered()

    async def start(self, ending: AsyncExitStack) -> None:
        egress, faults = self.ways.egress, self.embedding.faults
        self.configured = configured_tokens(self.options, self.common.registry, ending, egress, faults)


class FirstKeys(Part):
    """Creation of keys and certificates for an empty data folder in a child process, while other parts start.

    The code for it takes 12 MiB of memory, which the server saves. If no child process can be used, other parts create
    the keys.
    """

    options: Options
    embedding: Embedding
    flags: ValidatedFlags
    child: Forked | None = None

    async def start(self, ending: AsyncExitStack) -> None:
        if not self.embedding.owns_process or "cryptography" in sys.modules or not can_fork():
            return
        make_data_folder(self.options)
        if any_keys(self.options.data_dir):
            return
        try:
            self.child = Forked(self._make)
        except OSError as error:
            logger.info("making keys in the server process, as no child process can be started: %s", error.strerror)
            return
        ending.callback(self.child.kill)

    def _make(self) -> None:
        certificate_files(self.options, *hosts_of(self.options, self.flags))
        if not (self.options.service_account_signing_endpoint or self.options.service_account_signing_key_file):
            service_account_keys(self.options)

    async def wait_until_available(self) -> None:
        """Return once the child process has ended, or at once if there is none."""
        if self.child is not None:
            await self.child.wait()


class SigningKeys(Part):
    """The keys of service account tokens, read or made in a thread while other parts start."""

    options: Options
    common: Common
    first: FirstKeys | None
    keys: TokenKeys = offered()

    async def start(self, ending: AsyncExitStack) -> None:
        before = None if self.first is None else self.first.wait_until_available
        self.keys = await token_keys(self.options, self.common.registry, ending, before)


class Certificates(Part):
    """The certificates in the data folder; missing ones are made. Raises OptionsError."""

    options: Options
    flags: ValidatedFlags
    first: FirstKeys | None
    files: CertificateFiles = offered()

    async def start(self, ending: AsyncExitStack) -> None:
        if self.first is not None:
            await self.first.wait_until_available()
        self.files = certificate_files(self.options, *hosts_of(self.options, self.flags))


def hosts_of(options: Options, flags: ValidatedFlags) -> Iterator[str]:
    """Yield the host names and addresses of the serving certificate."""
    yield flags.host
    yield str(flags.service_ranges[0][1])
    if options.tls_cert_file:
        yield LOOPBACK_NAME


class Tokens(Part):
    """The authenticator of all kinds of tokens."""

    options: Options
    common: Common
    objects: ObjectStores
    files: TokenFiles
    signing: SigningKeys
    issued: IssuedTokens
    authenticator: TokenAuthenticator = offered()

    async def start(self, ending: AsyncExitStack) -> None:
        stores = self.objects.stores
        use = TokenUse(lambda: stores.objects("", "secrets"))
        ending.push_async_callback(use.stop)
        self.authenticator = token_authenticator(
            self.options,
            self.signing.keys,
            stores,
            self.issued,
            use.note,
            self.files.configured,
            self.common.registry,
        )


class Authentication(Part):
    """The authenticator of requests: certificates, tokens and headers."""

    options: Options
    common: Common
    files: TokenFiles
    certificates: Certificates
    tokens: Tokens
    authenticator: Authenticator = offered()

    async def start(self, ending: AsyncExitStack) -> None:
        jwt = self.files.configured.jwt
        self.authenticator = authenticator(
            self.options,
            self.tokens.authenticator,
            self.certificates.files,
            self.common.registry,
            None if jwt is None else jwt.anonymous,
        )


class Authorization(Part):
    """The authorizers of requests. Raises OptionsError."""

    options: Options
    common: Common
    ways: OutgoingRoutes
    embedding: Embedding
    chain: AuthorizerChain = offered()

    async def start(self, ending: AsyncExitStack) -> None:
        self.chain = AuthorizerChain(self.options, self.common.registry, self.ways.egress, self.embedding.faults)
        ending.push_async_callback(self.chain.stop)


class StoredRights(Part):
    """The feed of stored roles and bindings to the authorizers."""

    objects: ObjectStores
    filled: FilledCaches
    authorization: Authorization

    async def start(self, ending: AsyncExitStack) -> None:
        self.authorization.chain.feed(self.objects.stores.store)
