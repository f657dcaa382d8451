"""Laws of server-side apply, on random configurations: maps, sets, keyed lists, lists and structs of one piece."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from steersman import api
from steersman.kinds.built_in import built_in
from steersman.machinery.codec.serializer import deep_copy, to_plain
from steersman.machinery.codec.unstructured import from_unstructured_with_validation
from steersman.machinery.errors.status import StatusError
from steersman.machinery.managed_fields import Applier, FieldManager, applier, pruning
from steersman.machinery.managed_fields.field_set import EMPTY, FieldSet, difference, intersection, paths
from steersman.machinery.managed_fields.managers import ManagerKey, decode_managers, strip_identity
from steersman.machinery.managed_fields.merging import merge
from steersman.machinery.managed_fields.typed_value import field_set

DEPLOYMENT = api.load("apps", "v1")["Deployment"]
KIND = built_in(DEPLOYMENT)
SCHEMA = KIND.schema
APPLIER = Applier(FieldManager(KIND))
TIME = "2026-01-01T00:00:00Z"
LATER = "2026-01-01T00:00:05Z"

Config = dict[str, Any]


def some(**members: st.SearchStrategy[Any]) -> st.SearchStrategy[Config]:
    """Some of the members, one at least."""
    return st.fixed_dictionaries({}, optional=members).filter(bool)


def several(choices: str | list[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.sampled_from(list(choices)), unique_by=str, min_size=1, max_size=3)


def keyed(key: str, names: str, item: st.SearchStrategy[Config]) -> st.SearchStrategy[list[Config]]:
    """Return a list of items with one key, some of which have no other member."""
    item = st.just({}) | item

    def items(chosen: list[str]) -> st.SearchStrategy[list[Config]]:
        def named(name: str) -> st.SearchStrategy[Config]:
            return item.map(lambda each: {key: name, **each})

        return st.tuples(*map(named, chosen)).map(list)

    return several(names).flatmap(items)


VALUES = st.sampled_from(["1", "2"])
LABELS = st.dictionaries(st.sampled_from("abc"), VALUES, min_size=1, max_size=3)
NUMBERS = st.integers(1, 3)
PORTS = several([{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 443, "protocol": "TCP"}])
CONTAINERS = keyed(
    "name",
    "cde",
    some(
        image=VALUES,
        args=several("xy"),
        env=keyed("name", "AB", some(value=VALUES)),
        ports=PORTS,
        tty=st.just(True),
        securityContext=some(runAsUser=NUMBERS, privileged=st.just(True)),
    ),
)
POD_SPECS = some(
    containers=CONTAINERS,
    nodeSelector=LABELS,
    hostNetwork=st.just(True),
    tolerations=several([{"key": "a"}, {"key": "b"}]),
)
SPECS = some(
    replicas=NUMBERS,
    paused=st.just(True),
    minReadySeconds=NUMBERS,
    template=some(spec=POD_SPECS),
    strategy=some(type=VALUES, rollingUpdate=some(maxSurge=NUMBERS, maxUnavailable=VALUES)),
)
METADATA = some(labels=LABELS, finalizers=several(["x/1", "x/2", "x/3"]))


def configuration(metadata: Config, spec: Config) -> Config:
    out: Config = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", **metadata}}
    return {**out, "spec": spec} if spec else out


CONFIGURATIONS = st.builds(configuration, st.just({}) | METADATA, st.just({}) | SPECS)


def applied(live: Any, config: Config, manager: str, *, force: bool = False) -> Any:
    """The object after an apply, as it would be read again."""
    found = APPLIER.apply(deep_copy(live), config, manager, TIME, force=force)
    obj: Any = deep_copy(live) if found.obj is None else from_unstructured_with_validation(DEPLOYMENT, found.obj).obj
    obj.kind = obj.api_version = ""
    obj.metadata.managed_fields = found.entries
    return obj


def mentioned(config: Config) -> FieldSet:
    """Return the fields of a configuration, without those that have no owner."""
    return strip_identity(field_set(SCHEMA.root, config))


def owned(obj: Any, manager: str) -> FieldSet:
    managers = decode_managers(obj.metadata.managed_fields)
    found = managers.get(ManagerKey(manager, "Apply", "", ""))
    return EMPTY if found is None else found.fields


def plain(obj: Any) -> Config:
    found: Config = to_plain(obj)
    found["metadata"].pop("managedFields", None)
    return found


def there(obj: Any) -> FieldSet:
    """The fields an object has."""
    return field_set(SCHEMA.root, plain(obj))


def unordered(value: Any) -> Any:
    """Return the value with its lists of objects in one order, as all lists of the configurations have keys."""
    if isinstance(value, dict):
        return {name: unordered(item) for name, item in value.items()}
    if isinstance(value, list):
        items = [unordered(item) for item in value]
        return sorted(items, key=str) if items and isinstance(items[0], dict) and "name" in items[0] else items
    return value


def contents(obj: Any) -> Any:
    """Return the content of an object, independent of the order of sets and of lists with keys."""
    found = plain(obj)
    found["metadata"]["finalizers"] = sorted(found["metadata"].get("finalizers", []))
    return unordered(found)


@given(CONFIGURATIONS, CONFIGURATIONS)
def test_applying_again_changes_nothing(first: Config, second: Config) -> None:
    live = applied(applied(DEPLOYMENT(), first, "one"), second, "two", force=True)
    again = APPLIER.apply(deep_copy(live), second, "two", LATER)
    assert again.obj is None
    assert again.entries == live.metadata.managed_fields


@given(CONFIGURATIONS, CONFIGURATIONS)
def test_a_manager_owns_what_it_says_and_nothing_else(first: Config, second: Config) -> None:
    live = applied(DEPLOYMENT(), first, "one")
    assert owned(live, "one") == mentioned(first)
    forced = applied(live, second, "two", force=True)
    assert owned(forced, "two") == mentioned(second)
    changed = applied(forced, first, "two", force=True)
    assert owned(changed, "two") == mentioned(first)


@given(CONFIGURATIONS, CONFIGURATIONS)
def test_what_is_said_is_so(first: Config, second: Config) -> None:
    live = applied(applied(DEPLOYMENT(), first, "one"), second, "two", force=True)
    assert not difference(mentioned(second), there(live))
    said = merge(SCHEMA.root, plain(live), second)
    assert said == {**plain(live), "apiVersion": "apps/v1", "kind": "Deployment"}


def conflicts(live: Any, config: Config, manager: str) -> int:
    """Return the number of conflicts of an apply without force."""
    try:
        applied(live, config, manager)
    except StatusError as error:
        return len(error.causes) if error.code == 409 else -1
    return 0


@given(CONFIGURATIONS, CONFIGURATIONS)
def test_who_forces_takes_over_what_conflicts_and_no_more(first: Config, second: Config) -> None:
    live = applied(DEPLOYMENT(), first, "one")
    forced = applied(live, second, "two", force=True)
    lost = difference(owned(live, "one"), owned(forced, "one"))
    assert len(list(paths(lost))) == conflicts(live, second, "two")
    assert not difference(lost, owned(forced, "two"))
    assert conflicts(forced, second, "two") == 0


@given(CONFIGURATIONS, CONFIGURATIONS)
def test_managers_of_different_fields_may_come_in_any_order(first: Config, second: Config) -> None:
    shared = intersection(mentioned(first), mentioned(second))
    assume(all(_is_item(path) for path in paths(shared)))
    one_two = applied(applied(DEPLOYMENT(), first, "one"), second, "two")
    two_one = applied(applied(DEPLOYMENT(), second, "two"), first, "one")
    assert contents(one_two) == contents(two_one)
    for manager in ("one", "two"):
        assert owned(one_two, manager) == owned(two_one, manager)


def _is_item(path: tuple[str, ...]) -> bool:
    """Return True for the path of a list item or one of its keys. These have the same value in all configurations that
    contain them.
    """
    return path[-1][0] in "kv" or (path[-2][0] == "k" and f'"{path[-1][2:]}"' in path[-2])


@given(CONFIGURATIONS, CONFIGURATIONS, CONFIGURATIONS)
def test_what_is_no_longer_said_is_gone_unless_another_says_it(first: Config, second: Config, other: Config) -> None:
    live = applied(applied(DEPLOYMENT(), first, "one"), other, "two", force=True)
    after = there(applied(live, second, "one", force=True))
    before = owned(live, "one")
    dropped = difference(difference(before, mentioned(second)), mentioned(other))
    for path in paths(intersection(after, dropped)):
        assert _has_something_below(after, path), path
    kept = intersection(before, mentioned(other))
    assert not difference(kept, after)


def _has_something_below(fields: FieldSet, path: tuple[str, ...]) -> bool:
    """Return True if a member is not a leaf. Such a member stays as long as it has content."""
    node = fields
    for element in path:
        node = node[element]
    return bool(node)


@given(CONFIGURATIONS, CONFIGURATIONS, st.booleans())
def test_the_short_way_through_pruning_leads_to_the_same(first: Config, second: Config, same: bool) -> None:
    live = applied(applied(DEPLOYMENT(), first, "one"), second, "two", force=True)
    config = first if same else second
    short = APPLIER.apply(deep_copy(live), config, "one", LATER, force=True)
    with pytest.MonkeyPatch.context() as patch:
        for module in (pruning, applier):
            patch.setattr(module, "are_all_in", lambda *versions: False)
        whole = APPLIER.apply(deep_copy(live), config, "one", LATER, force=True)
    assert short == whole
