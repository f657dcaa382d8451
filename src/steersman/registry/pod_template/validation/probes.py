"""Probes and lifecycle hooks of containers, and the actions both take."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Final

from steersman.api.core import v1 as core
from steersman.machinery.errors.field import FieldError, Path, forbidden, invalid, not_supported, required
from steersman.machinery.validation.formats import is_http_header_name
from steersman.registry.pod_template.validation.paths import validate_nonnegative, validate_port_number_or_name

SCHEMES: Final = ("HTTP", "HTTPS")

_ONE_HANDLER_ONLY: Final = "may not specify more than 1 handler type"
_WINDOWS_SIGNALS: Final = ("SIGKILL", "SIGTERM")
_PLAIN_SIGNALS: Final = (
    "ABRT", "ALRM", "BUS", "CHLD", "CLD", "CONT", "FPE", "HUP", "ILL", "INT", "IO", "IOT", "KILL", "PIPE", "POLL",
    "PROF", "PWR", "QUIT", "RTMAX", "RTMIN", "SEGV", "STKFLT", "STOP", "SYS", "TERM", "TRAP", "TSTP", "TTIN", "TTOU",
    "URG", "USR1", "USR2", "VTALRM", "WINCH", "XCPU", "XFSZ",
)  # fmt: skip
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
    """Liveness, readiness and startup probes."""
    for probe, name in ((container.liveness_probe, "livenessProbe"), (container.readiness_probe, "readinessProbe"),
                        (container.startup_probe, "startupProbe")):  # fmt: skip
        if probe is None:
            continue
        here = path / name
        yield from _validate_probe(probe, grace_period, here)
        if name != "readinessProbe":
            if probe.success_threshold != 1:
                yield invalid(here / "successThreshold", probe.success_threshold, "must be 1")
        elif probe.termination_grace_period_seconds is not None:
            yield invalid(
                here / "terminationGracePeriodSeconds",
                probe.termination_grace_period_seconds,
                "must not be set for readinessProbes",
            )


def _validate_probe(probe: core.Probe, grace_period: int | None, path: Path) -> Iterator[FieldError]:
    yield from _validate_handler(probe, grace_period, path)
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
    """What happens after a container starts and before it stops."""
    if lifecycle.post_start is not None:
        yield from _validate_handler(lifecycle.post_start, grace_period, path / "postStart")
    if lifecycle.pre_stop is not None:
        yield from _validate_handler(lifecycle.pre_stop, grace_period, path / "preStop")
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
    handler: core.Probe | core.LifecycleHandler, grace_period: int | None, path: Path
) -> Iterator[FieldError]:
    """Exactly one action."""
    found = False
    for attribute, name in (("exec", "exec"), ("http_get", "httpGet"), ("tcp_socket", "tcpSocket"),
                            ("grpc", "grpc"), ("sleep", "sleep")):  # fmt: skip
        action = getattr(handler, attribute, None)
        if action is None:
            continue
        if found:
            yield forbidden(path / name, _ONE_HANDLER_ONLY)
        else:
            found = True
            yield from _validate_action(action, grace_period, path / name)
    if not found:
        yield required(path, "must specify a handler type")


_Action = core.ExecAction | core.HTTPGetAction | core.TCPSocketAction | core.GRPCAction | core.SleepAction


def _validate_action(action: _Action, grace_period: int | None, path: Path) -> Iterator[FieldError]:
    match action:
        case core.ExecAction():
            if not action.command:
                yield required(path / "command")
        case core.HTTPGetAction():
            yield from _validate_http_get(action, path)
        case core.TCPSocketAction() | core.GRPCAction():
            yield from validate_port_number_or_name(action.port, path / "port")
        case core.SleepAction():
            if grace_period is not None and not 0 <= action.seconds <= grace_period:
                text = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_period})"
                yield invalid(path, action.seconds, text)


def _validate_http_get(action: core.HTTPGetAction, path: Path) -> Iterator[FieldError]:
    if not action.path:
        yield required(path / "path")
    yield from validate_port_number_or_name(action.port, path / "port")
    if action.scheme not in SCHEMES:
        yield not_supported(path / "scheme", action.scheme, SCHEMES)
    for header in action.http_headers:
        for message in is_http_header_name(header.name):
            yield invalid(path / "httpHeaders", header.name, message)
