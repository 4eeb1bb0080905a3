"""Makes model_files.zip: model files of format 1, and what the models in them computed when they were written.

Run it with ``python tests/samples/model_files.py`` if there is a new format, and keep the files of the old ones.
"""

import io
import sys
import warnings
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from plstream import CCIPCA, CIPLS, ILFS, IPLS, OLPLS, SGDPLS, IncrementalLDA, IncrementalPLS, VIPSelector, save

FOLDER = Path(__file__).parent
rng = np.random.default_rng(0)
X = rng.normal(size=(24, 5)) + 3
y = X[:, 0] - X[:, 1] + rng.normal(size=24)
LABELS = np.array(["low", "middle", "hïgh"])[np.digitize(y, [-1, 1])]

MODELS = {
    "unfitted": (IncrementalPLS(3, forgetting=0.9), None),
    "multipass": (IncrementalPLS(), y),
    "gram": (IncrementalPLS(solver="gram"), y),
    "sketch": (IncrementalPLS(1, solver="sketch", sketch_size=4), y),
    "cipls": (CIPLS(), LABELS),
    "cipls_paper": (CIPLS(variant="paper"), y),
    "ccipca": (CCIPCA(amnesic=(2, 10, 50)), y),
    "ipls": (IPLS(), y),
    "olpls": (OLPLS(), LABELS),
    "ipls_released": (IPLS(variant="released"), y),
    "olpls_released": (OLPLS(variant="released", eta=0.001, eta_loading=0.001), LABELS),
    "sgdpls_released": (SGDPLS(1, variant="released", n_epochs=2, random_state=0), LABELS),
    "sgdpls": (SGDPLS(1, random_state=np.random.RandomState(0)), LABELS),
    "msg": (SGDPLS(1, algorithm="msg"), LABELS),
    "incremental": (SGDPLS(1, algorithm="incremental"), LABELS),
    "lda": (IncrementalLDA(), LABELS),
    "lda_covariance_free": (IncrementalLDA(solver="covariance-free"), LABELS),
    "ilfs": (ILFS(2), LABELS),
    "vip": (VIPSelector(CIPLS(), n_features_to_select=2), y),
}


def main():
    expected = {"X": X, "y": y, "labels": LABELS}
    with (
        TemporaryDirectory() as folder,
        zipfile.ZipFile(FOLDER / "model_files.zip", "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for name, (model, target) in MODELS.items():
            if target is not None:
                model.fit(X, target)
                expected[f"{name}_scores"] = model.transform(X)
                if hasattr(model, "predict"):
                    expected[f"{name}_prediction"] = model.predict(X)
                if hasattr(model, "partial_fit"):
                    save(model, Path(folder, "model"))
                    archive.write(Path(folder, "model"), f"{name}.plstream")
                    expected[f"{name}_later_scores"] = model.partial_fit(X[::-1], target[::-1]).transform(X)
                    continue
            save(model, Path(folder, "model"))
            archive.write(Path(folder, "model"), f"{name}.plstream")
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **expected)
        archive.writestr("expected.npz", buffer.getvalue())


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.exit(main())
