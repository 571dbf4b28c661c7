"""Runs the queries of TPC-H in DuckDB or SQLite: peers.py NAME FOLDER STATEMENTS ROUNDS.

The folder has a CSV file for each table. A query is run once before its first round; its rows are printed, too.
"""

import csv
import datetime
import decimal
import gc
import os
import sys
import threading
import time
from typing import Callable, NamedTuple

# Queries that take longer are interrupted.
SECONDS_MAX = 120

# Milliseconds from which one round of a query is enough.
SLOW_MS = 5000


class Engine(NamedTuple):
    """A loaded engine."""

    version: str
    file: str
    # The time of the load.
    seconds: float
    # Runs a query to its last row.
    run: Callable
    # Returns the tuples of a result.
    rows: Callable
    # Ends the running query with an exception.
    interrupt: Callable


def duckdb(folder, tables, indexes):
    import duckdb
    import pyarrow  # noqa: F401, DuckDB imports it for its results

    file = os.path.join(folder, "tpch.duckdb")
    connection = duckdb.connect(file)
    # The bar would go to standard output, among the figures.
    connection.execute("SET enable_progress_bar = false")
    began = time.perf_counter()
    for table, create in tables:
        connection.execute(create)
        connection.execute(f"COPY {table} FROM '{folder}/{table}.csv' (HEADER true, DELIMITER ',', QUOTE '\"')")
    connection.execute("CHECKPOINT")

    # execute() would copy the rows once more.
    def run(query):
        return connection.sql(query).to_arrow_table()

    def rows(table):
        return list(zip(*(column.to_pylist() for column in table.columns)))

    return Engine(duckdb.__version__, file, time.perf_counter() - began, run, rows, connection.interrupt)


def sqlite(folder, tables, indexes):
    import sqlite3

    file = os.path.join(folder, "tpch.sqlite")
    connection = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA cache_size = -2000000")
    connection.execute("PRAGMA mmap_size = 8000000000")
    began = time.perf_counter()
    for table, create in tables:
        connection.execute(create)
        connection.execute("BEGIN")
        with open(os.path.join(folder, table + ".csv"), newline="") as rows:
            reader = csv.reader(rows)
            marks = ", ".join("?" * len(next(reader)))
            connection.executemany(f"INSERT INTO {table} VALUES ({marks})", reader)
        connection.execute("COMMIT")
    for create in indexes:
        connection.execute(create)
    connection.execute("ANALYZE")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def run(query):
        return connection.execute(query).fetchall()

    return Engine(sqlite3.sqlite_version, file, time.perf_counter() - began, run, list, connection.interrupt)


def cell(value):
    """A value as `Cell::parse` in Rust reads it."""
    if value is None:
        return "-"
    if isinstance(value, int):
        return f"i{value}"
    if isinstance(value, (float, decimal.Decimal)):
        return f"n{value}"
    if isinstance(value, datetime.date):
        return "t" + value.isoformat()
    return f"t{value}"


def timed(engine, query):
    """The result of a query, and its milliseconds; an exception if it takes too long."""
    timer = threading.Timer(SECONDS_MAX, engine.interrupt)
    timer.start()
    # The collector of Python would walk all tuples of a result.
    gc.disable()
    try:
        began = time.perf_counter()
        found = engine.run(query)
        return found, (time.perf_counter() - began) * 1e3
    finally:
        gc.enable()
        timer.cancel()


def measure(engine, query, rounds):
    began = time.perf_counter()
    try:
        found, first = timed(engine, query)
        rows = engine.rows(found)
        # SQLite keeps plans by the text, so a comment makes it plan anew.
        texts = (f"{query} /* {number} */" for number in range(rounds))
        times = [first] if first > SLOW_MS else [timed(engine, text)[1] for text in texts]
    except Exception as error:
        if time.perf_counter() - began >= SECONDS_MAX:
            print("slow")
        else:
            print("failed\t" + " ".join(str(error).split()))
        return
    for elapsed in times:
        print(f"time\t{elapsed}")
    for row in rows:
        print("row\t" + "\t".join(map(cell, row)))


def main():
    name, folder, file, rounds = sys.argv[1:]
    statements = {"table": [], "index": [], "query": []}
    with open(file) as lines:
        for line in lines:
            kind, text = line.rstrip("\n").split("\t")
            statements[kind].append(text)
    tables = [(create.split()[2], create) for create in statements["table"]]
    load = {"DuckDB": duckdb, "SQLite": sqlite}[name]
    try:
        engine = load(folder, tables, statements["index"])
    except ImportError as error:
        print(f"# skipped, no {error.name}")
        return
    print(f"# version {engine.version}, loaded from CSV in {engine.seconds:.2f} s, "
          f"{os.path.getsize(engine.file) / 1e6:.1f} MB")
    for query in statements["query"]:
        print("query")
        measure(engine, query, int(rounds))


main()
