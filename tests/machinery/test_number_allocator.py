"""Numbers that are taken and given back."""

from __future__ import annotations

from random import Random

from steersman.machinery.number_allocator import NumberAllocator


def test_the_lowest_free_number_is_next_whatever_was_taken_and_released() -> None:
    random, taken = Random(7), {3, 4}
    numbers = NumberAllocator(taken, first=1)
    for _ in range(2000):
        if taken and random.random() < 0.5:
            gone = random.choice(sorted(taken))
            taken.discard(gone)
            numbers.release(gone)
        else:
            number = numbers.lowest() if random.random() < 0.7 else random.randrange(1, 40)
            taken.add(number)
            numbers.allocate(number)
        assert numbers.lowest() == next(each for each in range(1, 99) if each not in taken)
        assert (7 in numbers) is (7 not in taken)
