"""Loads of priority levels: who gets a seat when, who waits, who is refused, and which level borrows from which."""

from .borrowing import run as run_borrowing
from .runner import run

__all__ = ["run", "run_borrowing"]
