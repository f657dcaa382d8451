"""Label and field selectors: parsing, compiling, matching."""
