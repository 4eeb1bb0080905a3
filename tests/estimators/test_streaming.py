"""Every estimator passes the project's streaming checks."""

import pytest

from plstream import IncrementalPLS, IncrementalPLSClassifier
from tests.checks import streaming_checks


@pytest.mark.parametrize(
    ("estimator", "check"),
    [
        *streaming_checks(IncrementalPLS(n_components=3)),
        *streaming_checks(IncrementalPLS(n_components=3, solver="sketch")),
        *streaming_checks(IncrementalPLSClassifier(n_components=3)),
        *streaming_checks(IncrementalPLSClassifier(n_components=3, solver="sketch")),
        *streaming_checks(IncrementalPLSClassifier(n_components=2, solver="sketch", sketch_size=8)),
        *streaming_checks(IncrementalPLS(n_components=2, solver="sketch", sketch_size=8)),
        *streaming_checks(
            IncrementalPLS(n_components=2, scale=False, forgetting=0.95),
            {
                "check_merge_is_associative_and_commutative": "with forgetting, parts of a stream are of different age",
                "check_merge_leaves_the_other_alone": "with forgetting, parts of a stream are of different age",
            },
        ),
        *streaming_checks(
            IncrementalPLS(n_components=2, solver="sketch", sketch_size=9, forgetting=0.9),
            {
                "check_merge_is_associative_and_commutative": "with forgetting, parts of a stream are of different age",
                "check_merge_leaves_the_other_alone": "with forgetting, parts of a stream are of different age",
            },
        ),
    ],
)
def test_streaming(estimator, check):
    check(estimator)
