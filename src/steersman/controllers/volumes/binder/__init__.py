"""Binds claims to volumes, asks for new ones, takes back those whose claims are gone."""
