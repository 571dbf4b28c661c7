"""Runs queries in DuckDB or SQLite: peers.py NAME ROWS.csv QUERIES. Each query is run once before its first round."""

import os
import sys
import tempfile
import time

COLUMNS = ["usage_user", "usage_system", "usage_idle", "usage_nice", "usage_iowait", "usage_irq", "usage_softirq",
           "usage_steal", "usage_guest", "usage_guest_nice"]


def duckdb(rows, folder):
    import duckdb

    connection = duckdb.connect(os.path.join(folder, "cpu.duckdb"))
    names = ", ".join(f"'{name}': 'BIGINT'" for name in COLUMNS)
    began = time.perf_counter()
    connection.execute(
        "CREATE TABLE cpu AS SELECT make_timestamp(time * 1000000) AS time, host, region, "
        + ", ".join(COLUMNS)
        + f" FROM read_csv('{rows}', header=false, columns={{'time': 'BIGINT', 'host': 'VARCHAR', 'region': 'VARCHAR', {names}}})"
        + " ORDER BY host, time")
    connection.execute("CHECKPOINT")
    print(f"# version {duckdb.__version__}, loaded from CSV in {time.perf_counter() - began:.2f} s, "
          f"{os.path.getsize(os.path.join(folder, 'cpu.duckdb')) / 1e6:.1f} MB")

    def run(sql):
        result = connection.execute(sql)
        return result.fetchnumpy()

    def summary(found):
        import numpy

        length, total = 0, 0.0
        for column in found.values():
            length = len(column)
            values = numpy.ma.getdata(column)
            if values.dtype.kind in "iuf":
                total += float(numpy.ma.sum(column))
        return length, total

    return run, summary


def sqlite(rows, folder):
    import csv
    import sqlite3

    connection = sqlite3.connect(os.path.join(folder, "cpu.sqlite"))
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA cache_size = -2000000")
    connection.execute("PRAGMA mmap_size = 8000000000")
    columns = ", ".join(f"{name} INTEGER" for name in COLUMNS)
    connection.execute(f"CREATE TABLE cpu (time INTEGER, host TEXT, region TEXT, {columns}, PRIMARY KEY (host, time)) WITHOUT ROWID")
    began = time.perf_counter()
    with open(rows, newline="") as file:
        marks = ", ".join("?" * (3 + len(COLUMNS)))
        connection.executemany(f"INSERT INTO cpu VALUES ({marks})", csv.reader(file))
    connection.execute("CREATE TABLE hosts AS SELECT DISTINCT host FROM cpu")
    connection.commit()
    print(f"# version {sqlite3.sqlite_version}, loaded from CSV in {time.perf_counter() - began:.2f} s, "
          f"{os.path.getsize(os.path.join(folder, 'cpu.sqlite')) / 1e6:.1f} MB")

    def run(sql):
        cursor = connection.execute(sql)
        return [column[0] for column in cursor.description], cursor.fetchall()

    def summary(found):
        names, lines = found
        numbers = [at for at, name in enumerate(names) if name not in ("time", "bin", "host", "max(time)")]
        return len(lines), float(sum(line[at] for line in lines for at in numbers if line[at] is not None))

    return run, summary


def main():
    name, rows, queries = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        run, summary = {"duckdb": duckdb, "sqlite": sqlite}[name](rows, folder)
        last = None
        for line in open(queries):
            query, sql = line.rstrip("\n").split("\t")
            # The slowest queries of SQLite take seconds.
            if name == "sqlite" and query == last and slow:
                continue
            if query != last:
                began = time.perf_counter()
                run(sql)
                slow = time.perf_counter() - began > 1.0
            last = query
            began = time.perf_counter()
            found = run(sql)
            elapsed = (time.perf_counter() - began) * 1e3
            length, total = summary(found)
            print(f"{query}\t{elapsed}\t{length}\t{total}")


main()
