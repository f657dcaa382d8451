"""Devices that pods claim: nodes that have them, and their allocation to claims."""
