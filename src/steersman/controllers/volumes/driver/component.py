"""What the parts of the driver share: their user, and how they appear in events."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeVar

from steersman.controllers.controller import Controller
from steersman.controllers.volumes.driver.objects import DRIVER

K = TypeVar("K", bound=Hashable)

ACCOUNT = "steersman-simulation"


class DriverComponent(Controller[K]):
    """A controller of the driver: it works for the simulation, not under an account of kube-controller-manager."""

    account = ACCOUNT
    component = DRIVER
