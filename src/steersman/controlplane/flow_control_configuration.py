"""The built-in flow schemas and priority levels, corresponding to upstream's config producer.

Mandatory objects are restored after any change. Suggested objects are recreated, and updated as long as nobody has
changed them, which an annotation records. Unchanged objects of older versions that are no longer shipped are deleted.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from msgspec.structs import replace

from steersman.api.flowcontrol.v1 import FlowSchema, PriorityLevelConfiguration
from steersman.controlplane.flow_control import GROUP, LEVELS, SCHEMAS
from steersman.controlplane.initial_objects import ObjectsOf, all_of, remove
from steersman.controlplane.objects import StoreObjects
from steersman.flowcontrol.bootstrap_configuration import AUTO_UPDATE, mandatory, suggested
from steersman.flowcontrol.level import EXEMPT
from steersman.machinery.errors.status import StatusError
from steersman.rest.context import loopback
from steersman.rest.objects import Reading

logger = logging.getLogger(__name__)

HOOK: Final = "priority-and-fairness-config-producer"
MANAGER: Final = "api-priority-and-fairness-config-producer-v1"
INTERVAL: Final = 60.0
"""Seconds between two checks."""
_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "false", "FALSE", "False"})

_Configuration = FlowSchema | PriorityLevelConfiguration

_NAME_AND_MARK: Final[Reading[tuple[str, bool]]] = Reading(
    lambda each: (each.metadata.name, each.metadata.annotations.get(AUTO_UPDATE, "") in _TRUE),
    "metadata.name",
    "metadata.annotations",
)


class FlowControlConfiguration:
    """Maintenance of the built-in objects; each call of `ensure` restores them."""

    def __init__(self, objects: ObjectsOf) -> None:
        self._objects = objects

    async def ensure(self) -> None:
        """Create, correct and delete built-in objects. Raises StatusError; the next call continues after a failure."""
        for find, is_mandatory in ((suggested, False), (mandatory, True)):
            levels, schemas = find()
            await self._ensure(LEVELS, levels, is_mandatory=is_mandatory)
            await self._ensure(SCHEMAS, schemas, is_mandatory=is_mandatory)
        await self._remove_unwanted()

    async def _ensure(
        self, plural: str, wanted: list[FlowSchema] | list[PriorityLevelConfiguration], *, is_mandatory: bool
    ) -> None:
        objects = self._objects(GROUP, plural)
        await all_of(_ensure_one(objects, each, is_mandatory=is_mandatory) for each in wanted)

    async def _remove_unwanted(self) -> None:
        (levels, schemas), (more_levels, more_schemas) = mandatory(), suggested()
        for plural, ours in ((SCHEMAS, schemas + more_schemas), (LEVELS, levels + more_levels)):
            names = {each.metadata.name for each in ours}
            objects = self._objects(GROUP, plural)
            for name, is_ours in objects.read_all_cached("", _NAME_AND_MARK):
                if is_ours and name not in names:
                    await remove(objects, name)


async def _ensure_one(objects: StoreObjects, wanted: _Configuration, *, is_mandatory: bool) -> None:
    name = wanted.metadata.name
    current: _Configuration | None = await objects.get_cached("", name)
    if current is None:
        try:
            await objects.create(loopback(), wanted, manager=MANAGER)
        except StatusError as error:
            if error.reason != "AlreadyExists":
                raise
        return
    if revised(current, wanted, is_mandatory=is_mandatory) is None:
        return

    def change(old: _Configuration) -> _Configuration:
        return revised(old, wanted, is_mandatory=is_mandatory) or old

    await objects.update(loopback(name=name), name, change, manager=MANAGER)


def revised(current: _Configuration, wanted: _Configuration, *, is_mandatory: bool) -> Any | None:
    """Return the corrected version of a built-in object, None if it stays as it is.

    The spec of a suggested object is corrected if its annotation permits it, or without an annotation if its generation
    is 1.
    """
    corrects = is_mandatory or _corrects(current)
    mark = "true" if corrects else "false"
    annotations = current.metadata.annotations
    marked = annotations.get(AUTO_UPDATE, "")
    is_marked = marked in (_TRUE if corrects else _FALSE)
    is_changed = corrects and not _is_alike(wanted, current)
    if is_marked and not is_changed:
        return None
    metadata = current.metadata
    if not is_marked:
        metadata = replace(metadata, annotations={**annotations, AUTO_UPDATE: mark})
    return replace(current, metadata=metadata, spec=wanted.spec if is_changed else current.spec)


def _corrects(current: _Configuration) -> bool:
    marked = current.metadata.annotations.get(AUTO_UPDATE, "")
    if marked in _TRUE or marked in _FALSE:
        return marked in _TRUE
    return current.metadata.generation == 1


def _is_alike(wanted: _Configuration, current: _Configuration) -> bool:
    """Return True if the specs are equal; users may choose the seats of the exempt level."""
    if isinstance(wanted, PriorityLevelConfiguration) and wanted.metadata.name == EXEMPT:
        assert isinstance(current, PriorityLevelConfiguration)
        exempt = current.spec.exempt
        return exempt is not None and replace(wanted.spec, exempt=exempt) == current.spec
    return wanted.spec == current.spec
