"""The Snowball stem of a word, in any thread.

A stemmer keeps the word it works on in itself: shared between threads it would give the stem of another's word, or
fail. So each thread has its own.
"""

import threading
from typing import Any

import snowballstemmer


class _Own(threading.local):
    def __init__(self) -> None:
        self.stemmers: dict[str, Any] = {}


_own = _Own()


def stemmed(word: str, language: str) -> str:
    """The stem of a folded word; `language` is one of `snowballstemmer.algorithms()`."""
    stemmer = _own.stemmers.get(language)
    if stemmer is None:
        stemmer = _own.stemmers[language] = snowballstemmer.stemmer(language)
    return str(stemmer.stemWord(word))
