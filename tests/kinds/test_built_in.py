"""Built-in kinds, found by class and by name."""

from __future__ import annotations

import pytest

from steersman.api.apps.v1 import Deployment
from steersman.api.core.v1 import Container
from steersman.api.meta.v1 import DeleteOptions, Status
from steersman.kinds.built_in import built_in, classes_of, find_built_in, gvk_of, is_built_in, is_built_in_group_kind
from steersman.machinery.identity.schema import GroupVersion, GroupVersionError, GroupVersionKind, parse_group_version


def test_kinds_are_found_by_name() -> None:
    gvk = GroupVersionKind("apps", "v1", "Deployment")
    built = find_built_in(gvk)
    assert built is not None
    assert (built.cls, built.gvk, built.list_name, built.api_version) == (Deployment, gvk, "DeploymentList", "apps/v1")
    assert built_in(Deployment).gvk == gvk_of(Deployment) == gvk
    assert classes_of("apps", "v1")["DeleteOptions"] is DeleteOptions
    assert classes_of("", "v1")["Status"] is Status
    assert not is_built_in(GroupVersionKind("apps", "v1", "Status"))
    assert is_built_in_group_kind("apps", "Deployment")
    assert not is_built_in_group_kind("apps", "Pod")


@pytest.mark.parametrize("gvk", [("apps", "v1", "Nope"), ("nope", "v1", "X"), ("nope", "v1", "")])
def test_what_is_not_there_is_not_found(gvk: tuple[str, str, str]) -> None:
    assert find_built_in(GroupVersionKind(*gvk)) is None


def test_a_class_that_is_a_part_of_a_kind_is_none() -> None:
    with pytest.raises(LookupError):
        gvk_of(Container)


def test_api_versions_are_parsed() -> None:
    assert parse_group_version("v1") == GroupVersion("", "v1")
    assert parse_group_version("apps/v1") == GroupVersion("apps", "v1")
    assert parse_group_version("") == GroupVersion("", "")
    assert str(GroupVersion("apps", "v1").with_kind("Deployment")) == "apps/v1, Kind=Deployment"
    with pytest.raises(GroupVersionError, match="unexpected GroupVersion string: a/b/c"):
        parse_group_version("a/b/c")
