"""The results of selectors, which do not depend on whether the selected fields are cached, read each time, or not read."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from steersman.api.core.v1 import Event, EventSource, ObjectReference
from steersman.api.meta.v1 import ObjectMeta
from steersman.machinery.selectors import fields, labels
from steersman.registry.core.events import EVENTS
from steersman.rest.capabilities import ListOptions
from steersman.storage.cache.entry import Entry
from steersman.store.selection import Selection

TEXTS = st.sampled_from(["", "a", "b", "ab", "a<b", 'quo"ted', "ä", "back\\slash"])
WORDS = st.sampled_from(["", "a", "b", "ab"])
EVENTS_OF = st.builds(
    lambda name, reason, component, label, reporting: Event(
        metadata=ObjectMeta(name=name or "n", namespace="ns", uid="u", labels={"k": label}),
        involved_object=ObjectReference(name=name, kind="Pod"),
        reason=reason,
        source=EventSource(component=component),
        reporting_component=reporting,
    ),
    TEXTS,
    TEXTS,
    TEXTS,
    WORDS,
    TEXTS,
)
FIELDS = st.sampled_from(
    [
        "involvedObject.name",
        "involvedObject.kind",
        "reason",
        "source",
        "reportingComponent",
        "metadata.name",
        "metadata.namespace",
        "involvedObject.uid",
    ]
)
REQUIREMENTS = st.builds(fields.Requirement, FIELDS, st.sampled_from(["=", "!="]), TEXTS)
LABELS = st.sampled_from(["", "k=a", "k==ab", "k!=a", "k in (a,b)", "k", "!k", "k=a,k!=b"])


@given(EVENTS_OF, st.lists(REQUIREMENTS, max_size=6), LABELS)
def test_nothing_is_missed_by_looking_for_text(event: Event, wanted: list[fields.Requirement], by_label: str) -> None:
    selection = Selection(EVENTS)
    options = replace(ListOptions(), field_selector=fields.Selector(wanted), label_selector=labels.parse(by_label))
    body = EVENTS.kind.present(EVENTS.kind.value(event), 7)
    once, kept = Entry("/k", body, 7), Entry("/k", body, 7)
    accept, accept_once = selection.accept(options), selection.accept(options, keeps=False)
    if accept is None or accept_once is None:
        assert accept is accept_once
        assert not wanted
        return
    assert accept_once(once) == accept(kept) == accept_once(kept)
    assert once.selectable is None
