"""Words are stemmed right in any number of threads."""

import sys
import threading
from collections.abc import Iterator

import pytest
import snowballstemmer

from langmem_adapter.stemming import stemmed

STARTS = "hop generalis organis nation relat condit walk happi univers".split()
ENDS = "ing ation ational fulness ed es s er ly ement iveness".split()


@pytest.fixture
def hasty() -> Iterator[None]:
    """Threads take turns in the midst of whatever they do."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("hasty")
def test_threads_stem_words_at_once_without_mixing_them_up() -> None:
    words = [start + end for start in STARTS for end in ENDS]
    english = snowballstemmer.stemmer("english")
    right = {word: english.stemWord(word) for word in words}
    wrong: list[object] = []

    def check() -> None:
        for word in words * 20:
            try:
                if stemmed(word, "english") != right[word]:
                    wrong.append(word)
            except IndexError as error:  # what a shared stemmer raises when its word changes under it
                wrong.append(error)

    threads = [threading.Thread(target=check) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
