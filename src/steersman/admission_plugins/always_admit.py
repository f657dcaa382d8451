"""AlwaysAdmit: an admission plugin without effect."""

from __future__ import annotations

from typing import Final

from steersman.admission.interface import Plugin
from steersman.admission_plugins.declaration import Declaration


class AlwaysAdmit(Plugin):
    """Does nothing: it handles no operation."""

    name = "AlwaysAdmit"


ALWAYS_ADMIT: Final = Declaration(AlwaysAdmit, on_by_default=False)
