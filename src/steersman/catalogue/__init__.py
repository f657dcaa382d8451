"""The live table of served resources."""
