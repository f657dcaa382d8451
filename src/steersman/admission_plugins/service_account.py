"""ServiceAccount: every pod runs as an existing service account and gets a token for it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from typing import Any, Final

from msgspec import Struct

from steersman.admission.interface import CREATE, UPDATE, Attributes, Plugin, WriteKind
from steersman.admission_plugins.declaration import Declaration, PluginDependencies
from steersman.api.core import v1 as core
from steersman.machinery.built_in.pod_secrets import secret_names
from steersman.machinery.errors.status import plain_internal
from steersman.machinery.identity.names import generate_name
from steersman.machinery.identity.schema import GroupResource
from steersman.rest.objects import LookUp, Reading, no_look_up
from steersman.work.offloading import offload

DEFAULT_ACCOUNT: Final = "default"
MOUNT_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
VOLUME_PREFIX: Final = "kube-api-access-"
TOKEN_SECONDS: Final = 3607
"""Lifetime of the token in seconds. The odd number distinguishes it from tokens that users request."""

_PODS: Final = GroupResource("", "pods")
_ATTEMPTS: Final = 10
_MIRROR: Final = "kubernetes.io/config.mirror"
_ENFORCE_SECRETS: Final = "kubernetes.io/enforce-mountable-secrets"
_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})


class AccountSummary(Struct, frozen=True):
    """The parts of a service account that pods depend on; `secrets` is None if pods may use any secret."""

    name: str
    automount: bool
    pull_secrets: tuple[str, ...]
    secrets: frozenset[str] | None


def account_of(account: core.ServiceAccount) -> AccountSummary:
    """Return the parts of a service account that pods depend on."""
    secrets = None
    if account.metadata.annotations.get(_ENFORCE_SECRETS) in _TRUE:
        secrets = frozenset(each.name for each in account.secrets)
    return AccountSummary(
        account.metadata.name,
        account.automount_service_account_token is not False,
        tuple(each.name for each in account.image_pull_secrets),
        secrets,
    )


class ServiceAccount(Plugin):
    """Sets and checks the service account of pods.

    `find` returns the account of a namespace and name, None if it is unknown. The account `default` is awaited for
    about ten times `pause()` seconds, because a controller creates it in new namespaces.
    """

    name = "ServiceAccount"
    operations = frozenset({CREATE, UPDATE})
    resources = frozenset({_PODS})
    mutates = True
    validates = True

    def __init__(
        self,
        find: Callable[[str, str], AccountSummary | None],
        pause: Callable[[], float] = lambda: random.uniform(0.1, 0.2),
        look_up: LookUp = no_look_up,
    ) -> None:
        """Create the plugin; `look_up` reads an account from storage, in case another server has written it."""
        self._find = find
        self._look_up = look_up
        self._pause = pause

    def has_work(self, writes: WriteKind, *, mutating: bool) -> bool:
        if writes.operation == CREATE:
            return not writes.subresource
        return not mutating and writes.subresource == "ephemeralcontainers"

    async def admit(self, attributes: Attributes) -> None:
        """Set the account of a new pod, its image pull secrets and a token volume. Raises StatusError 403."""
        pod: core.Pod = attributes.obj
        spec = pod.spec
        if _MIRROR in pod.metadata.annotations:
            _check_mirror(attributes, pod)
            return
        spec.service_account_name = spec.service_account_name or DEFAULT_ACCOUNT
        account = await self._account(attributes, spec)
        mounts_token = spec.automount_service_account_token
        if account.automount if mounts_token is None else mounts_token:
            await offload(_mount_token, spec)
        if not spec.image_pull_secrets:
            spec.image_pull_secrets = [core.LocalObjectReference(name=name) for name in account.pull_secrets]
        await offload(_check_secrets, attributes, spec, account)

    async def validate(self, attributes: Attributes) -> None:
        """Check a new pod, or the ephemeral containers of an old one, against the pod's account.

        Raises StatusError 403, and 500 if an ephemeral container uses a secret that the account does not allow.
        """
        if attributes.operation == UPDATE:
            await self._check_ephemeral(attributes)
            return
        pod: core.Pod = attributes.obj
        if _MIRROR in pod.metadata.annotations:
            _check_mirror(attributes, pod)
            return
        account = await self._account(attributes, pod.spec)
        await offload(_check_secrets, attributes, pod.spec, account)

    async def _check_ephemeral(self, attributes: Attributes) -> None:
        spec: core.PodSpec = attributes.obj.spec
        account = await self._account(attributes, spec)
        if account.secrets is not None:
            for fault in _disallowed_secrets("ephemeral container", spec.ephemeral_containers, account):
                raise plain_internal(fault)

    async def _account(self, attributes: Attributes, spec: core.PodSpec) -> AccountSummary:
        namespace, name = attributes.action.namespace, spec.service_account_name
        if not name:
            pod = attributes.obj.metadata.name
            raise attributes.forbid(f"no service account specified for pod {namespace}/{pod}")
        if (found := self._find(namespace, name)) is not None:
            return found
        await self._look_up(namespace, name)
        if (found := self._find(namespace, name)) is not None:
            return found
        if name == DEFAULT_ACCOUNT:
            pause = self._pause()
            for _ in range(_ATTEMPTS - 1):
                await asyncio.sleep(pause)
                await self._look_up(namespace, name)
                if (found := self._find(namespace, name)) is not None:
                    return found
        raise attributes.forbid(
            f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
        )


def _mount_token(spec: core.PodSpec) -> None:
    """Add a volume with a token, and mount it in every container that has no other mount at this path."""
    own = next((volume.name for volume in spec.volumes if volume.name.startswith(VOLUME_PREFIX)), "")
    name = own or generate_name(VOLUME_PREFIX)
    mounted = False
    for container in (*spec.init_containers, *(spec.containers or ())):
        if all(mount.mount_path != MOUNT_PATH for mount in container.volume_mounts):
            mount = core.VolumeMount(name=name, read_only=True, mount_path=MOUNT_PATH)
            container.volume_mounts = [*container.volume_mounts, mount]
            mounted = True
    if mounted and not own:
        spec.volumes = [*spec.volumes, core.Volume(name=name, projected=_token_volume())]


def _token_volume() -> core.ProjectedVolumeSource:
    """Return the volume's sources for clients in the cluster: a token, the CA certificates, and the namespace."""
    namespace = core.ObjectFieldSelector(api_version="v1", field_path="metadata.namespace")
    return core.ProjectedVolumeSource(
        default_mode=0o644,
        sources=[
            core.VolumeProjection(
                service_account_token=core.ServiceAccountTokenProjection(path="token", expiration_seconds=TOKEN_SECONDS)
            ),
            core.VolumeProjection(
                config_map=core.ConfigMapProjection(
                    name="kube-root-ca.crt", items=[core.KeyToPath(key="ca.crt", path="ca.crt")]
                )
            ),
            core.VolumeProjection(
                downward_api=core.DownwardAPIProjection(
                    items=[core.DownwardAPIVolumeFile(path="namespace", field_ref=namespace)]
                )
            ),
        ],
    )


def _check_secrets(attributes: Attributes, spec: core.PodSpec, account: AccountSummary) -> None:
    """Raise StatusError 403 if the account restricts secrets and the pod uses another secret."""
    if account.secrets is not None:
        for fault in _forbidden_secrets(spec, account, account.secrets):
            raise attributes.forbid(fault)


def _forbidden_secrets(spec: core.PodSpec, account: AccountSummary, secrets: frozenset[str]) -> Iterator[str]:
    for volume in spec.volumes:
        if volume.secret is not None and volume.secret.secret_name not in secrets:
            yield _disallowed(f'volume with secret.secretName="{volume.secret.secret_name}"', account)
    yield from _disallowed_secrets("init container", spec.init_containers, account)
    yield from _disallowed_secrets("container", spec.containers or (), account)
    pull_secrets = frozenset(account.pull_secrets)
    for index, reference in enumerate(spec.image_pull_secrets):
        if reference.name not in pull_secrets:
            yield _disallowed(f'imagePullSecrets[{index}].name="{reference.name}"', account, "imagePullSecret")


def _disallowed_secrets(called: str, containers: Any, account: AccountSummary) -> Iterator[str]:
    """Yield errors about secrets in the environment of containers that the account does not allow."""
    secrets = account.secrets or frozenset()
    for container in containers:
        for variable in container.env:
            source = variable.value_from
            if source is not None and source.secret_key_ref is not None and source.secret_key_ref.name not in secrets:
                used = f'envVar {variable.name} referencing secret.secretName="{source.secret_key_ref.name}"'
                yield _disallowed(f"{called} {container.name} with {used}", account)
        for source in container.env_from:
            if source.secret_ref is not None and source.secret_ref.name not in secrets:
                used = f'envFrom referencing secret.secretName="{source.secret_ref.name}"'
                yield _disallowed(f"{called} {container.name} with {used}", account)


def _disallowed(what: str, account: AccountSummary, kind: str = "secret") -> str:
    return f"{what} is not allowed because service account {account.name} does not reference that {kind}"


def _check_mirror(attributes: Attributes, pod: core.Pod) -> None:
    """Raise StatusError 403 if a mirror pod uses API objects: it represents a kubelet's static pod, which cannot get
    any.
    """
    if pod.spec.service_account_name:
        raise attributes.forbid("a mirror pod may not reference service accounts")
    if any(secret_names(pod.spec)):
        raise attributes.forbid("a mirror pod may not reference secrets")
    for volume in pod.spec.volumes:
        if volume.projected is not None and any(
            source.service_account_token is not None for source in volume.projected.sources or ()
        ):
            raise attributes.forbid("a mirror pod may not use ServiceAccountToken volume projections")


_ACCOUNT: Final = Reading(
    account_of, "metadata.name", "metadata.annotations", "secrets", "imagePullSecrets", "automountServiceAccountToken"
)


def _make(dependencies: PluginDependencies) -> ServiceAccount:
    accounts = dependencies.objects("", "serviceaccounts")
    return ServiceAccount(
        lambda namespace, name: accounts.read_cached(namespace, name, _ACCOUNT), look_up=accounts.refresh
    )


SERVICE_ACCOUNT: Final = Declaration(ServiceAccount, on_by_default=True, make=_make)
