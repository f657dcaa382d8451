"""Binder of claims and volumes: it also requests new volumes and reclaims those of deleted claims."""
