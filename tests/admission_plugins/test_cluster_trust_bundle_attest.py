"""Tests of ClusterTrustBundleAttest: permissions to write bundles of a signer."""

from __future__ import annotations

import msgspec

from steersman.admission.interface import CREATE, Attributes, Chain
from steersman.admission_plugins.cluster_trust_bundle_attest import ClusterTrustBundleAttest
from steersman.api.meta.v1 import ObjectMeta
from steersman.machinery.identity.action import Action
from steersman.machinery.identity.schema import GroupVersionKind
from tests.admission_plugins.writes import ALICE, Allowing, refusal


class BundleSpec(msgspec.Struct):
    signer_name: str


class Bundle(msgspec.Struct):
    """The members of a ClusterTrustBundle that the plugin reads; the resource itself is not served."""

    metadata: ObjectMeta
    spec: BundleSpec


def make_write(signer: str, subresource: str = "") -> Attributes:
    bundle = Bundle(ObjectMeta(name="b"), BundleSpec(signer))
    group = "certificates.k8s.io"
    action = Action("create", group, "v1beta1", "clustertrustbundles", subresource, "", "b")
    return Attributes(CREATE, ALICE, action, GroupVersionKind(group, "v1", "ClusterTrustBundle"), "b", bundle)


async def test_a_bundle_of_a_signer_is_for_those_who_may_attest() -> None:
    plugin = ClusterTrustBundleAttest(Allowing(("attest", "signers", "example.com/one")))
    await plugin.validate(make_write("example.com/one"))
    assert await refusal(plugin.validate(make_write("example.com/two"))) == (
        'clustertrustbundles.certificates.k8s.io "b" is forbidden: user not permitted to attest for signerName '
        '"example.com/two"'
    )


async def test_a_bundle_without_a_signer_is_for_all() -> None:
    plugin = ClusterTrustBundleAttest(Allowing())
    await plugin.validate(make_write(""))
    await Chain((plugin,)).validate(make_write("example.com/one", "status"))
