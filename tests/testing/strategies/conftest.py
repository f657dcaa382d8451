from __future__ import annotations

from collections.abc import Iterator

import pytest

from steersman.testing import ThreadedEnvironment
from steersman.testing.definitions import establish
from tests.testing.strategies.widgets import DEFINITION


@pytest.fixture
def widgets() -> Iterator[ThreadedEnvironment]:
    """A server that has the definition of Widgets."""
    with ThreadedEnvironment() as environment:
        with environment.client() as client:
            establish(client, [DEFINITION])
        yield environment
