"""Volumes: bound to claims, made, attached, made larger, protected from going too early."""
