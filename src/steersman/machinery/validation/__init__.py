"""Validation rules that many kinds share: formats, object metadata, selectors, conditions, request options.

Validators are generators of field errors with upstream's messages. `formats` has the rules for single values.
"""
