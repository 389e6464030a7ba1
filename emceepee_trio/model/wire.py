"""The model as the JSON that clients see, and back where it comes back.

Field names are ours (snake_case) in the model. Events and questions travel in camelCase, because
the specification spells them so; everything else travels as it is named. None does not travel.
"""

from __future__ import annotations

import enum
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, get_args

import attrs
import cattrs
from cattrs.gen import make_dict_unstructure_fn, override

from . import events
from .events import Event, Happening


def timestamp(seconds: float) -> str:
    """RFC 3339, UTC, milliseconds."""
    whole, fraction = divmod(round(seconds * 1_000_000), 1_000_000)
    return f"{_second(whole)}.{fraction // 1000:03d}Z"


@lru_cache(maxsize=1)
def _second(whole: int) -> str:
    return datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(part.capitalize() for part in tail)


def snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def loads(text: str) -> Any:
    """JSON as others read it: what Python would take beyond that could not be passed on.

    Raises:
        ValueError: it is not.
        RecursionError: it is nested deeper than Python goes; see `json/intake.py` for less.
    """
    return _DECODER.decode(text)


def _finite(digits: str) -> float:
    if math.isinf(number := float(digits)):
        raise ValueError(f"{digits} is too large a number")
    return number


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a value")


_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_no_constant)


_COMPACT = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def dumps(value: object) -> str:
    """Compact JSON, unicode as it is, but for what no encoding of it could carry."""
    try:
        text = _COMPACT.encode(value)
    except ValueError:  # a server says NaN, or 1e999; where pydantic writes JSON it is null, too
        value = json.loads(json.dumps(value), parse_constant=lambda name: None)
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    try:
        text.isascii() or text.encode()
    except UnicodeEncodeError:  # half a surrogate pair, which JSON can spell
        return json.dumps(value, separators=(",", ":"))
    return text


def size_of(value: object) -> int:
    """Bytes of its JSON, which is what bounds count."""
    return len(dumps(value).encode())


def _converter(rename: Callable[[str], str]) -> cattrs.Converter:
    converter = cattrs.Converter()

    def hook_for(cls: type[Any]) -> Callable[[Any], dict[str, Any]]:
        renamed: Any = {f.name: override(rename=rename(f.name)) for f in attrs.fields(cls)}
        unstructure = make_dict_unstructure_fn(cls, converter, **renamed)

        def without_nones(value: Any) -> dict[str, Any]:
            return {k: v for k, v in unstructure(value).items() if v is not None}

        return without_nones

    converter.register_unstructure_hook_factory(attrs.has, hook_for)
    converter.register_unstructure_hook(enum.Enum, lambda value: value.value)
    # What came from a peer is JSON already and is not looked into again.
    converter.register_unstructure_hook_func(lambda cls: cls is Any or _is_mapping(cls), _same)
    return converter


def _is_mapping(cls: object) -> bool:
    return getattr(cls, "__origin__", cls) in {dict, Mapping}


def _same(value: Any) -> Any:
    return value


_CAMEL = _converter(camel)
_SNAKE = _converter(lambda name: name)


def to_camel(value: object) -> dict[str, Any]:
    """An attrs value with camelCase keys: events and questions."""
    data: dict[str, Any] = _CAMEL.unstructure(value)
    return data


def to_snake(value: object) -> dict[str, Any]:
    """An attrs value with its own names: tasks, timers, servers."""
    data: dict[str, Any] = _SNAKE.unstructure(value)
    return data


EVENT_TYPES: Mapping[type, str] = {cls: snake(cls.__name__) for cls in get_args(events.Happening)}


def event_type(happening: Happening) -> str:
    return EVENT_TYPES[type(happening)]


def new_event(id: str, server: str, created_at: str, happening: Happening) -> Event:
    said = {
        "id": id,
        "type": event_type(happening),
        "server": server,
        "createdAt": created_at,
        "data": to_camel(happening),
    }
    text = dumps(said)
    return Event(id, server, created_at, happening, text, len(text.encode()))


def event_text(event: Event, **beside: object) -> str:
    """The JSON of an event, with what is told in its data beside what happened."""
    if event.count > 1:
        beside = {"count": event.count} | beside
    # The data is the last of its members, and never empty.
    return f"{event.text[:-2]},{dumps(beside)[1:]}}}" if beside else event.text


def event_json(event: Event) -> dict[str, Any]:
    """The same, to be looked into."""
    said: dict[str, Any] = loads(event_text(event))
    return said


def list_of(texts: Iterable[str]) -> str:
    """A list of what is JSON already."""
    return f"[{','.join(texts)}]"


def object_of(members: Mapping[str, str]) -> str:
    """An object whose members are JSON already."""
    return f"{{{','.join(f'{dumps(name)}:{text}' for name, text in members.items())}}}"
