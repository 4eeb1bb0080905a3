"""Work on blocks in threads: order, limits, failures."""

import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from plstream import IncrementalPLS
from plstream._core.threads import blas_threads, ordered_map, single_threaded_blas


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_results_come_in_order(threads):
    def slow_for_even(i):
        time.sleep(0.002 if i % 2 == 0 else 0)
        return i * i

    with threadpool_limits(threads, user_api="blas"):
        assert list(ordered_map(slow_for_even, range(20))) == [i * i for i in range(20)]
    assert list(ordered_map(slow_for_even, [])) == []


def test_source_is_not_read_far_ahead():
    read = []

    def items():
        for i in range(50):
            read.append(i)
            yield i

    with threadpool_limits(2, user_api="blas"):
        for i, _ in enumerate(ordered_map(lambda item: item, items())):
            assert len(read) <= i + 5


def test_large_items_are_not_read_ahead():
    read = []

    def items():
        for i in range(20):
            read.append(i)
            yield i

    with threadpool_limits(4, user_api="blas"):
        # Two are read to begin with; then no more than fit into 3, and the one that is too much.
        for i, _ in enumerate(ordered_map(lambda item: item, items(), size=lambda _: 2, largest=3)):
            assert len(read) <= i + 2
    assert len(read) == 20


def test_limits_are_respected_and_restored():
    seen = []
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        list(ordered_map(lambda _: seen.append((blas_threads(), threading.get_ident())), range(8)))
        assert blas_threads() == before
        with single_threaded_blas() as threads, single_threaded_blas() as inner:
            assert threads == inner == before
            assert blas_threads() == 1
        assert blas_threads() == before
    assert {limit for limit, _ in seen} == {1}
    assert len({ident for _, ident in seen}) <= before


@pytest.mark.parametrize("threads", [1, 2])
def test_failure_is_passed_on(threads):
    def fail_at_three(i):
        if i == 3:
            raise ValueError("three")
        return i

    with threadpool_limits(threads, user_api="blas"):
        with pytest.raises(ValueError, match="three"):
            list(ordered_map(fail_at_three, range(10)))
        assert blas_threads() == threads


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_first_of_several_failures_is_passed_on(threads):
    def fail(i):
        # Later items fail earlier.
        time.sleep(0.02 if i == 0 else 0)
        raise ValueError(f"item {i}")

    with threadpool_limits(threads, user_api="blas"), pytest.raises(ValueError, match="item 0"):
        list(ordered_map(fail, range(10)))


def test_calling_thread_works_too():
    begun, threads, own = threading.Event(), [], threading.get_ident()

    def work(_):
        thread = threading.get_ident()
        threads.append(thread)
        # The first item is done only when the calling thread has begun another one.
        if thread == own:
            begun.set()
        return begun.wait(10)

    with threadpool_limits(2, user_api="blas"):
        assert list(ordered_map(work, range(4))) == [True] * 4
    assert len(set(threads)) <= 2


def test_unfinished_work_is_dropped():
    done = []
    with threadpool_limits(2, user_api="blas"):
        results = ordered_map(lambda i: done.append(i) or i, range(1000))
        assert next(results) == 0
        results.close()
        assert blas_threads() == 2
    assert len(done) < 10


def test_result_does_not_depend_on_the_number_of_threads(monkeypatch):
    monkeypatch.setattr("plstream.rows.blocks.SMALL_BYTES", 0)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 20))
    coefficients = []
    for threads in (1, 2, 3):
        with threadpool_limits(threads, user_api="blas"):
            coefficients.append(IncrementalPLS(4, batch_size=50).fit(X, X[:, 0] ** 2).coef_)
    np.testing.assert_array_equal(coefficients[0], coefficients[1])
    np.testing.assert_array_equal(coefficients[0], coefficients[2])
