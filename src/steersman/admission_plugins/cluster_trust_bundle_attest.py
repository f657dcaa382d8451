"""ClusterTrustBundleAttest: only users with permission for the signer write its trust bundles."""

from __future__ import annotations

from typing import Final

from steersman.admission.interface import CREATE, OBJECT_ALONE, UPDATE, Attributes, Plugin
from steersman.admission_plugins.declaration import Declaration
from steersman.authorization.interface import Authorizer
from steersman.authorization.signers import may_use_signer
from steersman.machinery.errors.field import quote
from steersman.machinery.identity.schema import GroupResource

_BUNDLES: Final = GroupResource("certificates.k8s.io", "clustertrustbundles")


class ClusterTrustBundleAttest(Plugin):
    """Checks the permission `attest` on the signer. Anyone may write bundles without a signer.

    The resource is beta and therefore not served by default.
    """

    name = "ClusterTrustBundleAttest"
    operations = frozenset({CREATE, UPDATE})
    resources = frozenset({_BUNDLES})
    subresources = OBJECT_ALONE
    validates = True

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def validate(self, attributes: Attributes) -> None:
        signer = attributes.obj.spec.signer_name
        if signer and not await may_use_signer(self._authorizer, attributes.user, "attest", signer):
            raise attributes.forbid(f"user not permitted to attest for signerName {quote(signer)}")


CLUSTER_TRUST_BUNDLE_ATTEST: Final = Declaration(
    ClusterTrustBundleAttest,
    on_by_default=True,
    make=lambda dependencies: ClusterTrustBundleAttest(dependencies.authorizer),
)
