"""Go's text/template: texts with actions between double braces, evaluated over plain data."""
