"""The `--audit-*` flags as plain data with upstream's defaults, and the validation of their values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from msgspec import Struct

from steersman.controlplane.flag_readers import OneOf, boolean, decimal, integer, seconds
from steersman.controlplane.flags import AUDITING
from steersman.machinery.errors.field import quote
from steersman.machinery.identity.schema import GroupVersionError, parse_group_version

BATCH: Final = "batch"
BLOCKING: Final = "blocking"
BLOCKING_STRICT: Final = "blocking-strict"
BACKOFF: Final = 10.0
_MODES: Final = (BATCH, BLOCKING, BLOCKING_STRICT)
_FORMATS: Final = ("legacy", "json")
_VERSION: Final = "audit.k8s.io/v1"

_MODE: Final = (OneOf(*_MODES, may_be_empty=True), "batch, blocking or blocking-strict")
_BUFFER_SIZE: Final = (integer, "limit of buffered events in batch mode")
_MAX_SIZE: Final = (integer, "maximum events per batch")
_MAX_WAIT: Final = (seconds, "time after which an incomplete batch is sent")
_THROTTLE: Final = (boolean, "limit the rate of batches")
_QPS: Final = (decimal, "average batches per second")
_BURST: Final = (integer, "burst of batches beyond the average rate")
_TRUNCATE: Final = (boolean, "remove objects from large events")
_BATCH_BYTES: Final = (integer, "maximum bytes per batch")
_EVENT_BYTES: Final = (integer, "maximum bytes per event")
_EVENTS: Final = (str, "version of events: audit.k8s.io/v1")


@dataclass(slots=True, kw_only=True, repr=False, match_args=False)  # each method costs time of a start
class AuditOptions:
    """Options of auditing. Field names are the flags' names; times are in seconds."""

    audit_policy_file: str = AUDITING("", str, "Policy: requests to record, and in which detail")
    audit_log_path: str = AUDITING("", str, "log file, - for the standard output")
    audit_log_maxage: int = AUDITING(366, integer, "days to keep old files, 0 for no limit")
    audit_log_maxbackup: int = AUDITING(100, integer, "number of old files to keep, 0 for all")
    audit_log_maxsize: int = AUDITING(100, integer, "maximum size of a file in MiB, 0 for no limit")
    audit_log_format: str = AUDITING(
        "json", OneOf("json", "legacy", may_be_empty=True), "json, or legacy for lines of text"
    )
    audit_log_compress: bool = AUDITING(False, boolean, "compress old files")
    audit_log_mode: str = AUDITING(BLOCKING, *_MODE)
    audit_log_batch_buffer_size: int = AUDITING(10_000, *_BUFFER_SIZE)
    audit_log_batch_max_size: int = AUDITING(1, *_MAX_SIZE)
    audit_log_batch_max_wait: float = AUDITING(0.0, *_MAX_WAIT)
    audit_log_batch_throttle_enable: bool = AUDITING(False, *_THROTTLE)
    audit_log_batch_throttle_qps: float = AUDITING(0.0, *_QPS)
    audit_log_batch_throttle_burst: int = AUDITING(0, *_BURST)
    audit_log_truncate_enabled: bool = AUDITING(False, *_TRUNCATE)
    audit_log_truncate_max_batch_size: int = AUDITING(10 << 20, *_BATCH_BYTES)
    audit_log_truncate_max_event_size: int = AUDITING(100 << 10, *_EVENT_BYTES)
    audit_log_version: str = AUDITING(_VERSION, *_EVENTS, values=(_VERSION,))
    audit_webhook_config_file: str = AUDITING("", str, "kubeconfig of the webhook that receives events")
    audit_webhook_initial_backoff: float = AUDITING(BACKOFF, seconds, "time before the second attempt")
    audit_webhook_batch_initial_backoff: float = AUDITING(
        BACKOFF, seconds, "old name of --audit-webhook-initial-backoff"
    )
    audit_webhook_mode: str = AUDITING(BATCH, *_MODE)
    audit_webhook_batch_buffer_size: int = AUDITING(10_000, *_BUFFER_SIZE)
    audit_webhook_batch_max_size: int = AUDITING(400, *_MAX_SIZE)
    audit_webhook_batch_max_wait: float = AUDITING(30.0, *_MAX_WAIT)
    audit_webhook_batch_throttle_enable: bool = AUDITING(True, *_THROTTLE)
    audit_webhook_batch_throttle_qps: float = AUDITING(10.0, *_QPS)
    audit_webhook_batch_throttle_burst: int = AUDITING(15, *_BURST)
    audit_webhook_truncate_enabled: bool = AUDITING(False, *_TRUNCATE)
    audit_webhook_truncate_max_batch_size: int = AUDITING(10 << 20, *_BATCH_BYTES)
    audit_webhook_truncate_max_event_size: int = AUDITING(100 << 10, *_EVENT_BYTES)
    audit_webhook_version: str = AUDITING(_VERSION, *_EVENTS, values=(_VERSION,))


class BackendOptions(Struct, frozen=True, kw_only=True):
    """Options common to both backends; field names are the ends of the flags' names."""

    plugin: str
    version: str
    mode: str
    batch_buffer_size: int
    batch_max_size: int
    batch_max_wait: float
    batch_throttle_enable: bool
    batch_throttle_qps: float
    batch_throttle_burst: int
    truncate_enabled: bool
    truncate_max_batch_size: int
    truncate_max_event_size: int


def webhook_backoff(options: AuditOptions) -> float:
    """Return the wait before a second attempt, from either of the flag's two names."""
    if options.audit_webhook_initial_backoff != BACKOFF:
        return options.audit_webhook_initial_backoff
    return options.audit_webhook_batch_initial_backoff


def backend_options(options: AuditOptions, plugin: Literal["log", "webhook"]) -> BackendOptions:
    """Return the options of one backend."""
    names = (each for each in BackendOptions.__struct_fields__ if each != "plugin")
    return BackendOptions(plugin=plugin, **{name: getattr(options, f"audit_{plugin}_{name}") for name in names})


def is_audited(options: AuditOptions) -> bool:
    """Return True if flags set a policy or a backend."""
    return bool(options.audit_policy_file or options.audit_log_path or options.audit_webhook_config_file)


def option_errors(options: AuditOptions) -> Iterator[str]:
    """Yield upstream's error texts for the flags of the enabled backends."""
    if options.audit_log_path:
        yield from _backend_errors(backend_options(options, "log"))
        if options.audit_log_format not in _FORMATS:
            allowed = quote(",".join(_FORMATS))
            yield f"invalid audit log format {options.audit_log_format}, allowed formats are {allowed}"
        for name in ("maxage", "maxbackup", "maxsize"):
            value = getattr(options, f"audit_log_{name}")
            if value < 0:
                yield f"--audit-log-{name} {value} can't be a negative number"
    if options.audit_webhook_config_file:
        yield from _backend_errors(backend_options(options, "webhook"))


def _backend_errors(options: BackendOptions) -> Iterator[str]:
    batching = next(_batching_errors(options), "")
    if batching:
        yield batching
    event, batch = options.truncate_max_event_size, options.truncate_max_batch_size
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


def _batching_errors(options: BackendOptions) -> Iterator[str]:
    plugin = options.plugin
    if options.mode not in _MODES:
        yield f"invalid audit {plugin} mode {options.mode}, allowed modes are {quote(','.join(_MODES))}"
    if options.mode != BATCH:
        return
    if options.batch_buffer_size <= 0:
        yield f"invalid audit batch {plugin} buffer size {options.batch_buffer_size}, must be a positive number"
    if options.batch_max_size <= 0:
        yield f"invalid audit batch {plugin} max batch size {options.batch_max_size}, must be a positive number"
    if options.batch_throttle_enable and options.batch_throttle_qps <= 0:
        yield f"invalid audit batch {plugin} throttle QPS {options.batch_throttle_qps:g}, must be a positive number"
    if options.batch_throttle_enable and options.batch_throttle_burst <= 0:
        yield f"invalid audit batch {plugin} throttle burst {options.batch_throttle_burst}, must be a positive number"
