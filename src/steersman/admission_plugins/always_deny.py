"""AlwaysDeny: refuses every write."""

from __future__ import annotations

from steersman.admission.interface import CONNECT, CREATE, DELETE, UPDATE, Attributes, Plugin


class AlwaysDeny(Plugin):
    """The last in the chain: plugins before it may refuse with other words, or with effects of their own."""

    name = "AlwaysDeny"
    operations = frozenset({CREATE, UPDATE, DELETE, CONNECT})
    mutates = True
    validates = True

    async def admit(self, attributes: Attributes) -> None:
        await self.validate(attributes)

    async def validate(self, attributes: Attributes) -> None:
        raise attributes.forbid("admission control is denying all modifications")
