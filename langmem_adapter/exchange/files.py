"""What callers name as a source: a file, or what would be in it."""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from langmem_adapter.errors import InvalidInput
from langmem_adapter.ports import IO, Ask

StrPath = str | os.PathLike[str]


def _read(path: StrPath) -> str:
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{os.fspath(path)} is not UTF-8: {error}") from error
    except (OSError, ValueError) as error:  # it is not there, is a folder, or cannot be the name of a file
        raise InvalidInput(f"{os.fspath(path)!r:.120} cannot be read as a file: {_why(error)}; name one") from error


def _why(error: OSError | ValueError) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)


def _read_json(path: StrPath) -> Any:
    text = _read(path)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{os.fspath(path)} is not JSON: {error}") from error


_READ: Ask[StrPath, str] = Ask(_read)
_READ_JSON: Ask[StrPath, Any] = Ask(_read_json)


async def lines_of(io: IO, source: StrPath | Iterable[str]) -> list[str]:
    """The lines of a file, or those given. A `str` is a file's name."""
    if isinstance(source, str | os.PathLike):
        return (await io.ask(_READ, source)).split("\n")  # not splitlines: U+2028 ends no line here
    lines = list(source) if isinstance(source, Iterable) else [source]
    for n, line in enumerate(lines, 1):
        if not isinstance(line, str):
            raise InvalidInput(f"line {n} must be a str, got {type(line).__name__}: {line!r:.80}")
    return lines


async def json_of(io: IO, source: Any) -> Any:
    """What a JSON file holds, or the value given. A `str` is a file's name."""
    if not isinstance(source, str | os.PathLike):
        return source
    return await io.ask(_READ_JSON, source)
