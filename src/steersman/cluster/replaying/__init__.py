"""Recordings played on a simulated cluster: what users did is done again, controllers do the rest."""
