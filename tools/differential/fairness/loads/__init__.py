"""Loads of priority levels whose outcome is determined: who gets a seat when, who waits, who is refused."""

from .runner import run

__all__ = ["run"]
