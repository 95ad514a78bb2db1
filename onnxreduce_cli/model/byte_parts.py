"""Parts of one long run of bytes, compared side by side."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.integer]

#: Bytes that are compared at a time, the bits of fewer of them, and what they are mixed by.
_WORD = 8
_MASKS = np.array([(1 << 8 * count) - 1 for count in range(_WORD + 1)], np.uint64)
_FACTOR, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(29)

#: What must follow the last part: whole words are read, of an empty part after it as well.
PADDING = bytes(2 * _WORD)


class ByteParts:
    """Parts of some bytes.

    Attributes:
        begins: where each begins.
        sizes: how many bytes each has.
    """

    def __init__(self, content: npt.NDArray[np.uint8], begins: Ints, sizes: Ints) -> None:
        """Prepare; `content` ends with `PADDING`."""
        self.begins, self.sizes = begins, sizes
        self._words = np.ndarray(len(content) - _WORD + 1, "<u8", content, strides=(1,))

    def equal(self, kinds: Ints | None = None) -> Ints:
        """For each part the place of one that has equal bytes, and is of an equal kind."""
        sizes, here = self.sizes, np.arange(len(self.sizes), dtype=np.int32)
        mixed = sizes.astype(np.uint64)
        if kinds is not None:
            mixed += kinds.astype(np.uint64) * _FACTOR
        first = self._word(slice(None), 0)
        mixed ^= first
        mixed *= _FACTOR
        longer = []
        for offset in range(_WORD, int(sizes.max(initial=0)), _WORD):
            here = here[sizes[here] > offset]
            own = self._word(here, offset)
            longer.append((here, own))
            mixed[here] = (mixed[here] ^ mixed[here] >> _SHIFT ^ own) * _FACTOR
        found = _equal(mixed ^ mixed >> _SHIFT)
        # Different bytes may give one number, however seldom: those parts stand for themselves.
        same = (sizes == sizes[found]) & (first == first[found])
        if kinds is not None:
            same &= kinds == kinds[found]
        whole = np.zeros(len(sizes) if longer else 0, np.uint64)
        for here, own in longer:
            whole[here] = own
            same[here] &= own == whole[found[here]]
        return np.where(same, found, np.arange(len(sizes), dtype=np.int32))

    def places(self, part: bytes) -> Ints:
        """The places of the parts that have some bytes."""
        found = np.flatnonzero(self.sizes == len(part))
        for offset in range(0, len(part), _WORD):
            word = np.uint64(int.from_bytes(part[offset : offset + _WORD], "little"))
            found = found[self._word(found, offset) == word]
        return found

    def _word(self, here: Ints | slice, offset: int) -> npt.NDArray[np.uint64]:
        """Some parts' bytes from an offset on, as many as a word has."""
        left = np.minimum(self.sizes[here] - offset, _WORD)
        found: npt.NDArray[np.uint64] = self._words[self.begins[here] + offset] & _MASKS[left]
        return found


def _equal(keys: npt.NDArray[np.uint64]) -> Ints:
    """For each of some mixed numbers the place of one that is equal.

    Each is put where its first bits say, and finds there itself or the last one put there: this
    takes a fraction of the time of sorting.
    """
    found, left = np.empty(len(keys), np.int32), np.arange(len(keys), dtype=np.int32)
    bits = len(keys).bit_length() + 1
    table = np.empty(1 << bits, np.int32)
    mixed = keys
    while left.size:
        slots = (mixed >> np.uint64(64 - bits)).astype(np.int32)
        table[slots] = left
        there = table[slots]
        equal = keys[there] == keys[left]
        found[left[equal]] = there[equal]
        left, mixed = left[~equal], mixed[~equal] * _FACTOR
    return found
