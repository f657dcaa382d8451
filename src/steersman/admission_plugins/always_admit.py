"""AlwaysAdmit: refuses nothing, as if it were not there."""

from __future__ import annotations

from typing import Final

from steersman.admission.interface import Plugin
from steersman.admission_plugins.declaration import Declaration


class AlwaysAdmit(Plugin):
    """Handles no operation: there is nothing to ask it."""

    name = "AlwaysAdmit"


ALWAYS_ADMIT: Final = Declaration(AlwaysAdmit, on_by_default=False)
