"""Fields that an import leaves out."""

from __future__ import annotations

import pytest

from steersman.dumps.fields import FieldError, LeftOut, leave_out, parse_field


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("metadata.managedFields", LeftOut("", ("metadata", "managedFields"))),
        ("configmaps:data", LeftOut("configmaps", ("data",))),
        ("metadata.annotations[a.b/c:d]", LeftOut("", ("metadata", "annotations", "a.b/c:d"))),
        ("deployments.apps:spec.template", LeftOut("deployments.apps", ("spec", "template"))),
    ],
)
def test_fields_are_read(text: str, expected: LeftOut) -> None:
    assert parse_field(text) == expected


@pytest.mark.parametrize("text", ["", "a..b", "a[", ":data", "metadata", "kind", "metadata.name", "x:metadata.uid"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(FieldError):
        parse_field(text)


def test_fields_of_all_items_of_lists_are_left_out() -> None:
    obj = {"spec": {"containers": [{"name": "a", "env": []}, {"name": "b"}], "x": 1}}
    leave_out(obj, ("spec", "containers", "env"))
    leave_out(obj, ("spec", "missing", "env"))
    assert obj == {"spec": {"containers": [{"name": "a"}, {"name": "b"}], "x": 1}}
