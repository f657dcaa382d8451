"""Tests of the commands about history."""
