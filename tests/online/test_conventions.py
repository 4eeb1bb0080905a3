"""scikit-learn's own checks, and the project's, for every online method."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from plstream import CCIPCA, CIPLS, IPLS, OLPLS, SGDPLS, IncrementalLDA
from plstream.online.scatter import BLOCK_ROWS
from plstream.online.state import tile_rows

from ..checks import data_for, fed, streaming_checks

# The responses of the checks have one dimension, and so one component is all that SGDPLS has.
METHODS = [
    CIPLS(),
    CIPLS(target="labels"),
    CIPLS(target="values"),
    CIPLS(variant="paper"),
    CIPLS(variant="released"),
    CCIPCA(),
    IPLS(),
    IPLS(variant="released"),
    OLPLS(),
    OLPLS(target="labels"),
    OLPLS(target="values"),
    OLPLS(variant="released", eta=1e-7, eta_loading=1e-6),
    SGDPLS(1, random_state=0),
    SGDPLS(1, variant="released", n_epochs=2, random_state=0),
    SGDPLS(1, algorithm="msg"),
    SGDPLS(1, algorithm="incremental"),
    IncrementalLDA(),
    IncrementalLDA(solver="covariance-free"),
]

NO_MERGE = "a recursion over rows in order has no merge"


def excused_streaming_checks(method):
    excused = {"check_merge_is_associative_and_commutative": NO_MERGE, "check_merge_leaves_the_other_alone": NO_MERGE}
    if isinstance(method, OLPLS | SGDPLS) and method.variant == "released":
        excused["check_cold_start_with_one_row"] = "all components begin with the first row, or before it"
    return excused


STREAMING = [
    pytest.param(*parameters.values, id=f"{method}-{parameters.id}", marks=parameters.marks)
    for method in METHODS
    for parameters in streaming_checks(method, excused_streaming_checks(method))
]


@parametrize_with_checks(METHODS)
@pytest.mark.filterwarnings("ignore:The rows so far have only:UserWarning")
def test_sklearn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(("estimator", "check"), STREAMING)
def test_streaming_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_chunks_do_not_matter_with_more_rows_than_a_tile(method):
    """Nor than a block of IncrementalLDA."""
    n, m = 1100, 140
    assert n > tile_rows(m) > BLOCK_ROWS
    X, y = data_for(method, n, m)
    whole = fed(method, X, y, [n]).transform(X)
    np.testing.assert_array_equal(fed(method, X, y, [600, 13]).transform(X), whole)
