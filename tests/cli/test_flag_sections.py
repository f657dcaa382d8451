"""Sections of flags."""

from __future__ import annotations

import ast
import re
from dataclasses import fields
from pathlib import Path

import pytest

import steersman
from steersman.cli.command import offered
from steersman.controlplane.admission import NOTHING_TO_ADMIT, PLUGINS
from steersman.controlplane.flag_readers import SHOWN
from steersman.controlplane.options import FLAGS, SECTIONS, Options

_QUOTED = re.compile(r"[\"']([\w-]+)[\"']")


def test_every_option_has_one_flag_in_one_section() -> None:
    flags = [flag.option for section in SECTIONS.values() for flag in section.values()]
    assert sorted([*flags, "listen", "anonymous_auth_is_given"]) == sorted(each.name for each in fields(Options))


def test_there_is_one_table_of_flags() -> None:
    """Code may name flags of its own topic, such as those of proxies; no other file lists many."""
    names = {name for name in FLAGS if "-" in name} | {flag.option for flag in FLAGS.values() if "_" in flag.option}
    tables = {}
    for path in (Path(steersman.__file__).parent).rglob("*.py"):
        text = path.read_text()
        if len(names.intersection(_QUOTED.findall(text))) <= 8:  # as parsing takes long
            continue
        constants = {each.value for each in ast.walk(ast.parse(text)) if isinstance(each, ast.Constant)}
        if len(found := {each for each in constants if each in names}) > 8:
            tables[path.name] = found
    assert tables == {}


def test_help_calls_numbers_by_their_types() -> None:
    defaults = {each.name: each.default for each in fields(Options)}
    called = {
        name: SHOWN.get(flag.read, "string")
        for name, flag in FLAGS.items()
        if type(defaults[flag.option]) in (int, float)
    }
    assert {name: word for name, word in called.items() if word not in ("int", "float", "duration")} == {}


@pytest.mark.parametrize("name", [name for name, flag in FLAGS.items() if offered(flag)])
def test_values_that_are_offered_are_taken(name: str) -> None:
    for value in offered(FLAGS[name]):
        FLAGS[name].read(value)


def test_plugins_that_are_offered_are_there() -> None:
    there = {*NOTHING_TO_ADMIT, *(each.name for each in PLUGINS)}
    assert offered(FLAGS["enable-admission-plugins"]) == tuple(sorted(there))
