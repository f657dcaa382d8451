"""A server in this process, which the tests of a module share."""

from __future__ import annotations

import pytest

from steersman.testing import Environment
from tests.apiextensions.cluster import Cluster


@pytest.fixture
def cluster(shared_environment: Environment) -> Cluster:
    return Cluster(shared_environment.client())
