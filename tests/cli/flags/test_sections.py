"""The flags by section."""

from __future__ import annotations

from dataclasses import fields

import pytest

from steersman.cli.flags import FLAGS, SECTIONS
from steersman.cli.flags.known import ADMISSION_PLUGINS
from steersman.controlplane.admission import NOTHING_TO_ADMIT, PLUGINS
from steersman.controlplane.options import Options


def test_every_option_has_one_flag_in_one_section() -> None:
    flags = [flag.option for section in SECTIONS.values() for flag in section.values()]
    assert sorted(flags) == sorted(each.name for each in fields(Options) if each.name != "listen")


@pytest.mark.parametrize("name", [name for name, flag in FLAGS.items() if flag.values])
def test_values_that_are_offered_are_taken(name: str) -> None:
    for value in FLAGS[name].values:
        FLAGS[name].read(value)


def test_plugins_that_are_offered_are_there() -> None:
    there = {*NOTHING_TO_ADMIT, *(each.name for each in PLUGINS)}
    assert {*ADMISSION_PLUGINS} == there
    assert {*FLAGS["enable-admission-plugins"].values} == there
