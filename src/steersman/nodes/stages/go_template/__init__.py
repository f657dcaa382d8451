"""Go's text/template: text with actions between double braces, evaluated over plain data."""
