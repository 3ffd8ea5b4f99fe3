"""What a process knows of the lives of threads, so that a run from before a deletion is told from one after it.

Deletions in a file are numbered. No clock is asked: a run reads the latest number when it begins (`get_tuple`), the
first version it makes carries that number, and every later version inherits it. So a checkpoint without a parent
says by its versions what its run had seen. A run lives in one process, which remembers the checkpoints that it stored
or loaded, and after which deletion: one of those that is gone was deleted, another is not there yet.
"""

import secrets
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

from langmem_adapter.checkpoint.configs import Where

_REMEMBERED = 10_000
REFUSED = -1


class Lives:
    """Shared by all clones of a checkpointer; safe in threads, as each step is one call of a dict."""

    def __init__(self, deaths: int) -> None:
        self.deaths = deaths
        """The number of the last deletion in the file that was seen."""
        self._known: OrderedDict[Where, int] = OrderedDict()

    def note(self, where: Where, deaths: int) -> None:
        """This checkpoint was there when so many threads had been deleted. One without an id: a run may have begun."""
        self._known.pop(where, None)
        self._known[where] = deaths
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)

    def knows(self, where: Where) -> bool:
        """Whether this process stored, loaded or refused the checkpoint."""
        return where in self._known

    def is_from_before(self, where: Where, death: int) -> bool:
        """Whether it is known to have been there before a deletion."""
        return self._known.get(where, death) < death

    def next_version(self, current: Any) -> str:
        """A version that sorts after `current`, and inherits the life of its run. Its random end, which no seed
        reaches, keeps those of two forks apart."""
        if current is None:
            return _version(0, f"{self.deaths:x}")
        if not isinstance(current, str):
            return _version(int(current), None)
        number, *_ = current.split(".")
        return _version(int(number, 10 if len(number) > 8 else 16), _life(current))


def born(versions: Iterable[Any]) -> int | None:
    """The last deletion that the run which made these versions had seen; None if they do not tell."""
    lives = [int(life, 16) for v in versions if isinstance(v, str) and (life := _life(v)) is not None]
    return min(lives, default=None)


def _version(number: int, life: str | None) -> str:
    end = f"{secrets.randbits(40):010x}"
    return f"{number + 1:08x}.{end}" if life is None else f"{number + 1:08x}.{life}.{end}"


def _life(version: str) -> str | None:
    parts = version.split(".")
    return parts[1] if len(parts) == 3 else None
