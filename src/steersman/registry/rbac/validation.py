"""Validation of roles and bindings (pkg/apis/rbac/validation)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from steersman.api.rbac.v1 import PolicyRule, RoleRef, Subject
from steersman.machinery.errors.field import FieldError, Path, invalid, not_supported, required
from steersman.machinery.validation.formats import is_path_segment_name
from steersman.machinery.validation.leaves import validate_name, validate_required, validate_supported
from steersman.machinery.validation.object_meta import validate_service_account_name
from steersman.registry.printing.go_struct import go_struct

GROUP: Final = "rbac.authorization.k8s.io"
ROLE_REF_IMMUTABLE: Final = "cannot change roleRef"

_RULES: Final = Path("rules")
_ROLE_REF: Final = Path("roleRef")
_SUBJECTS: Final = Path("subjects")


def rbac_name(name: str, prefix: bool) -> list[str]:
    """Return the errors of a name, which may be any URL path segment, generated or not."""
    return is_path_segment_name(name)


def validate_rules(rules: Sequence[PolicyRule], *, namespaced: bool) -> Iterator[FieldError]:
    """Validate the rules of a Role or ClusterRole."""
    for index, rule in enumerate(rules):
        yield from _validate_rule(rule, _RULES[index], namespaced=namespaced)


def _validate_rule(rule: PolicyRule, path: Path, *, namespaced: bool) -> Iterator[FieldError]:
    if not rule.verbs:
        yield required(path / "verbs", "verbs must contain at least one value")
    if rule.non_resource_urls:
        urls = path / "nonResourceURLs"
        if namespaced:
            yield invalid(urls, rule.non_resource_urls, "namespaced rules cannot apply to non-resource URLs")
        if rule.api_groups or rule.resources or rule.resource_names:
            detail = "rules cannot apply to both regular resources and non-resource URLs"
            yield invalid(urls, rule.non_resource_urls, detail)
        return
    if not rule.api_groups:
        yield required(path / "apiGroups", "resource rules must supply at least one api group")
    if not rule.resources:
        yield required(path / "resources", "resource rules must supply at least one resource")


def validate_binding(ref: RoleRef, subjects: Sequence[Subject], *, namespaced: bool) -> Iterator[FieldError]:
    """Validate the role reference and the subjects of a binding."""
    if ref.api_group != GROUP:
        yield not_supported(_ROLE_REF / "apiGroup", ref.api_group, (GROUP,))
    kinds = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)
    yield from validate_supported(ref.kind, kinds, _ROLE_REF / "kind")
    yield from validate_required(is_path_segment_name, ref.name, _ROLE_REF / "name")
    for index, subject in enumerate(subjects):
        yield from _validate_subject(subject, _SUBJECTS[index], namespaced=namespaced)


def _validate_subject(subject: Subject, path: Path, *, namespaced: bool) -> Iterator[FieldError]:
    if not subject.name:
        yield required(path / "name")
    if subject.kind == "ServiceAccount":
        if subject.name:
            yield from validate_name(validate_service_account_name, subject.name, path / "name")
        if subject.api_group:
            yield not_supported(path / "apiGroup", subject.api_group, ("",))
        if not namespaced and not subject.namespace:
            yield required(path / "namespace")
    elif subject.kind in ("User", "Group"):
        if subject.api_group != GROUP:
            yield not_supported(path / "apiGroup", subject.api_group, (GROUP,))
    else:
        yield not_supported(path / "kind", subject.kind, ("ServiceAccount", "User", "Group"))


def validate_role_ref_update(new: RoleRef, old: RoleRef) -> Iterator[FieldError]:
    """Forbid changes of a binding's role reference."""
    if new != old:
        value = go_struct(APIGroup=new.api_group, Kind=new.kind, Name=new.name)
        yield invalid(_ROLE_REF, value, ROLE_REF_IMMUTABLE)


def default_binding(ref: RoleRef, subjects: Sequence[Subject]) -> None:
    """Set the defaults of SetDefaults_RoleBinding, SetDefaults_ClusterRoleBinding and SetDefaults_Subject."""
    ref.api_group = ref.api_group or GROUP
    for subject in subjects:
        if not subject.api_group and subject.kind in ("User", "Group"):
            subject.api_group = GROUP
