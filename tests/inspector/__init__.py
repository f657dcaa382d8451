"""Tests of the front of `steersman inspect`."""
