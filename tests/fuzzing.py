"""What all that feed changed files to the library share: random changes of bytes, limits, and progress."""

import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import numpy as np

MEMORY = 4 << 30
# Of a processor: how long a round takes by the clock depends on what else is running.
SECONDS = 20
# By the clock, for what waits and does nothing.
PATIENCE = 600


def pick(rng, options):
    return options[rng.integers(len(options))]


def flip_bits(content, rng):
    if not content:
        return content
    changed = bytearray(content)
    for bit in rng.integers(8 * len(changed), size=rng.integers(1, 4)):
        changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def cut(content, rng):
    start, stop = sorted(rng.integers(len(content) + 1, size=2))
    return content[:stop] if rng.random() < 0.5 else content[:start] + content[stop:]


def insert(content, rng):
    place = rng.integers(len(content) + 1)
    return content[:place] + rng.bytes(rng.integers(1, 9)) + content[place:]


def swap(content, rng):
    """Exchange two neighbouring stretches."""
    a, b, c = sorted(rng.integers(len(content) + 1, size=3))
    return content[:a] + content[b:c] + content[a:b] + content[c:]


def limit_memory():
    """Let this process have no more than so much memory; what asks for more is an error."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


class TooLong(BaseException):
    """The end of a round. TimeoutError would be an error of the system, which some are ready for."""


@contextmanager
def time_limit():
    """Raise TooLong in what takes too long inside."""

    def too_long(number, _frame):
        limit = f"{SECONDS} seconds of a processor" if number == signal.SIGPROF else f"{PATIENCE} seconds"
        raise TooLong(f"a round took more than {limit}")

    before = {number: signal.signal(number, too_long) for number in (signal.SIGPROF, signal.SIGALRM)}
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def rounds(label, n_rounds, seed, folder, one_round):
    """Make rounds in limited memory and time; return how many ended how. What an error was about is kept."""
    limit_memory()
    outcomes, told, longest = Counter(), time.monotonic(), (0.0, 0)
    for number in range(n_rounds):
        if time.monotonic() - told > 5:
            told = time.monotonic()
            print(f"{label}: {number:,} of {n_rounds:,} rounds", file=sys.stderr, flush=True)  # noqa: T201
        try:
            begun = time.process_time()
            with time_limit():
                outcomes[one_round(np.random.default_rng([seed, number]))] += 1
            longest = max(longest, (time.process_time() - begun, number))
        except BaseException:
            kept = keep(folder, seed, number)
            print(f"{label}, round {number}: the files are in {kept}", file=sys.stderr)  # noqa: T201
            raise
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(f"{label}: at most {longest[0]:.1f} s, in round {longest[1]}, and {most} MiB", file=sys.stderr)  # noqa: T201
    return outcomes


def keep(folder, seed, number):
    """Return where the files of a round are when all else is removed."""
    kept = Path(tempfile.gettempdir(), f"fuzz-{seed}-{number}")
    # To copy a pipe would be to wait for ever.
    pipes = lambda place, names: [name for name in names if Path(place, name).is_fifo()]  # noqa: E731
    shutil.copytree(folder, kept, dirs_exist_ok=True, ignore=pipes)
    return kept


def require_sentence(error):
    """Raise AssertionError unless the message of an error is one sentence."""
    text = str(error)
    assert text.endswith("."), f"no sentence: {text!r}"
    assert 10 < len(text) < 1000, f"too short or too long: {text!r}"
    assert text.isprintable(), f"not one line, or not to be printed: {text!r}"
