"""How messages show pod templates: upstream's internal types, with what clients wrote into their metadata."""

from __future__ import annotations

import msgspec

from steersman.api.core.v1 import PodTemplateSpec
from steersman.api.meta.v1 import LabelSelector, ManagedFieldsEntry, ObjectMeta
from steersman.registry.core.pod_internal_form import internal_form, internal_text


def test_metadata_of_a_template_is_shown_with_the_json_in_it() -> None:
    entry = ManagedFieldsEntry(manager="m", fields_v1=msgspec.Raw(b'{"f:a":{}}'))
    form = internal_form(PodTemplateSpec(metadata=ObjectMeta(name="t", managed_fields=[entry])))
    assert form["name"] == "t"
    assert form["managedFields"] == [{"manager": "m", "fieldsV1": {"f:a": {}}}]


def test_maps_are_shown_by_their_keys() -> None:
    selector = LabelSelector(match_labels={"b": "1", "a": "2"})
    assert str(internal_text(selector)) == '{"matchLabels":{"a":"2","b":"1"}}'
