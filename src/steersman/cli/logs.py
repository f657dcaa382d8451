"""Logging of the commands: text or JSON lines, and the lines at start and end."""

from __future__ import annotations

import logging
import os
import sys
import traceback
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

import steersman
from steersman.cli.durations import in_words
from steersman.machinery.go.escaping import escaped
from steersman.machinery.go.urls import redacted_url
from steersman.net.log_levels import NOTICE
from steersman.work.patterns import late_pattern

if TYPE_CHECKING:
    from pathlib import Path

    from steersman.controlplane.options import Options

TEXT: Final = "text"
JSON: Final = "json"
logger = logging.getLogger("steersman.serve")

_V_OF_INFO: Final = 2
_V_OF_DEBUG: Final = 6
_CONTROL: Final = late_pattern("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_CONTROL_IN_LINES: Final = late_pattern("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
_LONGEST: Final = 32 << 10
"""Limit of a message and of an error text in characters, before control characters are escaped."""
_SHOWN_APART: Final = ("data-dir", "storage", "etcd-servers")
"""Flags that the start line shows under other names, or always."""


def configure_logging(verbosity: int, logging_format: str = TEXT, worker: int = 0) -> None:
    """Send log records to the standard error. `worker` is the number of this worker process, or 0."""
    from steersman.server.debug_paths import log_level

    root = logging.getLogger()
    if root.handlers:  # the program has configured logging itself
        return
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter(worker) if logging_format == JSON else TextFormatter(worker))
    handler.addFilter(_is_ours_or_a_warning)
    root.addHandler(handler)
    root.setLevel(log_level(verbosity))


def _is_ours_or_a_warning(record: logging.LogRecord) -> bool:
    """Return True for our own records and for warnings; lower records of other packages may contain secrets."""
    return record.levelno >= logging.WARNING or record.name.partition(".")[0] == "steersman"


class CommandFailed(Exception):
    """Reason why the server does not start or go on; not a bug, so it is logged without a traceback."""


class TextFormatter(logging.Formatter):
    """Formatter of text lines: first letter of the severity, time, logger, message."""

    def __init__(self, worker: int) -> None:
        who = f"worker {worker} " if worker else ""
        super().__init__(f"%(severity)s %(asctime)s {who}%(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        record.severity = _severity(record.levelno)
        return super().format(record)

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Format a message on one line with control characters escaped.

        Text from clients and other servers could otherwise forge lines or send escape codes to a terminal.
        """
        return escaped(_bounded(super().formatMessage(record)), _CONTROL, _as_escape)

    def formatException(self, ei: Any) -> str:
        """Format an error with escape codes escaped and lines indented, so that no line looks like a record."""
        return escaped(_bounded(super().formatException(ei)), _CONTROL_IN_LINES, _as_escape).replace("\n", "\n  ")


def _bounded(text: str) -> str:
    """Truncate a long text: answers of other servers may be megabytes long, and repeat with every request."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(text)} characters)"


def _as_escape(char: str) -> str:
    return repr(char)[1:-1]


def _severity(level: int) -> str:
    if level >= logging.ERROR:
        return "E"
    if level >= logging.WARNING:
        return "W"
    return "I" if level >= logging.INFO else "D"


class JsonFormatter(logging.Formatter):
    """Formatter of JSON lines in kube-apiserver's form (component-base `logs/json`).

    Members are `ts` in milliseconds, `caller`, `msg`, `v` unless it is an error or warning, and `err` for an exception.
    Our additions are `logger`, `stacktrace` and `worker`.
    """

    def __init__(self, worker: int) -> None:
        super().__init__()
        self._worker = worker

    def format(self, record: logging.LogRecord) -> str:
        folder, file = os.path.split(record.pathname)
        line: dict[str, Any] = {
            "ts": round(record.created * 1000, 4),
            "logger": record.name,
            "caller": f"{os.path.basename(folder)}/{file}:{record.lineno}",
            "msg": _valid(record.getMessage()),
        }
        if record.levelno < logging.WARNING:
            line["v"] = _verbosity(record.levelno)
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            if isinstance(error, CommandFailed):
                line["err"] = _valid(str(error))
            else:
                line["err"] = _valid(f"{type(error).__name__}: {error}")
                line["stacktrace"] = _valid("".join(traceback.format_exception(error)))
        if self._worker:
            line["worker"] = self._worker
        return msgspec.json.encode(line).decode()


def _verbosity(level: int) -> int:
    """Return the lowest -v at which records of a level are logged."""
    if level >= NOTICE:
        return 0
    return _V_OF_INFO if level >= logging.INFO else _V_OF_DEBUG


def _valid(text: str) -> str:
    """Truncate a long text, and replace surrogates, which are invalid in UTF-8."""
    return _bounded(text).encode("utf-8", "replace").decode()


def log_start(options: Options, url: str, seconds: float, usual: Mapping[str, str], own: Mapping[str, str]) -> None:
    """Log one line about a server that is ready: version, address, folder, storage, and flags that differ from
    defaults.

    `usual` are the command's defaults that differ from those of Options. `own` are the command's own flags with values.
    """
    from steersman.server.version import MAJOR, MINOR, PATCH

    flags = [*(f"--{name}={value}" for name, value in own.items()), *flags_that_differ(options, usual)]
    logger.log(
        NOTICE,
        "steersman %s (Kubernetes v%s.%s.%s, Python %s) serves on %s, ready after %.1f s: process=%d folder=%s "
        "storage=%s flags=[%s]",
        steersman.__version__,
        MAJOR,
        MINOR,
        PATCH,
        sys.version.split(" ", 1)[0],
        url,
        seconds,
        os.getpid(),
        options.data_dir,
        storage_of(options),
        " ".join(flags),
    )


def log_work(kubeconfig: Path, url: str) -> None:
    """Log one line when controllers or a scheduler start to work on another server."""
    logger.log(
        NOTICE,
        "steersman %s (Python %s) works on %s: process=%d kubeconfig=%s",
        steersman.__version__,
        sys.version.split(" ", 1)[0],
        url,
        os.getpid(),
        kubeconfig,
    )


def storage_of(options: Options) -> str:
    """Return `sqlite`, `memory`, or the addresses of etcd's members."""
    return ",".join(map(redacted_url, options.etcd_servers)) or options.storage


def flags_that_differ(options: Options, defaults: Mapping[str, str]) -> list[str]:
    """Return the flags that differ from their defaults as command line arguments, with secrets in URLs removed.

    `defaults` are the command's defaults that differ from those of Options.
    """
    from steersman.controlplane.options import Options

    usual = {**Options(data_dir=options.data_dir).as_flags(), **defaults}
    return [
        f"--{name}={','.join(map(redacted_url, value.split(','))) if '://' in value else value}"
        for name, value in options.as_flags().items()
        if value != usual[name] and name not in _SHOWN_APART
    ]


def log_failure(why: str) -> None:
    """Log that the server cannot start or go on, in kube-apiserver's wording."""
    logger.error("command failed", exc_info=CommandFailed(why))


def log_ending(why: str) -> None:
    """Log that the server is stopping, and why."""
    logger.log(NOTICE, "%s", why)


def log_end(seconds: float) -> None:
    """Log the end of the server, and its time of service in seconds."""
    logger.log(NOTICE, "ended, after %s", in_words(seconds))
