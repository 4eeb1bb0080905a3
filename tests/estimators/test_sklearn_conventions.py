"""scikit-learn's own checks."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from plstream import IncrementalPLS, IncrementalPLSClassifier, IncrementalPLSClassifierCV, IncrementalPLSCV


@parametrize_with_checks(
    [
        IncrementalPLS(),
        IncrementalPLS(solver="gram"),
        IncrementalPLS(solver="sketch"),
        IncrementalPLS(n_components=1, scale=False),
        IncrementalPLS(missing="model"),
        IncrementalPLS(solver="gram", missing="model"),
        IncrementalPLSClassifier(),
        IncrementalPLSClassifier(missing="model"),
        IncrementalPLSClassifier(solver="gram"),
        IncrementalPLSClassifier(solver="sketch", decision="regression"),
        IncrementalPLSCV(max_components=3),
        IncrementalPLSCV(max_components=2, cv=3, rule="one-se", solver="sketch", scale=False),
        IncrementalPLSClassifierCV(max_components=3),
        IncrementalPLSClassifierCV(max_components=2, cv=3, rule="one-se", solver="sketch", scale=False),
    ]
)
@pytest.mark.filterwarnings("ignore:X and y have only:UserWarning")
def test_sklearn_checks(estimator, check):
    check(estimator)
