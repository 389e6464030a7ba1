"""What a client fills into a backend's form: the defaults, and what does not fit. Pure.

The schema is a stranger's, so only what takes a time in proportion to it is looked at: nothing
refers to anything else, nothing is fetched, patterns have a limit. The backend checks the rest.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import regex

PLAIN = (
    "type",
    "enum",
    "const",
    "required",
    "minLength",
    "maxLength",
    "pattern",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
    "uniqueItems",
)
ONE = ("items", "additionalProperties")
MANY = ("anyOf", "oneOf", "allOf")

MATCHING = 0.02
"""Seconds that a pattern may take on one text. One that takes longer counts as fitting."""
PATTERNS = 50
"""Texts that are matched for one form; the others count as fitting."""


class UnusableForm(ValueError):
    """Its schema is none."""


def filled(schema: Mapping[str, Any], content: Mapping[str, Any]) -> dict[str, Any]:
    """*content* with the defaults of what it leaves out."""
    properties = schema.get("properties")
    found = dict(content)
    for name, wanted in properties.items() if isinstance(properties, Mapping) else ():
        if name not in found and isinstance(wanted, Mapping) and "default" in wanted:
            found[name] = wanted["default"]
    return found


def mismatches(schema: Mapping[str, Any], content: Mapping[str, Any]) -> list[str]:
    """Every way in which *content* does not fit, each with its path.

    Raises:
        UnusableForm: nothing could fit, or anything.
    """
    # Not needed before somebody answers a form, and slow to import.
    from jsonschema import Draft202012Validator, validators  # noqa: PLC0415 - slow, and rarely needed
    from jsonschema.exceptions import ValidationError  # noqa: PLC0415 - as above

    matched = itertools.count(1)

    def pattern(_: Any, wanted: str, text: object, schema: object) -> Iterator[ValidationError]:
        if isinstance(text, str) and next(matched) <= PATTERNS and not _matches(wanted, text):
            yield ValidationError(f"{text!r} does not match {wanted!r}")

    checked = _checkable(schema)
    try:
        Draft202012Validator.check_schema(checked)
        validator: Any = validators.extend(  # type: ignore[no-untyped-call]  # as typed there
            Draft202012Validator, {"pattern": pattern}
        )(checked)
        return [
            ".".join(map(str, error.absolute_path))
            + (": " if error.absolute_path else "")
            + error.message
            for error in validator.iter_errors(dict(content))
        ]
    except Exception as error:  # noqa: BLE001 - whatever a foreign schema does to the validator
        raise UnusableForm(type(error).__name__) from None


def _checkable(schema: Any) -> Any:
    if not isinstance(schema, Mapping):
        return schema
    kept = {key: schema[key] for key in PLAIN if key in schema}
    kept |= {key: _checkable(schema[key]) for key in ONE if key in schema}
    for key in MANY:
        if isinstance(arms := schema.get(key), list):
            kept[key] = [_checkable(arm) for arm in arms]
    if isinstance(properties := schema.get("properties"), Mapping):
        kept["properties"] = {name: _checkable(each) for name, each in properties.items()}
    return kept


def _matches(pattern: str, text: str) -> bool:
    try:
        return regex.search(pattern, text, timeout=MATCHING) is not None
    except TimeoutError:
        return True
