"""Arrays at many places in memory, for tests that results do not depend on where they are."""

import numpy as np


def placements(arguments, seed=0):
    """Yield the arguments with all arrays copied into one buffer: 0 to 512 bytes apart, in one order or another."""
    rng = np.random.default_rng(seed)
    places = [i for i, argument in enumerate(arguments) if isinstance(argument, np.ndarray)]
    most = 64
    for gap in range(most + 1):
        placed = list(arguments)
        buffer = np.zeros(sum(arguments[i].nbytes for i in places) + 8 * (most + 1) * (len(places) + 1), np.uint8)
        start = 8 * int(rng.integers(8))
        for i in rng.permutation(places):
            array = arguments[i]
            # Whichever two of several are close: others are further apart half of the time.
            placed[i] = buffer[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
            placed[i][...] = array
            placed[i].flags.writeable = array.flags.writeable
            start += -(-array.nbytes // 8) * 8 + 8 * int(rng.choice([gap, most - gap]))
        yield placed


def results_by_place(function, arguments, seed=0):
    """Return what a function returns and writes for arrays at many places, as bytes: one result if all are the same."""
    results = set()
    for placed in placements(arguments, seed):
        returned = np.asarray(function(*placed)).tobytes()
        results.add((returned, *(array.tobytes() for array in placed if isinstance(array, np.ndarray))))
    return results
