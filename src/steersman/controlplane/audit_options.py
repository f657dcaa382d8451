"""The `--audit-*` flags as plain data, with upstream's defaults, and what is wrong with their values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from steersman.machinery.errors.field import quote
from steersman.machinery.identity.schema import GroupVersionError, parse_group_version

BATCH: Final = "batch"
BLOCKING: Final = "blocking"
BLOCKING_STRICT: Final = "blocking-strict"
BACKOFF: Final = 10.0
_MODES: Final = (BATCH, BLOCKING, BLOCKING_STRICT)
_FORMATS: Final = ("legacy", "json")
_VERSION: Final = "audit.k8s.io/v1"


@dataclass(slots=True, kw_only=True)
class AuditOptions:
    """Field names are the flags' names; times are in seconds."""

    audit_policy_file: str = ""
    audit_log_path: str = ""
    audit_log_maxage: int = 366
    audit_log_maxbackup: int = 100
    audit_log_maxsize: int = 100
    audit_log_format: str = "json"
    audit_log_compress: bool = False
    audit_log_version: str = _VERSION
    audit_log_mode: str = BLOCKING
    audit_log_batch_buffer_size: int = 10_000
    audit_log_batch_max_size: int = 1
    audit_log_batch_max_wait: float = 0.0
    audit_log_batch_throttle_enable: bool = False
    audit_log_batch_throttle_qps: float = 0.0
    audit_log_batch_throttle_burst: int = 0
    audit_log_truncate_enabled: bool = False
    audit_log_truncate_max_batch_size: int = 10 << 20
    audit_log_truncate_max_event_size: int = 100 << 10
    audit_webhook_config_file: str = ""
    audit_webhook_initial_backoff: float = BACKOFF
    audit_webhook_batch_initial_backoff: float = BACKOFF
    audit_webhook_version: str = _VERSION
    audit_webhook_mode: str = BATCH
    audit_webhook_batch_buffer_size: int = 10_000
    audit_webhook_batch_max_size: int = 400
    audit_webhook_batch_max_wait: float = 30.0
    audit_webhook_batch_throttle_enable: bool = True
    audit_webhook_batch_throttle_qps: float = 10.0
    audit_webhook_batch_throttle_burst: int = 15
    audit_webhook_truncate_enabled: bool = False
    audit_webhook_truncate_max_batch_size: int = 10 << 20
    audit_webhook_truncate_max_event_size: int = 100 << 10


DURATIONS: Final = (
    "audit_log_batch_max_wait",
    "audit_webhook_batch_max_wait",
    "audit_webhook_initial_backoff",
    "audit_webhook_batch_initial_backoff",
)
"""Options in seconds whose flags are durations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendOptions:
    """What the flags of both backends have in common."""

    plugin: str
    version: str
    mode: str
    buffer_size: int
    max_size: int
    max_wait: float
    throttle: bool
    qps: float
    burst: int
    truncate: bool
    max_batch_bytes: int
    max_event_bytes: int


def webhook_backoff(options: AuditOptions) -> float:
    """The wait before a second attempt, by whichever of its two names it is given."""
    if options.audit_webhook_initial_backoff != BACKOFF:
        return options.audit_webhook_initial_backoff
    return options.audit_webhook_batch_initial_backoff


def backend_options(options: AuditOptions, plugin: Literal["log", "webhook"]) -> BackendOptions:
    """Those of one backend."""

    def given(name: str) -> Any:
        return getattr(options, f"audit_{plugin}_{name}")

    return BackendOptions(
        plugin=plugin,
        version=given("version"),
        mode=given("mode"),
        buffer_size=given("batch_buffer_size"),
        max_size=given("batch_max_size"),
        max_wait=given("batch_max_wait"),
        throttle=given("batch_throttle_enable"),
        qps=given("batch_throttle_qps"),
        burst=given("batch_throttle_burst"),
        truncate=given("truncate_enabled"),
        max_batch_bytes=given("truncate_max_batch_size"),
        max_event_bytes=given("truncate_max_event_size"),
    )


def wrong_with(options: AuditOptions) -> Iterator[str]:
    """What is wrong with the flags of the backends that are on, in upstream's words."""
    if options.audit_log_path:
        yield from _wrong_with_backend(backend_options(options, "log"))
        if options.audit_log_format not in _FORMATS:
            allowed = quote(",".join(_FORMATS))
            yield f"invalid audit log format {options.audit_log_format}, allowed formats are {allowed}"
        for name in ("maxage", "maxbackup", "maxsize"):
            value = getattr(options, f"audit_log_{name}")
            if value < 0:
                yield f"--audit-log-{name} {value} can't be a negative number"
    if options.audit_webhook_config_file:
        yield from _wrong_with_backend(backend_options(options, "webhook"))


def _wrong_with_backend(options: BackendOptions) -> Iterator[str]:
    batching = next(_wrong_with_batching(options), "")
    if batching:
        yield batching
    event, batch = options.max_event_bytes, options.max_batch_bytes
    if event <= 0:
        yield f"invalid audit truncate {options.plugin} max event size {event}, must be a positive number"
    elif batch < event:
        yield (
            f"invalid audit truncate {options.plugin} max batch size {batch}, must be greater than max event size "
            f"({event})"
        )
    try:
        parse_group_version(options.version)
    except GroupVersionError as error:
        yield str(error)
    else:
        if options.version != _VERSION:
            yield f'invalid group version, allowed versions are ["{_VERSION}"]'


def _wrong_with_batching(options: BackendOptions) -> Iterator[str]:
    plugin = options.plugin
    if options.mode not in _MODES:
        yield f"invalid audit {plugin} mode {options.mode}, allowed modes are {quote(','.join(_MODES))}"
    if options.mode != BATCH:
        return
    if options.buffer_size <= 0:
        yield f"invalid audit batch {plugin} buffer size {options.buffer_size}, must be a positive number"
    if options.max_size <= 0:
        yield f"invalid audit batch {plugin} max batch size {options.max_size}, must be a positive number"
    if options.throttle and options.qps <= 0:
        yield f"invalid audit batch {plugin} throttle QPS {options.qps:g}, must be a positive number"
    if options.throttle and options.burst <= 0:
        yield f"invalid audit batch {plugin} throttle burst {options.burst}, must be a positive number"
