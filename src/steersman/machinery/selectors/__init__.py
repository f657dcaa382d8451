"""Selectors over labels and fields: parsed, compiled, matched."""
