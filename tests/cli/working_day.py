"""A table as it comes from a plant: an index, ids, days, text, gaps and sensors, in a CSV and in folders of Parquet."""

import sys
from pathlib import Path

import numpy as np

N_SENSORS = 94


def write_tables(folder, n_rows, *, parquet=True):
    """Write plant.csv and, in folders by year, plant/year=2023/part.parquet and so on."""
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(n_rows, 4))
    sensors = factors @ rng.normal(size=(4, N_SENSORS)) + 0.5 * rng.normal(size=(n_rows, N_SENSORS)) + 20
    site = rng.integers(3, size=n_rows)
    value = 70 + factors @ [2.0, -1.0, 0.5, 0.2] + 1.5 * site + rng.normal(size=n_rows)
    sensors[rng.random(size=sensors.shape) < 0.01] = np.nan
    names = [f"sensor_{k:02}" for k in range(N_SENSORS)]
    year = 2023 + np.arange(n_rows) * 3 // n_rows
    day = np.datetime64("2023-01-01") + (np.arange(n_rows) * 1095 // n_rows)
    columns = {
        "": [str(k) for k in range(n_rows)],
        "id": [f"P{k:07}" for k in range(n_rows)],
        "day": day.astype(str).tolist(),
        "site": np.array(["north", "south", "west"])[site].tolist(),
        "operator": [f"shift {k % 4}" for k in range(n_rows)],
        "yield": [f"{v:.4f}" for v in value],
    }
    numbers = [["" if v != v else f"{v:.4f}" for v in column] for column in sensors.T.tolist()]  # noqa: PLR0124
    with (Path(folder) / "plant.csv").open("w") as file:
        file.write(",".join([*columns, *names]) + "\n")
        file.writelines(",".join(fields) + "\n" for fields in zip(*columns.values(), *numbers, strict=True))
    if not parquet:
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    plain = {name: columns[name] for name in ("id", "site", "operator")}
    table = pa.table(
        {
            **plain,
            "day": pa.array(day),
            "yield": value,
            **{name: pa.array(column, from_pandas=True) for name, column in zip(names, sensors.T, strict=True)},
            # Where pandas keeps the numbers of rows.
            "__index_level_0__": np.arange(n_rows),
        }
    )
    for number in np.unique(year):
        part = Path(folder) / "plant" / f"year={number}"
        part.mkdir(parents=True)
        pq.write_table(table.filter(pa.array(year == number)), part / "part-0.parquet")


if __name__ == "__main__":
    write_tables(sys.argv[1], int(sys.argv[2]))
