"""Turns that the store could not take, kept in this process until it can.

A store that hangs or is away must not hold up a conversation, nor cost it what was said. So the turns wait here, in
the order said, and one background thread writes them to their owners' queues as soon as the store answers, and has
them learnt. What is still here when the process ends is lost, and said to be.
"""

import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from langmem_adapter.namespaces import Reader
from langmem_adapter.records import Turn

MOST = 10_000
"""Turns kept at most; then the oldest go."""
PAUSE = 0.5
"""Seconds between tries, doubled up to sixteen times that."""


@dataclass(frozen=True, slots=True, eq=False)
class Waiting:
    """A turn that waits for the store."""

    turn: Turn
    known: bool
    """It was in the store before, so if it is there no more, it was erased."""

    @property
    def owner(self) -> Reader:
        """Whose turn it is."""
        return Reader(self.turn.user_id or "", self.turn.app_name)


class Backlog:
    """`take(waiting)` is called, in a thread, until it raises nothing; then `learn`, with the turns that it returned.

    `learn` raises nothing. `lost(count)` tells of turns given up.
    """

    def __init__(
        self,
        take: Callable[[Sequence[Waiting]], Sequence[Turn]],
        learn: Callable[[Sequence[Turn]], None],
        lost: Callable[[int], None],
    ) -> None:
        self._take = take
        self._learn = learn
        self._lost = lost
        self._waiting: list[Waiting] = []
        self._taking: list[Waiting] = []
        self._learning: list[Waiting] = []
        self._hurry = False
        self._failures = 0
        self._thread: threading.Thread | None = None
        self._changed = threading.Condition()
        self._closed = False

    def add(self, turns: Sequence[Turn], *, known: bool = False) -> None:
        """Keep turns until the store takes them; one that waits already keeps its place."""
        with self._changed:
            for turn in turns:
                self._put(turn, known)
            excess = len(self._waiting) - (0 if self._closed else MOST)
            if excess > 0:
                del self._waiting[:excess]
            # A forked process has no threads of its parent's.
            if self._waiting and (self._thread is None or not self._thread.is_alive()):
                self._taking, self._learning = [], []
                self._thread = threading.Thread(target=self._work, daemon=True, name="langmem_adapter-backlog")
                self._thread.start()
        if excess > 0:
            self._lost(excess)

    def _put(self, turn: Turn, known: bool) -> None:
        for at in range(len(self._waiting) - 1, -1, -1):
            earlier = self._waiting[at].turn
            speaker = (turn.user_id, turn.app_name, turn.session_id)
            if (earlier.user_id, earlier.app_name, earlier.session_id) != speaker:
                continue
            if earlier.turn_id == turn.turn_id:
                self._waiting[at] = Waiting(turn.change(at=earlier.at), self._waiting[at].known)
                return
            if turn.anonymous:  # without an id, only what is said twice in a row is one message
                break
        self._waiting.append(Waiting(turn, known))

    def __len__(self) -> int:
        return len(self._waiting)

    def holds(self, owners: Collection[Reader]) -> bool:
        """Whether a turn of one of these owners waits."""
        with self._changed:
            return any(w.owner in owners for w in self._waiting)

    def _any(self, owners: Collection[Reader]) -> bool:
        return any(w.owner in owners for w in (*self._waiting, *self._learning))

    def learns(self, owners: Collection[Reader]) -> bool:
        """Whether turns of one of these owners, which waited, are being learnt."""
        with self._changed:
            return any(w.owner in owners for w in self._learning)

    def settled(self, owners: Collection[Reader], timeout: float) -> bool:
        """Try at once, and wait until no turn of these owners waits or is being learnt; whether that is so.

        False at once when the store still does not take them.
        """
        with self._changed:
            self._hurry = bool(self._waiting)
            self._changed.notify_all()
            before = self._failures
            self._changed.wait_for(lambda: self._failures > before or not self._any(owners), timeout)
            return not self._any(owners)

    def forget(self, change: Callable[[Turn], Turn | None]) -> None:
        """Change the turns that wait, or (None) drop them; what is being written at this moment is, afterwards."""
        with self._changed:
            left = []
            for each in self._waiting:
                turn = change(each.turn)
                if turn is not None:
                    left.append(each if turn is each.turn else Waiting(turn, each.known))
            self._waiting = left
            self._changed.notify_all()
            taking = self._taking
            if any(change(each.turn) is not each.turn for each in taking):
                self._changed.wait_for(lambda: self._taking is not taking)

    def drain(self, timeout: float | None) -> bool:
        """Wait until the store has taken all, and it is learnt as far as it can be; whether that is so.

        False at once from `learn`, which would wait for itself.
        """
        with self._changed:
            if threading.current_thread() is self._thread:
                return False
            return self._changed.wait_for(lambda: not self._waiting and not self._learning, timeout)

    def close(self, timeout: float) -> None:
        """Wait a little for the store, then give up what it has not taken."""
        self.drain(timeout)
        with self._changed:
            self._closed = True
            left = len(self._waiting)
            self._waiting.clear()
            self._changed.notify_all()
        if left:
            self._lost(left)

    def _work(self) -> None:
        pause = PAUSE
        while True:
            with self._changed:
                if not self._waiting or self._closed:
                    self._thread = None
                    return
                self._hurry = False
                self._taking = batch = list(self._waiting)
            try:
                queued = self._take(batch)
            except Exception:  # noqa: BLE001 - whatever somebody's store raises: it is tried again
                with self._changed:
                    self._taking = []
                    self._failures += 1
                    self._changed.notify_all()
                    self._changed.wait_for(lambda: self._closed or self._hurry, pause)
                pause = min(2 * pause, 16 * PAUSE)
                continue
            pause = PAUSE
            with self._changed:
                taken = {id(each) for each in batch}
                self._waiting = [each for each in self._waiting if id(each) not in taken]
                self._taking, self._learning = [], batch
                self._changed.notify_all()
            self._learn(queued)
            with self._changed:
                self._learning = []
                self._changed.notify_all()
