# SPDX-License-Identifier: BSD-3-Clause
"""Checks a value against a JSON Schema, as far as the schemas in docs/schemas go."""

import json
import pathlib

SCHEMAS = pathlib.Path(__file__).resolve().parent.parent.parent / "docs" / "schemas"
TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "null": type(None),
}


def is_of(value, name):
    return isinstance(value, TYPES[name]) and (name == "boolean" or not isinstance(value, bool))


def complaints(value, schema, where=""):
    """What is wrong with it, and where; a member that the schema does not know is wrong here, too."""
    names = schema.get("type", [])
    names = [names] if isinstance(names, str) else names
    if names and not any(is_of(value, name) for name in names):
        yield f"{where}: {value!r} is no {' or '.join(names)}"
        return
    if "const" in schema and value != schema["const"]:
        yield f"{where}: {value!r} is not {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where}: {value!r} is none of {schema['enum']}"
    if "minimum" in schema and value is not None and value < schema["minimum"]:
        yield f"{where}: {value!r} is less than {schema['minimum']}"
    if "maxLength" in schema and len(value) > schema["maxLength"]:
        yield f"{where}: is longer than {schema['maxLength']}"
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        yield from (f"{where}: lacks {name}" for name in schema.get("required", []) if name not in value)
        yield from (f"{where}: has {name}, which nobody knows" for name in value if name not in properties)
        for name in value.keys() & properties.keys():
            yield from complaints(value[name], properties[name], f"{where}.{name}")
    if isinstance(value, list) and "items" in schema:
        for number, item in enumerate(value):
            yield from complaints(item, schema["items"], f"{where}[{number}]")


def check(value, name):
    """`name`: "event" or "status"."""
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
    assert list(complaints(value, schema)) == [], value
    return value
