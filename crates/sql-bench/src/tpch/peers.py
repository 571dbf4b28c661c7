"""Runs the queries of TPC-H in DuckDB or SQLite: peers.py NAME FOLDER STATEMENTS ROUNDS.

The folder has a CSV file for each table. A query is run once before its first round; its rows are printed, too.
"""

import csv
import datetime
import decimal
import os
import sys
import threading
import time

# Queries that take longer are interrupted.
SECONDS_MAX = 120


def duckdb(folder, tables, indexes):
    import duckdb

    file = os.path.join(folder, "tpch.duckdb")
    connection = duckdb.connect(file)
    began = time.perf_counter()
    for table, create in tables:
        connection.execute(create)
        connection.execute(f"COPY {table} FROM '{folder}/{table}.csv' (HEADER true, DELIMITER ',', QUOTE '\"')")
    connection.execute("CHECKPOINT")
    return connection, duckdb.__version__, file, began


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
    return connection, sqlite3.sqlite_version, file, began


def cell(value):
    if value is None:
        return "-"
    if isinstance(value, (int, float, decimal.Decimal)):
        return f"n{value}"
    if isinstance(value, datetime.date):
        return "t" + value.isoformat()
    return f"t{value}"


def timed(connection, query):
    """The rows of a query, and its milliseconds; an exception if it takes too long."""
    timer = threading.Timer(SECONDS_MAX, connection.interrupt)
    timer.start()
    try:
        began = time.perf_counter()
        rows = connection.execute(query).fetchall()
        return rows, (time.perf_counter() - began) * 1e3
    finally:
        timer.cancel()


def measure(connection, query, rounds):
    began = time.perf_counter()
    try:
        rows, first = timed(connection, query)
        # One round is enough for slow queries.
        times = [first] if first > 5_000 else [timed(connection, query)[1] for _ in range(rounds)]
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
    connection, version, file, began = load(folder, tables, statements["index"])
    print(f"# version {version}, loaded from CSV in {time.perf_counter() - began:.2f} s, "
          f"{os.path.getsize(file) / 1e6:.1f} MB")
    for query in statements["query"]:
        print("query")
        measure(connection, query, int(rounds))


main()
