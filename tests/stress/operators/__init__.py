"""Small operators with faults that are known from published ones, and their repairs."""
