"""Figures of windows as pandas and DuckDB compute them, a line for each hour.

Writes row_figures_oracles.txt: python3 row_figures_oracles.py > row_figures_oracles.txt
"""

import duckdb
import numpy
import pandas

ROWS = 20_000
i = numpy.arange(ROWS, dtype="int64")
seconds = 1_700_000_000 + i * 37 + i * i % 23
value = pandas.Series(i * 7919 % 1000 / 8, index=pandas.to_datetime(seconds * 10**9))
counter = pandas.Series((i * 5 % 3001).astype(float), index=value.index)

hours = value.resample("h")
table = pandas.DataFrame({
    "median": hours.median(),
    "p95": hours.quantile(0.95, interpolation="linear"),
    "distinct": hours.nunique(),
    "mode": hours.agg(lambda window: window.mode().min()),
    "spread": hours.max() - hours.min(),
})
steps = counter.diff()
table["delta"] = steps.resample("h").sum()
table["increase"] = steps.where(~(steps < 0), counter).resample("h").sum()

# The value as a function of time, cut at each hour.
first, last = value.index[0], value.index[-1]
cuts = pandas.date_range(first.ceil("h"), last.floor("h"), freq="h")
grid = value.index.union(cuts)
width = numpy.diff(grid.as_unit("ns").asi8) / 1e9
hour = grid[:-1].floor("h")
held = value.reindex(grid).ffill().to_numpy()[:-1]
line = value.reindex(grid).interpolate("time").to_numpy()
table["integral"] = pandas.Series((line[1:] + line[:-1]) / 2 * width, index=hour).groupby(level=0).sum()
area = pandas.Series(held * width, index=hour).groupby(level=0).sum()
table["time_mean"] = area / pandas.Series(width, index=hour).groupby(level=0).sum()

rows = pandas.DataFrame({"second": seconds, "value": value.to_numpy()})
asked = duckdb.sql("""
    SELECT second // 3600 AS hour, quantile_cont(value, 0.5), quantile_cont(value, 0.95),
        count(DISTINCT value), max(value) - min(value)
    FROM rows GROUP BY hour ORDER BY hour
""").fetchall()
for own, theirs in zip(table.itertuples(), asked, strict=True):
    ours = (own.median, own.p95, own.distinct, own.spread)
    assert numpy.allclose(ours, theirs[1:], rtol=1e-12), (own, theirs)

for start, row in table.iterrows():
    print(int(start.timestamp()), *(f"{figure:.6f}" for figure in row))
