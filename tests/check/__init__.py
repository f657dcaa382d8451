"""Tests of `steersman check`."""
