"""Tests of the devices of simulated nodes."""
