"""Servers behind this one."""
