"""Preemption: deletion of pods of lower priority to make a pod fit."""
