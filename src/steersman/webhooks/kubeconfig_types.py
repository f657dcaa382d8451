"""Types of a kubeconfig file (client-go's clientcmd/api/v1)."""

from __future__ import annotations

import msgspec

from steersman.api.scalars import RawExtension, Wire
from steersman.machinery.codec.configuration import Document


class _Kebab(Wire, rename="kebab"):
    """Base of clientcmd's types, whose members are in kebab case."""


class NamedExtension(Wire):
    """Further data of a cluster, by name."""

    name: str = ""
    extension: RawExtension = None


class Cluster(_Kebab):
    """Address of a server, and the trust in it."""

    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: bytes = b""
    proxy_url: str = ""
    disable_compression: bool = False
    extensions: list[NamedExtension] = []


class AuthProviderConfig(Wire):
    """Name and settings of an authentication provider."""

    name: str = ""
    config: dict[str, str] = {}


class ExecEnvVar(Wire):
    """Environment variable of a plugin."""

    name: str = ""
    value: str = ""


class ExecConfig(Wire):
    """Command that prints credentials."""

    command: str = ""
    args: list[str] = []
    env: list[ExecEnvVar] = []
    api_version: str = ""
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class AuthInfo(_Kebab):
    """Credentials of a user."""

    client_certificate: str = ""
    client_certificate_data: bytes = b""
    client_key: str = ""
    client_key_data: bytes = b""
    token: str = ""
    token_file: str = msgspec.field(name="tokenFile", default="")
    as_: str = msgspec.field(name="as", default="")
    as_uid: str = ""
    as_groups: list[str] = []
    as_user_extra: dict[str, list[str]] = {}
    username: str = ""
    password: str = ""
    auth_provider: AuthProviderConfig | None = None
    exec: ExecConfig | None = None


class Context(_Kebab):
    """Cluster, user and namespace."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


class NamedCluster(Wire):
    """Cluster with its name."""

    name: str = ""
    cluster: Cluster = msgspec.field(default_factory=Cluster)


class NamedAuthInfo(Wire):
    """User with its name."""

    name: str = ""
    user: AuthInfo = msgspec.field(default_factory=AuthInfo)


class NamedContext(Wire):
    """Context with its name."""

    name: str = ""
    context: Context = msgspec.field(default_factory=Context)


class Preferences(Wire):
    """Settings of kubectl."""

    colors: bool = False


class Config(Document):
    """Kubeconfig."""

    preferences: Preferences = msgspec.field(default_factory=Preferences)
    clusters: list[NamedCluster] = []
    users: list[NamedAuthInfo] = []
    contexts: list[NamedContext] = []
    current_context: str = msgspec.field(name="current-context", default="")


class ExecPlugin(msgspec.Struct, frozen=True):
    """Plugin of a kubeconfig: a command that prints an ExecCredential."""

    command: str
    args: tuple[str, ...]
    variables: tuple[tuple[str, str], ...]
    """Environment variables in addition to those of this process."""
    api_version: str
    interactive_mode: str
    """Never, IfAvailable or Always."""
    install_hint: str = ""
    cluster: bytes = b""
    """Cluster for the plugin in JSON, empty if the plugin is not told about it."""
