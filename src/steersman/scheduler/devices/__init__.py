"""Devices that pods claim: which nodes have them, and which devices each claim gets."""
