"""Bits of clauses and terms: each has the place in its word that the bit of its query has.

So a word of such bits is compared with a word of queries as it is. Which word decides how many
steps that takes: the n-th bits of the queries in one word should be in one word too.
"""

from __future__ import annotations

import heapq

from eddyline.fabric.shared.slots import Slots

#: So many bits of the queries in one word get a word of their own.
CROWD_MIN = 8


class ClauseSlots:
    """Hands out bits for the n-th clauses, or terms, of queries.

    Where many queries of a word have an n-th one, these are in a word of their own, and checked in
    one step. Bits of the others share words with those of other words of queries, as long as their
    places differ: few clauses among many queries take few words.

    Examples
    --------
    >>> slots = ClauseSlots()
    >>> slots.take(3, 0), slots.take(3, 1), slots.take(70, 0), slots.words
    (3, 67, 6, 2)

    """

    def __init__(self) -> None:
        self._pool: dict[int, Slots] = {}  # by place: positions in the words of the pool
        self._pool_words: list[int] = []
        self._own_words: dict[tuple[int, int], int] = {}  # by word of queries, and n
        self._owners: dict[int, tuple[int, int]] = {}
        self._used: dict[int, int] = {}  # number of bits in use, by word with an owner
        self._crowd: dict[tuple[int, int], int] = {}  # bits that were given out, by owner
        self._nth: dict[int, tuple[int, int]] = {}  # owner of each bit from the pool
        self._free_words: list[int] = []  # a heap
        #: Number of words of a bitmap of these bits.
        self.words = 0

    def expect(self, query_slot: int, nth: int) -> None:
        """Note that a bit will be asked for, before the bits of all queries are taken."""
        owner = (query_slot // 64, nth)
        self._crowd[owner] = self._crowd.get(owner, 0) + 1

    def make_words(self) -> None:
        """Give words to the bits that are expected: those of the n-th bits lie side by side."""
        for owner in sorted(self._crowd, key=lambda owner: (owner[1], owner[0])):
            if self._crowd[owner] >= CROWD_MIN and owner not in self._own_words:
                self._make_word(owner)

    def take(self, query_slot: int, nth: int, is_expected: bool = False) -> int:
        """Return a bit for the n-th clause of a query that is not in use.

        Parameters
        ----------
        query_slot
            The bit of the query.
        nth
            Counted from 0.
        is_expected
            Whether `expect` was called for it.

        """
        place, owner = query_slot % 64, (query_slot // 64, nth)
        if not is_expected:
            self.expect(query_slot, nth)
        if self._crowd[owner] >= CROWD_MIN:
            word = self._own_words.get(owner)
            if word is None:
                word = self._make_word(owner)
            self._used[word] += 1
            return 64 * word + place
        position = self._pool.setdefault(place, Slots()).take()
        if position == len(self._pool_words):
            self._pool_words.append(self._new_word())
        slot = 64 * self._pool_words[position] + place
        self._nth[slot] = owner
        return slot

    def give_back(self, slot: int) -> None:
        """Make a bit available again."""
        word, place = divmod(slot, 64)
        owner = self._owners.get(word)
        if owner is None:
            self._pool[place].give_back(self._pool_words.index(word))
            self._leave(self._nth.pop(slot))
            return
        self._leave(owner)
        self._used[word] -= 1
        if not self._used[word]:
            del self._used[word], self._owners[word], self._own_words[owner]
            heapq.heappush(self._free_words, word)

    def _make_word(self, owner: tuple[int, int]) -> int:
        word = self._own_words[owner] = self._new_word()
        self._owners[word], self._used[word] = owner, 0
        return word

    def _leave(self, owner: tuple[int, int]) -> None:
        self._crowd[owner] -= 1
        if not self._crowd[owner]:
            del self._crowd[owner]

    def _new_word(self) -> int:
        if self._free_words:
            return heapq.heappop(self._free_words)
        self.words += 1
        return self.words - 1
