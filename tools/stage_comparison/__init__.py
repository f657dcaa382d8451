"""Stages played by kwok itself and by simulated nodes, on the same control plane: what becomes of pods and nodes."""
