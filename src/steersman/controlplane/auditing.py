"""The audit trail of a control plane, built from its flags (k8s.io/apiserver `server/options` AuditOptions)."""

from __future__ import annotations

import logging
from concurrent.futures import Executor
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from steersman.audit.backends.backend import Backend, IgnoringErrors, Union
from steersman.audit.backends.buffered import Batching, Buffered, QueuedLog
from steersman.audit.backends.log import Lines, LogBackend, StandardOutput, as_json, as_text
from steersman.audit.backends.rotation import Limits, LogFile
from steersman.audit.backends.shared_log import SharedLogFile
from steersman.audit.backends.truncation import Sizes, Truncating
from steersman.audit.backends.webhook import WebhookBackend
from steersman.audit.errors import Errors
from steersman.audit.metrics import AuditMetrics
from steersman.audit.policy import Rules
from steersman.audit.policy_file import PolicyError, load_policy
from steersman.audit.trail import Auditor
from steersman.controlplane.audit_options import (
    BATCH,
    BLOCKING,
    AuditOptions,
    BackendOptions,
    backend_options,
    option_errors,
    webhook_backoff,
)
from steersman.controlplane.options import OptionsError
from steersman.net.client.egress import USUAL, Egress
from steersman.webhooks.client import WebhookClient
from steersman.webhooks.kubeconfig import KubeconfigError, load_kubeconfig

logger = logging.getLogger(__name__)

_USER_AGENT: Final = "Go-http-client/1.1"
"""Upstream's user agent: its client for this webhook has no name of its own."""


def audit_rules(options: AuditOptions) -> Rules | None:
    """Return the rules of the policy file, None without one. Raises OptionsError, also for invalid options."""
    if wrong := list(option_errors(options)):
        raise OptionsError(wrong[0] if len(wrong) == 1 else f"[{', '.join(wrong)}]")
    if not options.audit_policy_file:
        return None
    try:
        return Rules(load_policy(Path(options.audit_policy_file)))
    except PolicyError as error:
        raise OptionsError(f"loading audit policy file: {error}") from None


def auditor(
    options: AuditOptions,
    rules: Rules | None,
    metrics: AuditMetrics,
    executor: Executor,
    egress: Egress = USUAL,
    lock: int | None = None,
) -> Auditor | None:
    """Return the auditor, or None without a policy or a backend. Raises OptionsError and OSError.

    `lock` is the descriptor of a lock file for processes that share one log.
    """
    errors = Errors(metrics)
    lines = _lines(options, executor, lock)
    for name, given in (("log", lines), ("webhook", options.audit_webhook_config_file)):
        if given and rules is None:
            logger.info("No audit policy file provided, no events will be recorded for %s backend", name)
    if rules is None:
        return None
    backends: list[Backend] = []
    endpoint = None
    if options.audit_webhook_config_file:
        try:
            endpoint = replace(load_kubeconfig(Path(options.audit_webhook_config_file)), leave=egress.control_plane)
        except KubeconfigError as error:
            raise OptionsError(f"initializing audit webhook: {error}") from None
    if lines is not None:
        render = as_text if options.audit_log_format == "legacy" else as_json
        backends.append(_wrapped(LogBackend(lines, render, errors), backend_options(options, "log"), errors))
    if endpoint is not None:
        client = WebhookClient(endpoint, webhook_backoff(options), user_agent=_USER_AGENT, only_delivers=True)
        backends.append(_wrapped(WebhookBackend(client, errors), backend_options(options, "webhook"), errors))
    if not backends:
        return None
    return Auditor(rules, backends[0] if len(backends) == 1 else Union(backends), metrics)


def _lines(options: AuditOptions, executor: Executor, lock: int | None) -> Lines | None:
    """Return the writer of the log, None without one. The file is created at once, even without a policy."""
    path = options.audit_log_path
    if not path:
        return None
    if path == "-":
        return StandardOutput()
    limits = Limits(
        size=options.audit_log_maxsize,
        age=options.audit_log_maxage,
        backups=options.audit_log_maxbackup,
        compress=options.audit_log_compress,
    )
    try:
        if lock is not None:
            return SharedLogFile(Path(path), limits, executor.submit, lock)
        return LogFile(Path(path), limits, executor.submit)
    except OSError as error:
        raise OptionsError(f"ensureLogFile: {error.filename or path}: {error.strerror}") from None


def _wrapped(backend: Backend, options: BackendOptions, errors: Errors) -> Backend:
    """Wrap a backend for its mode (blocking, batch) and its limits of event size."""
    if options.mode == BLOCKING:
        backend = IgnoringErrors(backend, in_order=isinstance(backend, LogBackend))
    elif options.mode == BATCH:
        backend = _batched(backend, options, errors)
    if options.truncate_enabled:
        backend = Truncating(backend, Sizes(options.truncate_max_event_size, options.truncate_max_batch_size), errors)
    return backend


def _batched(backend: Backend, options: BackendOptions, errors: Errors) -> Backend:
    if isinstance(backend, LogBackend) and options.batch_max_size == 1 and not options.batch_throttle_enable:
        return QueuedLog(backend, options.batch_buffer_size, errors)
    batching = Batching(
        buffer_size=options.batch_buffer_size,
        max_size=options.batch_max_size,
        max_wait=options.batch_max_wait,
        throttle=options.batch_throttle_enable,
        qps=options.batch_throttle_qps,
        burst=options.batch_throttle_burst,
        side_by_side=not isinstance(backend, LogBackend),
    )
    return Buffered(backend, batching, errors)
