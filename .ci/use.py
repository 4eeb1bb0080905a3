"""Use an installed plstream without extras: fit, stream, merge, save, load, select, and name missing extras."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
from sklearn.cross_decomposition import PLSRegression
from sklearn.datasets import load_diabetes

import plstream
from plstream import CIPLS, IncrementalPLS, VIPSelector, load, open_source, save

X, y = load_diabetes(return_X_y=True)
model = IncrementalPLS(3).fit(X, y)
np.testing.assert_allclose(model.coef_, PLSRegression(3).fit(X, y).coef_, rtol=1e-9)
first, second = IncrementalPLS(3).partial_fit(X[:200], y[:200]), IncrementalPLS(3).partial_fit(X[200:], y[200:])
np.testing.assert_allclose(first.merge(second).coef_, model.coef_, rtol=1e-9)
save(model, "model.plstream")
np.testing.assert_array_equal(load("model.plstream").coef_, model.coef_)
np.savetxt("rows.csv", np.column_stack([X, y]), delimiter=",", header=",".join("abcdefghijy"), comments="")
np.testing.assert_allclose(IncrementalPLS(3).fit(open_source("rows.csv", target="y")).coef_, model.coef_, rtol=1e-9)
assert CIPLS(2).partial_fit(X, y > 150).transform(X).shape == (442, 2)
assert VIPSelector(model, n_features_to_select=3).fit(X, y).transform(X).shape == (442, 3)

for name in plstream.__all__:
    getattr(plstream, name)

# Functions that need an extra name it.
command = shutil.which("plstream", path=str(Path(sys.executable).parent))
answer = subprocess.run([command, "info", "model.plstream"], capture_output=True, text=True, check=False)
assert answer.returncode == 2, answer
assert "plstream[cli]" in answer.stderr, answer.stderr
assert "Traceback" not in answer.stderr, answer.stderr
Path("rows.parquet").write_bytes(b"PAR1")
try:
    open_source("rows.parquet", target="y")
except ImportError as error:
    assert "plstream[io]" in str(error), error
else:
    sys.exit("A Parquet file was opened without pyarrow.")
