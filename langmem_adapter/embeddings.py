"""`HashEmbeddings`: deterministic word-and-trigram vectors that need no model, no download and no network."""

import re
from collections.abc import Iterator
from hashlib import blake2b

import numpy as np
from langchain_core.embeddings import Embeddings

STOPWORDS = frozenset("a an and by for i in is of on the to user".split())
_TOKEN = re.compile(r"[a-z0-9]+")
_SLICE = 65_536  # characters: no single call holds the interpreter long, whatever the text's size


def _tokens(text: str) -> Iterator[str]:
    for start in range(0, len(text), _SLICE):
        yield from _TOKEN.findall(text[start : start + _SLICE].lower())


class HashEmbeddings(Embeddings):
    """A LangChain `Embeddings` that hashes words (weight 1.0) and their trigrams (0.35) into `dims` buckets.

    Vectors are L2-normalised; a text without a word gives the zero vector. It finds shared words and word parts,
    not meaning: pass a real embedding model to `Memory(embeddings=…)` for that.
    """

    def __init__(self, dims: int = 256) -> None:
        self.dims = dims
        self.name = f"hash-{dims}"
        self._buckets: dict[str, list[tuple[int, float]]] = {}

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector of `dims` floats per text."""
        return [self.embed_query(t) for t in texts]

    def embed_query(self, text: str) -> list[float]:
        """The vector of one text, `dims` floats."""
        weights = [0.0] * self.dims
        for token in _tokens(text):
            for bucket, weight in self._token(token):
                weights[bucket] += weight
        vector = np.array(weights)
        norm = float(np.sqrt(vector @ vector))
        found: list[float] = (vector / norm if norm else vector).tolist()
        return found

    def _token(self, token: str) -> list[tuple[int, float]]:
        found = self._buckets.get(token)
        if found is None:
            found = [] if token in STOPWORDS else [(self._bucket(token), 1.0)]
            if found:
                edged = f"^{token}$"
                found += [(self._bucket(edged[i : i + 3]), 0.35) for i in range(len(edged) - 2)]
            if len(self._buckets) < 50_000:  # bounded: text from outside must not grow it for ever
                self._buckets[token] = found
        return found

    def _bucket(self, s: str) -> int:
        return int.from_bytes(blake2b(s.encode(), digest_size=8).digest(), "big") % self.dims
