"""Rules that objects of many kinds share: formats, object metadata, selectors, conditions, request options.

Validators are generators of field errors; their texts are upstream's. `formats` holds the rules for single values.
"""
