"""Tests that caches are bounded: those of memoised functions, and those written by hand."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import steersman
from steersman.aggregator.backend import identity_fields
from steersman.api.core.v1 import ScopedResourceSelectorRequirement
from steersman.authentication.user import UserInfo
from steersman.cel import names, regular
from steersman.endpoints.proxy.upgrade_aware import canonical
from steersman.machinery.built_in.quota.measure import select_name
from steersman.machinery.cron.schedules import ScheduleError, check_time_zone, parse_schedule
from steersman.scheduler.fit.status import insufficient
from steersman.schema import patterns
from tests import memoised

assert steersman.__file__ is not None
SOURCES = Path(steersman.__file__).parent

OF_THE_PACKAGE = {
    "admission_plugins.pod_security.checks._checks",
    "admission_rules.environments.environment",
    "api.tables.table",
    "apiextensions.declared._decoder",
    "authentication.jwt.expressions._environment",
    "authentication.service_account_tokens._signing_key",
    "authentication.signatures.registry_of",
    "authorization.match_conditions._environment",
    "cel.grammar.first_tokens",
    "cel.grammar.grammar",
    "cel.library.devices.device_environment",
    "cel.library.kubernetes.base_environment",
    "cli.terminal_text._special",
    "endpoints.ownership._action_manager",
    "endpoints.ownership._view_manager",
    "endpoints.ownership.view_applier",
    "endpoints.parameters._members",
    "kinds.built_in._built_in_kind",
    "kinds.built_in._gvk_of",
    "kinds.built_in.classes_of",
    "library.user_code._fields",
    "machinery.codec.configuration.type_in_version",
    "machinery.codec.go_types.go_type",
    "machinery.codec.go_types.struct",
    "machinery.codec.partial._make_part",
    "machinery.codec.protobuf.documents._opening",
    "machinery.codec.protobuf.tables._heads",
    "machinery.codec.protobuf.tables._message",
    "machinery.codec.protobuf.transcode._part",
    "machinery.codec.serializer._decoder",
    "machinery.codec.serializer._decoder_of_own",
    "inspector.page_files.page_files",
    "machinery.codec.serializer._printed_if_none",
    "machinery.sorted_maps._members_of",
    "machinery.conversion.autoscaling._decoder",
    "machinery.conversion.autoscaling._form",
    "machinery.conversion.resource._between",
    "machinery.go.printable.unprintable",
    "nodes.load_expressions._environment",
    "nodes.stages.go_template.evaluation._arity",
    "nodes.stages.jq.functions.library",
    "work.memory.malloc_trim",
    "work.offloading._of_process",
    "work.parts.Part.needs",
    "machinery.managed_fields.builtin._builder",
    "machinery.managed_fields.builtin._builder_on_request",
    "machinery.managed_fields.builtin.schema_of_kind",
    "machinery.managed_fields.outline._form_of",
    "machinery.managed_fields.plain.members",
    "machinery.managed_fields.typed_value.has_lists",
    "machinery.managed_fields.typed_value.members_with_lists",
    "net.client.http2.health.health_of_environment",
    "openapi.derived._modules",
    "openapi.descriptions.digest",
    "openapi.parameters.options",
    "openapi.paths._shared",
    "openapi.schemas._facts",
    "openapi.schemas.digest",
    "registry.core.node_annotations._taints",
    "registry.kubelet._any_server",
    "registry.pod_template.validation.leniency._for_new",
    "registry.pod_template.validation.pods._tolerations",
    "registry.printing.internal_form._fields",
    "scheduler.queue.hints._is_waited_for",
    "storage.sqlite.file._expected_schema",
    "testing.strategies.built_in._kinds",
}
"""Functions whose keys are types, versions and flags of the package itself."""

OF_CLIENTS = {
    "aggregator.backend._escaped_key": "keys of at most 256 characters",
    "authentication.client_certificate._described": "certificates that are not unusually large",
    "authentication.jwt.expressions.compiled": "expressions of a file that the operator writes",
    "cel.names._escaped": "names of at most 256 characters",
    "cel.names._unescaped": "names of at most 256 characters",
    "cel.pattern_size._measured": "16 patterns that RE2 may read",
    "cel.regular.compile_long_pattern": "8 patterns that RE2 may compile",
    "cel.regular.compile_pattern": "patterns of at most 4,096 characters",
    "controllers.services.ports._hash_in_endpoints": "names that validation bounds",
    "controllers.services.ports._hash_in_slice": "names that validation bounds",
    "endpoints.negotiation.discovery_form": "headers that `negotiation.bounded` has cut",
    "endpoints.negotiation.negotiate": "headers that `negotiation.bounded` has cut",
    "endpoints.options._read_cached": "short queries",
    "endpoints.proxy.upgrade_aware._canonical": "names of at most 64 characters",
    "endpoints.request_info.request_info": "methods and targets of at most 512 characters together",
    "machinery.built_in.quota.measure._predicate": "scope selectors of at most 1,024 characters",
    "machinery.codec.protobuf.decode._int_or_string": "short messages, see `_of_scalar`",
    "machinery.codec.protobuf.decode._micro_time": "short messages, see `_of_scalar`",
    "machinery.codec.protobuf.decode._quantity": "short messages, see `_of_scalar`",
    "machinery.codec.protobuf.decode._time": "short messages, see `_of_scalar`",
    "machinery.codec.protobuf.encode._micro_time": "times in canonical form",
    "machinery.codec.protobuf.encode._time": "times in canonical form",
    "machinery.codec.protobuf.tables.varint": "numbers",
    "machinery.codec.protobuf.transcode._encoded": "parts of at most 1,024 bytes",
    "machinery.cron.schedules._is_in_database": "names of at most 256 characters",
    "machinery.cron.schedules._parsed": "schedules of at most 256 characters",
    "machinery.errors.field._root": "names of fields that the code has",
    "machinery.managed_fields.fields_v1._decode": "field sets of at most 8,192 bytes",
    "machinery.managed_fields.path_elements._canonical": "short elements",
    "machinery.managed_fields.path_elements._order": "short elements",
    "machinery.managed_fields.reconcile._decode": "field sets of at most 8,192 bytes",
    "machinery.managed_fields.requests._from_user_agent": "user agents of at most 256 characters",
    "machinery.metrics.sha256_label": "ids of keys of at most 1,024 characters",
    "machinery.values.quantity.known_canonical_text": "short texts",
    "machinery.values.quantity._canonical_trimmed": "short texts",
    "machinery.values.quantity.known_whole_in_milli": "short texts",
    "machinery.values.quantity.known_nanos": "short texts",
    "machinery.values.quantity._parsed": "short texts",
    "machinery.values.times._canonical": "texts of at most 64 characters",
    "machinery.values.times._is_usual_day": "ten characters",
    "net.client.http2.answer._checked_name": "names of at most 64 bytes",
    "net.http1.head._lower_name": "names of at most 64 bytes",
    "net.http2.request._checked_name": "names of at most 64 bytes",
    "nodes.shell.patterns._kept": "patterns of at most 1,024 characters, as RE2 writes them",
    "nodes.shell.patterns._of_whole": "patterns of at most 1,024 characters",
    "nodes.rehearsal._run": "commands and settings that `outcome` finds short",
    "openapi.accept.accepted": "headers that `negotiation.bounded` has cut",
    "openapi.protobuf._any_of_few": "values of at most 256 bytes",
    "registry.pod_template.image._pull_policy": "references of at most 1,024 characters",
    "registry.resource.device_selectors.check_expression": "expressions of at most 10 KiB",
    "scheduler.devices.expressions._program": "expressions of at most 10 KiB",
    "scheduler.fit.status._insufficient": "at most eight names of resources",
    "schema.patterns._finder": "patterns of at most 4,096 characters",
    "schema.patterns._large_finder": "32 patterns that RE2 may compile",
    "webhooks.client_config._shared_tls": "128 authorities that administrators write",
    "testing.strategies.hints._hints_of": "rules of at most 2,048 characters",
    "testing.strategies.pattern_texts._characters": "sets of at most 1,024 characters",
    "testing.strategies.pattern_texts._pattern_texts": "patterns of at most 1,024 characters",
}
"""Functions whose keys come from outside, with the bound of a key. The decorator bounds the number of keys."""

MADE_BY_HAND = {
    "admission_plugins/event_rate_limit.py _buckets_by_key": "cache_size of the configuration; long keys by digest",
    "admission_rules/evaluation.py _values": "one evaluation, whose cost is bounded",
    "admission_rules/schema_types.py _types_by_name": "one schema",
    "aggregator/remote_discovery.py _document_cache": "the Services of APIServices",
    "controllers/autoscaling/targets.py _known": "the kinds there are",
    "controlplane/recent_reads.py _entries": "what the cache does not have yet",
    "explain/what_if/plan.py _known": "_MOST_EXPLAINED, of one plan",
    "kinds/custom.py _marks": "the bytes it is made with",
    "net/client/transport.py _pools": "connections, which are bounded",
    "net/http2/blocks.py _known": "_MAX_KNOWN, of at most _LONGEST_KEPT bytes",
    "net/http2/request.py _known": "_MAX_KNOWN, of at most 2,048 bytes",
    "nodes/initial_world.py _read_objects": "what one container names",
    "openapi/cache.py _kept": "the bytes it is made with",
    "openapi/documents.py _kept": "the documents there are",
    "scheduler/demand/requests.py _requests": "_MOST_KNOWN, long keys by digest",
    "scheduler/fit/rankings.py _rankings": "bytes of rankings; long keys by digest",
    "storage/cache/cacher.py _encoded": "bytes of what was encoded",
    "storage/cache/past_states.py _kept": "a number, and bytes",
    "storage/encryption/kms/envelope.py _seeds": "_MOST_SEEDS",
    "storage/encryption/metrics.py _told": "_MOST_KEY_IDS",
    "storage/encryption/metrics.py _used": "_MOST_KEY_IDS",
    "store/follower.py _known": "the objects there are",
    "testing/pool.py _waiting": "_MOST_KEPT",
    "validation_rules/declarations.py _type_cache": "one schema",
    "validation_rules/evaluation.py _visibility_cache": "one evaluation",
    "validation_rules/values.py _known": "the members of one object",
}
"""Dictionaries that cache results, by file and name, with the bound of each."""
OF_THEIR_NAMES = {"_known", "_kept", "_remembered", "_cache", "_cached", "_seen"}
ORDERED = {"OrderedDict", "_Known"}


@pytest.mark.slow
def test_every_memoised_function_has_a_bound() -> None:
    """In every other test `memoised.watch` holds each function to 16 KiB a key, or to its bound in LONGER."""
    for module in pkgutil.walk_packages(steersman.__path__, "steersman."):
        if not module.name.startswith("steersman.api.") and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    nested = {name for name in memoised.functions if "<locals>" in name}
    assert nested <= {"openapi.kind_schemas.kind_schemas.<locals>.schema_of"}  # of one document
    assert set(memoised.functions) - nested == OF_THE_PACKAGE | set(OF_CLIENTS)
    assert set(memoised.LONGER) <= set(OF_CLIENTS)


def made_by_hand() -> Iterator[str]:
    """Yield every dictionary that keeps the order of use, or that has a name of a cache (OF_THEIR_NAMES)."""
    for file in sorted(SOURCES.rglob("*.py")):
        path = file.relative_to(SOURCES)
        if path.parts[0] == "api":
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
            name = str(getattr(target, "attr", None) or getattr(target, "id", ""))
            value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
            is_ordered = (
                isinstance(value, ast.Call)
                and not (value.args or value.keywords)
                and ast.unparse(value.func) in ORDERED
            )
            listed = f"{path} {name}"
            is_empty = isinstance(value, ast.Dict) and not value.keys and isinstance(target, ast.Attribute)
            if is_ordered or (
                is_empty and (name in OF_THEIR_NAMES or name.endswith("_cache") or listed in MADE_BY_HAND)
            ):
                yield listed


@pytest.mark.slow
def test_every_cache_that_is_made_by_hand_has_a_bound() -> None:
    assert sorted(set(made_by_hand())) == sorted(MADE_BY_HAND)


NO_CACHES = {
    "client/events.py": "messages that are too old to count",
    "endpoints/proxy/rewriting.py": "pieces that have been joined",
    "net/spdy.py": "events, for whoever waits for room",
    "net/websocket/streams.py": "an event, for whoever waits for room",
    "nodes/shell/programs.py": "pieces that have been written",
}


def emptied_when_full() -> Iterator[str]:
    """Yield files that clear something when its length, or another number, exceeds a bound."""
    for file in sorted(SOURCES.rglob("*.py")):
        text = file.read_text()
        for node in ast.walk(ast.parse(text)) if ".clear(" in text else ():
            if not isinstance(node, ast.If) or not any(
                isinstance(each, ast.Compare)
                and isinstance(each.ops[0], ast.Gt | ast.GtE)
                and ast.unparse(each.comparators[0]).strip("_").isupper()
                for each in ast.walk(node.test)
            ):
                continue
            calls = [getattr(each.value, "func", None) for each in node.body if isinstance(each, ast.Expr)]
            if any(isinstance(call, ast.Attribute) and call.attr == "clear" for call in calls):
                yield str(file.relative_to(SOURCES))


def test_no_cache_is_emptied_when_it_is_full() -> None:
    """An attacker who fills such a cache would evict the entries of all others. `work.bounded_cache` does not allow it."""
    assert set(emptied_when_full()) == set(NO_CACHES)


LONG = "a" * (memoised.LONGEST + 1)
LONG_PATTERN = f"[{LONG}]"  # which is long to remember, and soon matched


@pytest.mark.parametrize(
    "call",
    [
        lambda: names.escape(LONG),
        lambda: names.unescape(f"{LONG}__dot__"),
        lambda: parse_schedule("0," * len(LONG) + "0 * * * *"),
        lambda: canonical(LONG),
        lambda: identity_fields(UserInfo("a", extra={LONG: ("b",)})),
        lambda: select_name(ScopedResourceSelectorRequirement("PriorityClass", "In", ["a" * 63] * 300), ["a"]),
        lambda: insufficient(tuple(f"example.com/{number}" for number in range(2000)), resolvable=True),
        lambda: patterns.matches(LONG_PATTERN, LONG),
        lambda: regular.matches(LONG_PATTERN, LONG),
    ],
    ids=["escape", "unescape", "schedule", "canonical", "extra", "scope", "resources", "pattern", "expression"],
)
def test_long_texts_are_read_and_not_remembered(call: Callable[[], Any]) -> None:
    call()


def test_a_long_name_is_no_time_zone() -> None:
    with pytest.raises(ScheduleError, match="unknown time zone"):
        check_time_zone("/".join(["a"] * len(LONG)))
    with pytest.raises(ScheduleError, match="bad location"):
        parse_schedule(f"TZ={LONG} * * * * *")
