"""AlwaysDeny: an admission plugin that refuses every write."""

from __future__ import annotations

from typing import Final

from steersman.admission.interface import CONNECT, CREATE, DELETE, UPDATE, Attributes, Plugin
from steersman.admission_plugins.declaration import Declaration


class AlwaysDeny(Plugin):
    """Refuses every write. It is the last in the chain, so that other plugins may refuse or act first."""

    name = "AlwaysDeny"
    operations = frozenset({CREATE, UPDATE, DELETE, CONNECT})
    mutates = True
    changed_fields = ()
    validates = True

    async def admit(self, attributes: Attributes) -> None:
        await self.validate(attributes)

    async def validate(self, attributes: Attributes) -> None:
        raise attributes.forbid("admission control is denying all modifications")


ALWAYS_DENY: Final = Declaration(AlwaysDeny, on_by_default=False)
