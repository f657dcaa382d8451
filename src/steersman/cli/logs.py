"""Log of the commands that serve: its lines of text or JSON, and the lines at its start and end."""

from __future__ import annotations

import logging
import os
import re
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

if TYPE_CHECKING:
    from pathlib import Path

    from steersman.controlplane.options import Options

TEXT: Final = "text"
JSON: Final = "json"
logger = logging.getLogger("steersman.serve")

_V_OF_INFO: Final = 2
_V_OF_DEBUG: Final = 6
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_CONTROL_IN_LINES: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
_LONGEST: Final = 32 << 10
"""Characters of a message, and of the text of an error, before control characters are escaped."""
_SHOWN_APART: Final = ("data-dir", "storage", "etcd-servers")
"""Flags that the line at the start tells under other names, or in any case."""


def configure_logging(verbosity: int, logging_format: str = TEXT, worker: int = 0) -> None:
    """Send log records to the standard error. `worker` is the number of the worker that this process is, if it is."""
    from steersman.server.debug_paths import log_level

    root = logging.getLogger()
    if root.handlers:  # a program that has configured logging before has its own way
        return
    handler = logging.StreamHandler()
    handler.setFormatter(_JsonFormatter(worker) if logging_format == JSON else _TextFormatter(worker))
    handler.addFilter(_is_ours_or_a_warning)
    root.addHandler(handler)
    root.setLevel(log_level(verbosity))


def _is_ours_or_a_warning(record: logging.LogRecord) -> bool:
    """Keep out records that packages log for those who look into them, at any -v: they may hold what passes through."""
    return record.levelno >= logging.WARNING or record.name.partition(".")[0] == "steersman"


class CommandFailed(Exception):
    """A reason for which the server does not start, or does not go on; no fault of the program, so without a trace."""


class _TextFormatter(logging.Formatter):
    """Lines of text: the first letter of the severity, time, logger, message."""

    def __init__(self, worker: int) -> None:
        who = f"worker {worker} " if worker else ""
        super().__init__(f"%(severity)s %(asctime)s {who}%(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        record.severity = _severity(record.levelno)
        return super().format(record)

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Keep a message on its line: what clients and other servers have sent may be in it, and could else make lines
        of its own, or write escape codes to a terminal."""
        return escaped(_bounded(super().formatMessage(record)), _CONTROL, _as_escape)

    def formatException(self, ei: Any) -> str:
        """Keep escape codes out of the lines of an error, and begin each line so that none looks like a record."""
        return escaped(_bounded(super().formatException(ei)), _CONTROL_IN_LINES, _as_escape).replace("\n", "\n  ")


def _bounded(text: str) -> str:
    """Cut off a long text: what other servers answer may be megabytes, and may come with every request."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(text)} characters)"


def _as_escape(char: str) -> str:
    return repr(char)[1:-1]


def _severity(level: int) -> str:
    if level >= logging.ERROR:
        return "E"
    if level >= logging.WARNING:
        return "W"
    return "I" if level >= logging.INFO else "D"


class _JsonFormatter(logging.Formatter):
    """Lines of JSON in kube-apiserver's form (component-base `logs/json`): `ts` in milliseconds, `caller`, `msg`, `v`
    of what is no error or warning, `err` of an exception. `logger`, `stacktrace` and `worker` are added here."""

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
    """Return the -v from which records of a level are logged."""
    if level >= NOTICE:
        return 0
    return _V_OF_INFO if level >= logging.INFO else _V_OF_DEBUG


def _valid(text: str) -> str:
    """Cut off a long text, and replace surrogates, which no UTF-8 has."""
    return _bounded(text).encode("utf-8", "replace").decode()


def log_start(options: Options, url: str, seconds: float, usual: Mapping[str, str], own: Mapping[str, str]) -> None:
    """Log one line about a server that is ready: version, address, folder, storage, flags that differ from defaults.

    `usual` are defaults of the command that are not those of Options, `own` flags of the command that Options has not.
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
    """Log one line about controllers, or a scheduler, that begin to work on a server elsewhere."""
    logger.log(
        NOTICE,
        "steersman %s (Python %s) begins to work on %s: process=%d kubeconfig=%s",
        steersman.__version__,
        sys.version.split(" ", 1)[0],
        url,
        os.getpid(),
        kubeconfig,
    )


def storage_of(options: Options) -> str:
    """Return `sqlite`, `memory`, or the addresses of the members of etcd."""
    return ",".join(map(redacted_url, options.etcd_servers)) or options.storage


def flags_that_differ(options: Options, defaults: Mapping[str, str]) -> list[str]:
    """Return the flags whose values are not the defaults, as a command line has them. `defaults` are those that are
    others than the defaults of Options. Of URLs, what may be secret is left out."""
    from steersman.controlplane.options import Options

    usual = {**Options(data_dir=options.data_dir).as_flags(), **defaults}
    return [
        f"--{name}={','.join(map(redacted_url, value.split(','))) if '://' in value else value}"
        for name, value in options.as_flags().items()
        if value != usual[name] and name not in _SHOWN_APART
    ]


def log_failure(why: str) -> None:
    """Log that the server cannot start, or cannot go on, in kube-apiserver's words."""
    logger.error("command failed", exc_info=CommandFailed(why))


def log_ending(why: str) -> None:
    """Log that the server begins to end, and why."""
    logger.log(NOTICE, "%s", why)


def log_end(seconds: float) -> None:
    """Log the orderly end, after these seconds of service."""
    logger.log(NOTICE, "ended, after %s", in_words(seconds))
