"""Validation of the probes and lifecycle hooks of containers, and of the actions of both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import Any, Final

from steersman.api.core import v1 as core
from steersman.machinery.errors.field import FieldError, Path, forbidden, invalid, not_supported, required
from steersman.machinery.validation.formats import is_http_header_name, is_valid_port_number_or_name
from steersman.machinery.validation.leaves import validate_nonnegative
from steersman.registry.pod_template.validation.paths import validate_port_number_or_name

SCHEMES: Final = ("HTTP", "HTTPS")

_NOT_ONCE: Final = "must be 1"
_ONE_HANDLER_ONLY: Final = "may not specify more than 1 handler type"
_WINDOWS_SIGNALS: Final = ("SIGKILL", "SIGTERM")
_PLAIN_SIGNALS: Final = (
    "ABRT",
    "ALRM",
    "BUS",
    "CHLD",
    "CLD",
    "CONT",
    "FPE",
    "HUP",
    "ILL",
    "INT",
    "IO",
    "IOT",
    "KILL",
    "PIPE",
    "POLL",
    "PROF",
    "PWR",
    "QUIT",
    "RTMAX",
    "RTMIN",
    "SEGV",
    "STKFLT",
    "STOP",
    "SYS",
    "TERM",
    "TRAP",
    "TSTP",
    "TTIN",
    "TTOU",
    "URG",
    "USR1",
    "USR2",
    "VTALRM",
    "WINCH",
    "XCPU",
    "XFSZ",
)
_LINUX_SIGNALS: Final = tuple(
    sorted(
        [f"SIG{name}" for name in _PLAIN_SIGNALS]
        + [f"SIGRTMIN+{number}" for number in range(1, 16)]
        + [f"SIGRTMAX-{number}" for number in range(1, 15)]
    )
)


_NUMBERS: Final = {
    "initial_delay_seconds": "initialDelaySeconds",
    "timeout_seconds": "timeoutSeconds",
    "period_seconds": "periodSeconds",
    "success_threshold": "successThreshold",
    "failure_threshold": "failureThreshold",
}
_numbers: Final = attrgetter(*_NUMBERS)


def validate_probes(container: core.Container, grace_period: int | None, path: Path) -> Iterator[FieldError]:
    """Validate liveness, readiness and startup probes."""
    if (probe := container.liveness_probe) is not None:
        yield from _validate_probe(probe, grace_period, path / "livenessProbe")
        if probe.success_threshold != 1:
            yield invalid(path.child("livenessProbe", "successThreshold"), probe.success_threshold, _NOT_ONCE)
    if (probe := container.readiness_probe) is not None:
        yield from _validate_probe(probe, grace_period, path / "readinessProbe")
        if (period := probe.termination_grace_period_seconds) is not None:
            here = path.child("readinessProbe", "terminationGracePeriodSeconds")
            yield invalid(here, period, "must not be set for readinessProbes")
    if (probe := container.startup_probe) is not None:
        yield from _validate_probe(probe, grace_period, path / "startupProbe")
        if probe.success_threshold != 1:
            yield invalid(path.child("startupProbe", "successThreshold"), probe.success_threshold, _NOT_ONCE)


def _validate_probe(probe: core.Probe, grace_period: int | None, path: Path) -> Iterator[FieldError]:
    yield from _validate_handler(probe, _PROBE_ACTIONS, grace_period, path)
    numbers = _numbers(probe)
    if min(numbers) < 0:
        for number, name in zip(numbers, _NUMBERS.values(), strict=True):
            yield from validate_nonnegative(number, path / name)
    period = probe.termination_grace_period_seconds
    if period is not None and period <= 0:
        yield invalid(path / "terminationGracePeriodSeconds", period, "must be greater than 0")


def validate_lifecycle(
    lifecycle: core.Lifecycle, grace_period: int | None, path: Path, os: core.PodOS | None
) -> Iterator[FieldError]:
    """Validate the hooks after the start and before the stop of a container, and its stop signal."""
    if lifecycle.post_start is not None:
        yield from _validate_handler(lifecycle.post_start, _HOOK_ACTIONS, grace_period, path / "postStart")
    if lifecycle.pre_stop is not None:
        yield from _validate_handler(lifecycle.pre_stop, _HOOK_ACTIONS, grace_period, path / "preStop")
    if lifecycle.stop_signal is not None:
        yield from _validate_stop_signal(lifecycle.stop_signal, path / "stopSignal", os)


def _validate_stop_signal(signal: str, path: Path, os: core.PodOS | None) -> Iterator[FieldError]:
    if os is None:
        yield forbidden(path, "may not be set for containers with empty `spec.os.name`")
        return
    signals = {"windows": _WINDOWS_SIGNALS, "linux": _LINUX_SIGNALS}.get(os.name)
    if signals is not None and signal not in signals:
        yield not_supported(path, signal, signals)


def _validate_handler(
    handler: core.Probe | core.LifecycleHandler, actions: _Actions, grace_period: int | None, path: Path
) -> Iterator[FieldError]:
    """Validate that there is exactly one action, and the first action."""
    found = False
    for attribute, name, validate in actions:
        if (action := getattr(handler, attribute)) is None:
            continue
        if found:
            yield forbidden(path / name, _ONE_HANDLER_ONLY)
        else:
            found = True
            yield from validate(action, grace_period, path / name)
    if not found:
        yield required(path, "must specify a handler type")


def _validate_exec(action: core.ExecAction, grace_period: int | None, path: Path) -> Iterator[FieldError]:
    if not action.command:
        yield required(path / "command")


def _validate_http_get(action: core.HTTPGetAction, grace_period: int | None, path: Path) -> Iterator[FieldError]:
    if not action.path:
        yield required(path / "path")
    for message in is_valid_port_number_or_name(action.port):
        yield invalid(path / "port", action.port, message)
    if action.scheme not in SCHEMES:
        yield not_supported(path / "scheme", action.scheme, SCHEMES)
    for header in action.http_headers:
        for message in is_http_header_name(header.name):
            yield invalid(path / "httpHeaders", header.name, message)


def _validate_port(
    action: core.TCPSocketAction | core.GRPCAction, grace_period: int | None, path: Path
) -> Iterable[FieldError]:
    return validate_port_number_or_name(action.port, path / "port")


def _validate_sleep(action: core.SleepAction, grace_period: int | None, path: Path) -> Iterator[FieldError]:
    if grace_period is not None and not 0 <= action.seconds <= grace_period:
        text = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_period})"
        yield invalid(path, action.seconds, text)


_Actions = tuple[tuple[str, str, Callable[[Any, int | None, Path], Iterable[FieldError]]], ...]
"""Attribute, name in paths, and rule of each action."""

_BOTH_HAVE: Final[_Actions] = (
    ("exec", "exec", _validate_exec),
    ("http_get", "httpGet", _validate_http_get),
    ("tcp_socket", "tcpSocket", _validate_port),
)
_PROBE_ACTIONS: Final[_Actions] = (*_BOTH_HAVE, ("grpc", "grpc", _validate_port))
_HOOK_ACTIONS: Final[_Actions] = (*_BOTH_HAVE, ("sleep", "sleep", _validate_sleep))
