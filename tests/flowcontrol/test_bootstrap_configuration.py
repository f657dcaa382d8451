"""The default configuration of every cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steersman.flowcontrol.bootstrap_configuration import mandatory, suggested
from steersman.kinds.kind import Kind
from steersman.registry.flowcontrol.flowschemas import FLOW_SCHEMAS
from steersman.registry.flowcontrol.prioritylevelconfigurations import PRIORITY_LEVEL_CONFIGURATIONS


def test_what_is_shipped_has_all_its_defaults() -> None:
    for levels, schemas in (mandatory(), suggested()):
        of_kinds: tuple[tuple[Kind[Any], Sequence[Any]], ...] = (
            (PRIORITY_LEVEL_CONFIGURATIONS.kind, levels),
            (FLOW_SCHEMAS.kind, schemas),
        )
        for kind, objects in of_kinds:
            assert isinstance(kind, Kind)
            for each in objects:
                before = kind.copy(each)
                kind.default(each)
                assert each == before


def test_every_schema_leads_to_a_level_that_is_shipped() -> None:
    names = {each.metadata.name for levels, _ in (mandatory(), suggested()) for each in levels}
    schemas = [each for _, schemas in (mandatory(), suggested()) for each in schemas]
    assert {each.spec.priority_level_configuration.name for each in schemas} <= names
    assert len(schemas) == 11
