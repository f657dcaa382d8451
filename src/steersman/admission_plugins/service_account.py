"""ServiceAccount: every pod runs under an account that is there, and gets a token of it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from typing import Any, Final

from msgspec import Struct

from steersman.admission.interface import CREATE, UPDATE, Attributes, Plugin, Writes
from steersman.admission_plugins.declaration import Declaration, Surroundings
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
"""How long the token is good for; so odd a number tells it from one that somebody asked for."""

_PODS: Final = GroupResource("", "pods")
_ATTEMPTS: Final = 10
_MIRROR: Final = "kubernetes.io/config.mirror"
_ENFORCE_SECRETS: Final = "kubernetes.io/enforce-mountable-secrets"
_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})


class Account(Struct, frozen=True):
    """What pods have to do with of a service account. `secrets` is None where pods may use any."""

    name: str
    automount: bool
    pull_secrets: tuple[str, ...]
    secrets: frozenset[str] | None


def account_of(account: core.ServiceAccount) -> Account:
    """Reads it out of the object."""
    secrets = None
    if account.metadata.annotations.get(_ENFORCE_SECRETS) in _TRUE:
        secrets = frozenset(each.name for each in account.secrets)
    return Account(
        account.metadata.name,
        account.automount_service_account_token is not False,
        tuple(each.name for each in account.image_pull_secrets),
        secrets,
    )


class ServiceAccount(Plugin):
    """`find` gives the account of this namespace and name, None if there is none.

    The account `default` is waited for, some ten times `pause()` seconds: a controller makes it in new namespaces.
    """

    name = "ServiceAccount"
    operations = frozenset({CREATE, UPDATE})
    resources = frozenset({_PODS})
    mutates = True
    validates = True

    def __init__(
        self,
        find: Callable[[str, str], Account | None],
        pause: Callable[[], float] = lambda: random.uniform(0.1, 0.2),
        look_up: LookUp = no_look_up,
    ) -> None:
        """`look_up` has `find` know of one that another server has written."""
        self._find = find
        self._look_up = look_up
        self._pause = pause

    def has_work(self, writes: Writes, *, mutating: bool) -> bool:
        if writes.operation == CREATE:
            return not writes.subresource
        return not mutating and writes.subresource == "ephemeralcontainers"

    async def admit(self, attributes: Attributes) -> None:
        """Gives a new pod its account, the account's pull secrets and a token. Raises StatusError 403."""
        pod: core.Pod = attributes.obj
        spec = pod.spec
        if _MIRROR in pod.metadata.annotations:
            _check_mirror(attributes, pod)
            return
        spec.service_account_name = spec.service_account_name or DEFAULT_ACCOUNT
        account = await self._account(attributes, spec)
        wanted = spec.automount_service_account_token
        if account.automount if wanted is None else wanted:
            await offload(_mount_token, spec)
        if not spec.image_pull_secrets:
            spec.image_pull_secrets = [core.LocalObjectReference(name=name) for name in account.pull_secrets]
        await offload(_check_secrets, attributes, spec, account)

    async def validate(self, attributes: Attributes) -> None:
        """Holds what came of a new pod, or the ephemeral containers of an old one, against its account.

        Raises StatusError 403, and 500 where an ephemeral container uses a secret that is not the account's.
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
            for fault in _foreign_secrets("ephemeral container", spec.ephemeral_containers, account):
                raise plain_internal(fault)

    async def _account(self, attributes: Attributes, spec: core.PodSpec) -> Account:
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
    """A volume with a token of the account, mounted in every container that has nothing else at that place."""
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
    """What a client in the cluster needs: a token, the certificates to trust, and the namespace."""
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


def _check_secrets(attributes: Attributes, spec: core.PodSpec, account: Account) -> None:
    """That the pod uses no other secrets than the account's, where the account asks for that. Raises StatusError."""
    if account.secrets is not None:
        for fault in _forbidden_secrets(spec, account, account.secrets):
            raise attributes.forbid(fault)


def _forbidden_secrets(spec: core.PodSpec, account: Account, secrets: frozenset[str]) -> Iterator[str]:
    for volume in spec.volumes:
        if volume.secret is not None and volume.secret.secret_name not in secrets:
            yield _foreign(f'volume with secret.secretName="{volume.secret.secret_name}"', account)
    yield from _foreign_secrets("init container", spec.init_containers, account)
    yield from _foreign_secrets("container", spec.containers or (), account)
    pull_secrets = frozenset(account.pull_secrets)
    for index, reference in enumerate(spec.image_pull_secrets):
        if reference.name not in pull_secrets:
            yield _foreign(f'imagePullSecrets[{index}].name="{reference.name}"', account, "imagePullSecret")


def _foreign_secrets(called: str, containers: Any, account: Account) -> Iterator[str]:
    """The secrets that containers have in their environment and that are not the account's."""
    secrets = account.secrets or frozenset()
    for container in containers:
        for variable in container.env:
            source = variable.value_from
            if source is not None and source.secret_key_ref is not None and source.secret_key_ref.name not in secrets:
                used = f'envVar {variable.name} referencing secret.secretName="{source.secret_key_ref.name}"'
                yield _foreign(f"{called} {container.name} with {used}", account)
        for source in container.env_from:
            if source.secret_ref is not None and source.secret_ref.name not in secrets:
                used = f'envFrom referencing secret.secretName="{source.secret_ref.name}"'
                yield _foreign(f"{called} {container.name} with {used}", account)


def _foreign(what: str, account: Account, kind: str = "secret") -> str:
    return f"{what} is not allowed because service account {account.name} does not reference that {kind}"


def _check_mirror(attributes: Attributes, pod: core.Pod) -> None:
    """A kubelet's own pod, shown to the API: it gets nothing from there, so it may ask for nothing."""
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


def _make(server: Surroundings) -> ServiceAccount:
    accounts = server.objects("", "serviceaccounts")
    return ServiceAccount(
        lambda namespace, name: accounts.read_cached(namespace, name, _ACCOUNT), look_up=accounts.refresh
    )


SERVICE_ACCOUNT: Final = Declaration(ServiceAccount, on_by_default=True, make=_make)
