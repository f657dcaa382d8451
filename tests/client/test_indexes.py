"""Indexes that several components use."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from steersman.api.core.v1 import Pod
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.given_objects import GivenInformers
from steersman.client.indexes import BY_LABEL, by_label, with_labels
from steersman.client.resources import PODS

_labels = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xy"), max_size=3)
_many = {f"l{each}": "v" for each in range(40)}


@given(st.lists(st.tuples(st.sampled_from(("one", "two")), _labels, st.booleans())), _labels)
def test_pods_are_found_by_their_labels(
    pods: list[tuple[str, Mapping[str, str], bool]], wanted: Mapping[str, str]
) -> None:
    informers = GivenInformers()
    found = informers.for_resource(PODS)
    found.add_index(BY_LABEL, by_label)
    expected = set()
    for number, (namespace, labels, has_many) in enumerate(pods):
        own = {**labels, **(_many if has_many else {})}
        informers.put(PODS, Pod(metadata=ObjectMeta(name=f"p{number}", namespace=namespace, labels=own)))
        if namespace == "one" and wanted.items() <= labels.items():
            expected.add(f"p{number}")
    assert {each.metadata.name for each in with_labels(found, "one", wanted)} == expected
