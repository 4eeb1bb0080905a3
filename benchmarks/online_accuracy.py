"""Distance of one pass of the online methods to batch PLS: directions, subspaces, importances and accuracy.

Closeness is the cosine of the angle between each direction and that of batch PLS for the same rows, and the smallest
cosine between the two subspaces. Columns are centred and not scaled. The sketch of IncrementalPLS, which needs the
memory of a few hundred rows, is what we would use instead.

Run ``python benchmarks/online_accuracy.py --data DIR``, with ``--quick`` for a quick check, or with ``--tables 1,4``
for some of the tables. Without ``--data``, only data sets that need no files are used.
"""

from __future__ import annotations

import argparse
import os
import platform
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from measure import add_tables_option, log, markdown
from numpy.typing import NDArray
from scipy import linalg
from scipy.stats import spearmanr
from sketch_accuracy import (
    N_FOLDS,
    Pairs,
    Problem,
    Rows,
    cosine,
    digit_pairs,
    lfw_pairs,
    lfw_rows,
    tiny_imagenet,
    two_groups,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from plstream import CIPLS, IPLS, OLPLS, IncrementalPLS

Array: TypeAlias = NDArray[Any]
Float64Array: TypeAlias = NDArray[np.float64]
Order: TypeAlias = NDArray[np.intp]

N_COMPONENTS = 4
COMPONENTS = (2, N_COMPONENTS)


@dataclass(frozen=True)
class Method:
    """A way to fit in one pass."""

    name: str
    new: Callable[[int], Any]
    """Makes a model of so many components, with x_weights_."""
    has_vip: bool = True


METHODS = (
    Method("CIPLS", CIPLS),
    Method("CIPLS, amnesic = 0.5", partial(CIPLS, amnesic=0.5)),
    Method("CIPLS, paper", partial(CIPLS, variant="paper")),
    Method("CIPLS, released", partial(CIPLS, variant="released")),
    Method("IPLS", IPLS, has_vip=False),
    Method("OLPLS", OLPLS, has_vip=False),
    Method("sketch", partial(IncrementalPLS, scale=False, solver="sketch")),
)


# Data


def gaussian(n: int, seed: int) -> Rows:
    """Return 12 independent columns of different variance, and a linear response with noise of unit variance."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 12)) * np.sqrt(np.geomspace(12.0, 0.5, 12))
    return X, (X @ rng.standard_normal(12) + rng.standard_normal(n))[:, None]


GAUSSIAN = Problem("Gaussian", partial(gaussian, 5000, 0))


@dataclass(frozen=True)
class Plan:
    """What to measure, and on what."""

    problems: Sequence[Problem]
    folder: Path | None
    gaussian_rows: Sequence[int] = (1000, 5000, 50_000)
    n_seeds: int = 10
    n_orders: int = 5
    n_folds: int = N_FOLDS


def problems_of_files(folder: Path) -> list[Problem]:
    """Return the problems made of measured data."""
    return [
        Problem("LFW VGG16", partial(lfw_rows, folder, "vgg16_conv5_64px")),
        Problem("LFW FaceNet", partial(lfw_rows, folder, "facenet_embedding_512")),
        Problem("Tiny-ImageNet, two classes", partial(tiny_imagenet, folder, two_groups)),
    ]


def shuffled(problem: Problem, seed: int) -> Order:
    """Return a random order of the rows."""
    return np.random.default_rng(seed).permutation(len(problem.rows[0]))


# Closeness


def fit(method: Method, c: int, X: Array, y: Array) -> Any:
    """Fit a model to the rows in their order, or return None if it overflows."""
    try:
        return method.new(c).fit(X, y)
    except ValueError as error:
        if "no longer finite" not in str(error):
            raise
        return None


def fit_in_order(method: Method, c: int, problem: Problem, order: Order) -> Any:
    """Fit a model to the rows in some order."""
    X, Y = problem.rows
    return fit(method, c, X[order], Y[order, 0])


def cosines(method: Method, problem: Problem, order: Order) -> Float64Array:
    """Return the cosines of the directions to those of batch PLS, and then that of the subspaces."""
    exact = problem.exact_weights[:, :N_COMPONENTS]
    model = fit_in_order(method, N_COMPONENTS, problem, order)
    if model is None:
        return np.full(N_COMPONENTS + 1, np.nan)
    directions = np.abs(np.einsum("ij,ij->j", model.x_weights_, exact))
    basis = linalg.orth(model.x_weights_)
    return np.append(directions, cosine(basis, exact) if basis.shape == exact.shape else 0.0)


def closeness_rows(name: str, cases: Sequence[tuple[Problem, Order]]) -> Iterator[list[str]]:
    """Yield one row a method: the medians over the cases, and the least."""
    for method in METHODS:
        of_cases = np.array([cosines(method, problem, order) for problem, order in cases])
        cells = [median_and_worst(column) for column in of_cases.T]
        log(f"  {name}, {method.name}: {' '.join(cells)}")
        yield [name, method.name, *cells]


def median_and_worst(numbers: Float64Array) -> str:
    """Return the median, and if there are several numbers the least."""
    if np.isnan(numbers).any():
        return "overflow"
    worst = f" ({numbers.min():.3f})" if len(numbers) > 1 else ""
    return f"{np.median(numbers):.3f}{worst}"


# Tables

DIRECTIONS = (*(f"direction {i + 1}" for i in range(N_COMPONENTS)), "subspace")


def simulated(plan: Plan) -> str:
    """Return the table of cosines on simulated data, for growing numbers of rows."""
    rows: list[list[str]] = []
    for n in plan.gaussian_rows:
        problems = [Problem(f"Gaussian {seed}", partial(gaussian, n, seed)) for seed in range(plan.n_seeds)]
        rows += closeness_rows(f"{n:,}", [(problem, np.arange(n)) for problem in problems])
    return f"""## 1. Cosines, simulated data

12 Gaussian columns with variances from 12 to 0.5, and a linear response with noise of unit variance. Median (least) of
{plan.n_seeds} draws.

{markdown(("rows", "method", *DIRECTIONS), rows)}
"""


def measured(plan: Plan) -> str:
    """Return the table of cosines for several data sets."""
    rows: list[list[str]] = []
    for problem in plan.problems:
        rows += closeness_rows(problem.title(), [(problem, shuffled(problem, seed)) for seed in range(plan.n_orders)])
    return f"""## 2. Cosines, in random order

Median (least) of {plan.n_orders} orders of the rows.

{markdown(("data", "method", *DIRECTIONS), rows)}
"""


def by_label(plan: Plan) -> str:
    """Return the table of cosines for rows that are sorted by label."""
    rows = [
        row for problem in plan.problems for row in closeness_rows(problem.title(), [(problem, problem.by_label())])
    ]
    return f"""## 3. Cosines, sorted by label

All rows of one class come before those of the other; those of the simulated data by their response.

{markdown(("data", "method", *DIRECTIONS), rows)}
"""


def importances(plan: Plan) -> str:
    """Return the table of rank correlations of VIP."""
    methods = [method for method in METHODS if method.has_vip]
    rows = []
    for problem in plan.problems:
        for c in COMPONENTS:
            exact = IncrementalPLS(c, scale=False).fit(*problem.rows).vip_
            orders = [shuffled(problem, seed) for seed in range(plan.n_orders)]
            cells = [median_and_worst(vip_correlations(method, c, problem, orders, exact)) for method in methods]
            rows.append([problem.title(), str(c), *cells])
            log(f"  VIP, {problem.name}, c = {c}: {' '.join(cells)}")
    return f"""## 4. Variable importance

Spearman's rank correlation of the variable importance in projection (VIP) with that of batch PLS, over the columns of
X. Median (least) of {plan.n_orders} orders of the rows.

{markdown(("data", "c", *(method.name for method in methods)), rows)}
"""


def vip_correlations(
    method: Method, c: int, problem: Problem, orders: Sequence[Order], exact: Float64Array
) -> Float64Array:
    """Return the rank correlations for some orders of the rows."""
    models = [fit_in_order(method, c, problem, order) for order in orders]
    return np.array([np.nan if model is None else spearmanr(model.vip_, exact).statistic for model in models])


def verification(plan: Plan) -> str:
    """Return the table of the accuracy of face verification."""
    title = "## 5. Accuracy of face verification\n\n"
    if plan.folder is None:
        return f"{title}Left out: it needs the data.\n"
    rows = []
    for name, features in (("VGG16", "vgg16_conv5_64px"), ("FaceNet", "facenet_embedding_512")):
        pairs = lfw_pairs(plan.folder, features)
        percents = 100 * np.array([fold_accuracies(pairs, fold) for fold in range(plan.n_folds)])
        for c, (batch, *online) in zip(COMPONENTS, percents.transpose(1, 2, 0), strict=True):
            cells = [f"{ours.mean():.2f} ({(ours - batch).mean():+.2f})" for ours in online]
            rows.append([name, str(c), f"{batch.mean():.2f}", *cells])
            log(f"  {' '.join(rows[-1])}")
    return f"""{title}LFW, {plan.n_folds} of the {N_FOLDS} official folds: percent of pairs classified correctly, mean
over the folds, and in brackets the difference to batch PLS in points. PLS of the other folds' absolute differences,
with {N_COMPONENTS} components of which the first c are used; scores scaled to unit variance; a linear support vector
machine with C = 0.1. "nan": overflow.

{markdown(("features", "c", "batch PLS", *(method.name for method in METHODS)), rows)}
"""


def fold_accuracies(pairs: Pairs, fold: int) -> list[list[float]]:
    """Return the accuracies of batch PLS and of all methods for one fold, for each number of components."""
    train, test = pairs.split(fold)
    X, y = pairs.X[train], pairs.same[train]
    models = [IncrementalPLS(N_COMPONENTS, scale=False).fit(X, y)]
    models += [fit(method, N_COMPONENTS, X, y) for method in METHODS]

    def accuracies(model: Any) -> list[float]:
        if model is None:
            return [np.nan] * len(COMPONENTS)
        scores, test_scores = model.transform(X), model.transform(pairs.X[test])
        return [classifier().fit(scores[:, :c], y).score(test_scores[:, :c], pairs.same[test]) for c in COMPONENTS]

    log(f"  fold {fold}")
    return np.transpose([accuracies(model) for model in models]).tolist()


def classifier() -> Pipeline:
    """Return what tells pairs of one person from others by their scores."""
    return make_pipeline(StandardScaler(), LinearSVC(C=0.1, random_state=0))


TABLES: Sequence[Callable[[Plan], str]] = (simulated, measured, by_label, importances, verification)


def surroundings() -> str:
    """Return what the numbers depend on."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("plstream", "scikit-learn", "numpy", "scipy"))
    return f"""# Accuracy of the online methods

{packages}; Python {platform.python_version()}.

One pass, c = {N_COMPONENTS}, columns centred, not scaled. Cosines are those of the angles between directions and those
of batch PLS for the same rows, and the smallest between the subspaces that the {N_COMPONENTS} directions span. "sketch"
is `IncrementalPLS(solver="sketch")` of default size.
"""


def read_arguments() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    folder = os.environ.get("PLSTREAM_DATA")
    parser.add_argument("--data", type=Path, metavar="DIR", default=folder and Path(folder), help="folder of the data")
    parser.add_argument("--quick", action="store_true", help="little data, to see whether it works")
    add_tables_option(parser, len(TABLES))
    parser.add_argument("--repeats", type=int, help="draws of simulated data, and orders of rows")
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the tables to this file")
    return parser.parse_args()


def new_plan(folder: Path | None, *, quick: bool) -> Plan:
    """Return what to measure with the data there is."""
    if quick:
        problems = [GAUSSIAN, Problem("digit pairs", partial(digit_pairs, 1500, 400))]
        return Plan(problems, folder, gaussian_rows=(1000, 5000), n_seeds=3, n_orders=2, n_folds=2)
    return Plan([GAUSSIAN, Problem("digit pairs", digit_pairs), *(problems_of_files(folder) if folder else [])], folder)


def main() -> None:
    """Measure, and print each table when it is done."""
    options = read_arguments()
    plan = new_plan(options.data, quick=options.quick)
    if options.repeats:
        plan = replace(plan, n_seeds=options.repeats, n_orders=options.repeats)
    # How good it is the tables say.
    warnings.filterwarnings("ignore", message="sketch_size=.* is small for this data")
    sections = []
    # Many small products: on a busy machine threads wait for each other, for seconds.
    with threadpool_limits(1, user_api="blas"):
        for number in (0, *options.tables):
            log(f"table {number}")
            sections.append(TABLES[number - 1](plan) if number else surroundings())
            print(sections[-1], flush=True)
    if options.output is not None:
        options.output.write_text("\n".join(sections))


if __name__ == "__main__":
    main()
