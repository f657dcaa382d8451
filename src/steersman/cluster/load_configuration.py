"""Curves, usage and metrics in the configuration file of a cluster."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from steersman.machinery.go.strings import trim_space
from steersman.machinery.private_files import read_bounded
from steersman.machinery.selectors import labels
from steersman.machinery.selectors.labels import SelectorError
from steersman.machinery.suggestions import known_names_hint
from steersman.machinery.values.durations import DurationError, parse_duration
from steersman.machinery.values.quantity import QuantityError, parse
from steersman.nodes.curves import Curve, Interpolation, Point
from steersman.nodes.load import Load, MetricRule, Objects, UsageRule
from steersman.work.patterns import late_pattern

_MOST_BYTES: Final = 4 << 20
"""Bytes of a file of points."""
_MOST_POINTS: Final = 100_000
_TIME: Final = late_pattern(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?", re.ASCII)
_CURVE: Final = late_pattern(r"\bcurves\.([A-Za-z_][A-Za-z0-9_]*)", re.ASCII)
_DIGIT: Final = late_pattern("[0-9]", re.ASCII)
_SECONDS: Final = late_pattern(r"[0-9]{1,9}(?:\.[0-9]{1,6})?", re.ASCII)
_NANO: Final = 10**9


class LoadError(ValueError):
    """The load in a configuration is invalid. The text says what is wrong."""


class CurveEntry(msgspec.Struct, forbid_unknown_fields=True):
    """Curve of the configuration: `points`, or a `file` with them."""

    name: str
    file: str = ""
    """CSV file with a time and a value in each line, or YAML file with a map of these."""
    points: dict[str, str | int | float] = {}
    repeat: str = "24h"
    interpolation: Interpolation = "linear"


class UsageEntry(msgspec.Struct, forbid_unknown_fields=True):
    """Usage of containers of pods."""

    namespace: str = ""
    selector: str = ""
    container: str = ""
    cpu: str | int | float | None = None
    memory: str | int | float | None = None


class MetricEntry(msgspec.Struct, forbid_unknown_fields=True):
    """Custom metric of the objects of a `resource`, or external metric of a namespace without one."""

    name: str
    value: str | int | float
    namespace: str = ""
    resource: str = ""
    selector: str = ""
    labels: dict[str, str] = {}


def load_of(
    curves: Iterable[CurveEntry],
    usage: Iterable[UsageEntry],
    metrics: Iterable[MetricEntry],
    *,
    folder: Path,
    seed: int,
) -> Load:
    """Return the load that a configuration describes; files are relative to `folder`. Raises LoadError."""
    found: dict[str, Curve] = {}
    for entry in curves:
        if entry.name in found:
            raise LoadError(f"two curves are called {entry.name}")
        found[entry.name] = _curve(entry, folder)
    try:
        usage_rules, metric_rules = list(map(_usage_rule, usage)), list(map(_metric_rule, metrics))
        load = Load(found, usage_rules, metric_rules, seed=seed)
        expressions = (text for rule in usage_rules for text in rule.expressions.values())
        for text in (*expressions, *(each.value for each in metric_rules)):
            _check_curves(text, found)
        return load
    except LoadError:
        raise
    except ValueError as error:
        raise LoadError(str(error)) from None


def _check_curves(text: str, known: Mapping[str, Curve]) -> None:
    """Raise LoadError for an expression over a curve that is not among the known ones."""
    for name in _CURVE.findall(text):
        if name not in known:
            raise LoadError(f"{text}: no curve {name!r}{known_names_hint(name, known) if known else ''}")


def _curve(entry: CurveEntry, folder: Path) -> Curve:
    try:
        if bool(entry.points) == bool(entry.file):
            raise LoadError("needs either points or a file")
        points = entry.points or _read(folder / entry.file)
        if len(points) > _MOST_POINTS:
            raise LoadError(f"has more than {_MOST_POINTS} points")
        read = sorted(Point(_seconds(at), _value(value)) for at, value in points.items())
        return Curve(read, parse_duration(entry.repeat) / _NANO, entry.interpolation)
    except OSError as error:
        raise LoadError(f"curve {entry.name}: {folder / entry.file}: {error.strerror or error}") from None
    except (DurationError, ValueError) as error:
        raise LoadError(f"curve {entry.name}: {error}") from None


def _read(path: Path) -> Mapping[str, Any]:
    """Return the values of a file by their times. Raises LoadError, OSError."""
    data = read_bounded(path, _MOST_BYTES)
    if path.suffix == ".csv":
        return _read_csv(path, data)
    from steersman.machinery.codec.yaml_files import YAMLFileError, read_documents

    try:
        found = read_documents(path)
    except YAMLFileError as error:
        raise LoadError(str(error)) from None
    if len(found) != 1 or not isinstance(found[0], dict):
        raise LoadError(f"{path}: needs a map of times to values")
    return {str(key): value for key, value in found[0].items()}


def _read_csv(path: Path, data: bytes) -> Mapping[str, Any]:
    import csv
    import io

    try:
        rows = list(csv.reader(io.StringIO(data.decode("utf-8-sig")), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise LoadError(f"{path}: {error}") from None
    found: dict[str, Any] = {}
    for number, row in enumerate(rows, 1):
        cells = [trim_space(each) for each in row]
        if not any(cells) or cells[0].startswith("#") or (number == 1 and _DIGIT.match(cells[0]) is None):
            continue
        if len(cells) < 2:
            raise LoadError(f"{path}:{number}: needs a time and a value")
        if cells[0] in found:
            raise LoadError(f"{path}:{number}: there are two values at {cells[0]}")
        found[cells[0]] = cells[1]
    return found


def _seconds(text: str) -> float:
    """Return a time of day (`8:30`), a duration (`90m`) or a number of seconds as seconds. Raises LoadError."""
    if match := _TIME.fullmatch(text):
        hours, minutes, seconds = (int(each or 0) for each in match.groups())
        if minutes > 59 or seconds > 59:
            raise LoadError(f"{text} is no time")
        return hours * 3600.0 + minutes * 60.0 + seconds
    if _SECONDS.fullmatch(text):
        return float(text)
    try:
        return parse_duration(text) / _NANO
    except DurationError:
        raise LoadError(f"{text} is no time: 8:30, 90m and 5400 are") from None


def _value(value: Any) -> float:
    try:
        return parse(str(value)).as_float()
    except QuantityError:
        raise LoadError(f"{value} is no number or quantity") from None


def _usage_rule(entry: UsageEntry) -> UsageRule:
    said = {"cpu": entry.cpu, "memory": entry.memory}
    expressions = {name: str(text) for name, text in said.items() if text is not None}
    if not expressions:
        raise LoadError("usage: needs cpu or memory")
    return UsageRule(_objects(entry.namespace, entry.selector, entry.container), expressions)


def _metric_rule(entry: MetricEntry) -> MetricRule:
    if entry.resource and entry.labels:
        raise LoadError(f"metric {entry.name}: only external metrics, which have no resource, have labels")
    if entry.selector and not entry.resource:
        raise LoadError(f"metric {entry.name}: a selector is for objects of a resource")
    return MetricRule(
        entry.name, _objects(entry.namespace, entry.selector), str(entry.value), entry.resource, entry.labels
    )


def _objects(namespace: str, selector: str, container: str = "") -> Objects:
    try:
        return Objects(namespace, labels.parse(selector), container)
    except SelectorError as error:
        raise LoadError(f"selector {selector}: {error}") from None
