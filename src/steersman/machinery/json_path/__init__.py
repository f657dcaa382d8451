"""JSONPath of custom resources: printer columns, selectable fields, the paths of the scale subresource."""

from steersman.machinery.json_path.cells import PrinterColumn
from steersman.machinery.json_path.evaluation import find_results
from steersman.machinery.json_path.nested import NestedFieldError, nested_field, split_path
from steersman.machinery.json_path.parser import JSONPathError, Template, parse

__all__ = [
    "JSONPathError",
    "NestedFieldError",
    "PrinterColumn",
    "Template",
    "find_results",
    "nested_field",
    "parse",
    "split_path",
]
