"""Draw what a model has learnt: scores, importances, explained variance and predictions, side by side in one file.

The wines come with scikit-learn: 13 measurements, and the alcohol is predicted from the other 12.

Run as ``python examples/plots.py [-o wine.png]``. It needs ``pip install 'plstream[plot]'``; without ``-o`` the file
is made and thrown away.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import matplotlib as mpl
import numpy as np
from sklearn.datasets import load_wine

from plstream import IncrementalPLS
from plstream.plots import ExplainedVarianceDisplay, PredictionDisplay, ScoresDisplay, VIPDisplay


def draw(file: Path) -> None:
    """Fit two of three wines, and draw what comes of the others."""
    import matplotlib.pyplot as plt

    wine = load_wine()
    alcohol, others = wine.data[:, 0], wine.data[:, 1:]
    test = np.arange(len(alcohol)) % 3 == 0
    model = IncrementalPLS(n_components=4).partial_fit(others[~test], alcohol[~test])

    figure, ((scores, importances), (variances, predictions)) = plt.subplots(2, 2, figsize=(11, 8))
    ScoresDisplay.from_estimator(model, others, wine.target_names[wine.target], ax=scores)
    VIPDisplay.from_estimator(model, ax=importances)
    ExplainedVarianceDisplay.from_estimator(model, ax=variances)
    PredictionDisplay.from_estimator(model, others[test], alcohol[test], name="alcohol, %", ax=predictions)
    figure.tight_layout()
    figure.savefig(file)
    print(f"{file.name}: four plots, {file.stat().st_size / 1000:.0f} kB")


def main() -> None:
    """Draw into a file, to keep or not."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, help="file to write")
    output = parser.parse_args().output
    mpl.use("Agg")
    if output is not None:
        draw(output)
        return
    with tempfile.TemporaryDirectory() as folder:
        draw(Path(folder, "wine.png"))


if __name__ == "__main__":
    main()
