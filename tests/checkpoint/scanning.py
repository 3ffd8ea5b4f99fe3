"""Looking for a text in every byte of a database's files, in all the forms it could lie there."""

import base64
import json
from pathlib import Path


def forms(text: str) -> dict[str, bytes]:
    """The encodings of a text that are searched for; base64 at each of its three alignments."""
    raw = text.encode()
    found = {
        "utf-8": raw,
        "utf-16-le": text.encode("utf-16-le"),
        "utf-16-be": text.encode("utf-16-be"),
        "json": json.dumps(text)[1:-1].encode(),
    }
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + raw)
        found[f"base64+{shift}"] = encoded[4 if shift else 0 : -4]
    return found


def files_of(path: Path) -> list[Path]:
    return [p for p in path.parent.iterdir() if p.name.startswith(path.name)]


def where(path: Path, text: str) -> list[str]:
    """File and form of each find."""
    return [
        f"{file.name}: {form}"
        for file in files_of(path)
        for form, needle in forms(text).items()
        if needle.lower() in file.read_bytes().lower()
    ]
