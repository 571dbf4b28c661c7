"""Measures a table in SQLite: sqlite.py FILE ROWS INSERTS SINGLES SELECTS. The names of the figures are those of plan.rs.

The package keeps prepared statements by their texts. Threads are processes here, because Python runs one thread at a time.
"""

import multiprocessing
import os
import sqlite3
import sys
import time


def connect(file):
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA cache_size = -2000000")
    connection.execute("PRAGMA mmap_size = 8000000000")
    return connection


def row(id, sites):
    return id, f"site {id % sites}", id % 97 / 4, f"turbine {id}"


def look_up(file, rows, first, count, barrier, times):
    connection = connect(file)
    connection.execute("SELECT * FROM turbines WHERE id = ?", (0,)).fetchall()
    barrier.wait()
    began = time.perf_counter()
    for number in range(first, first + count):
        id = number * 0x9E3779B1 % rows
        found = connection.execute("SELECT * FROM turbines WHERE id = ?", (id,)).fetchall()
        assert len(found) == 1 and found[0][0] == id
    times.put(time.perf_counter() - began)


def threads(file, rows, selects, count):
    context = multiprocessing.get_context("fork")
    barrier, times = context.Barrier(count), context.Queue()
    running = [context.Process(target=look_up, args=(file, rows, thread * selects, selects, barrier, times))
               for thread in range(count)]
    for process in running:
        process.start()
    longest = max(times.get(timeout=600) for _ in running)
    for process in running:
        process.join()
    return longest


def main():
    file = sys.argv[1]
    rows, inserts, singles, selects = map(int, sys.argv[2:])
    sites = max(rows // 100, 1)
    connection = connect(file)
    connection.execute("CREATE TABLE turbines (id INTEGER PRIMARY KEY, site TEXT, rated REAL, name TEXT)")

    def rate(name, count, began):
        print(f"{name}\t{count / (time.perf_counter() - began)}")

    def micros(name, count, began):
        print(f"{name}\t{(time.perf_counter() - began) * 1e6 / count}")

    lines = [row(id, sites) for id in range(rows)]
    began = time.perf_counter()
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO turbines VALUES (?, ?, ?, ?)", lines)
    connection.execute("COMMIT")
    rate("load of Arrow batches (SQLite: executemany)", rows, began)
    began = time.perf_counter()
    connection.execute("CREATE INDEX turbines_site ON turbines (site)")
    rate("CREATE INDEX on site", rows, began)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    print(f"# version {sqlite3.sqlite_version}, {os.path.getsize(file) / 1e6:.1f} MB after the load")

    end = rows + inserts
    began = time.perf_counter()
    connection.execute("BEGIN")
    for id in range(rows, end):
        connection.execute("INSERT INTO turbines VALUES (?, ?, ?, ?)", row(id, sites))
    connection.execute("COMMIT")
    rate("INSERT with parameters, one transaction", inserts, began)
    began = time.perf_counter()
    for id in range(end, end + singles):
        connection.execute("INSERT INTO turbines VALUES (?, ?, ?, ?)", row(id, sites))
    rate("INSERT with parameters, a durable transaction each", singles, began)

    seconds = threads(file, rows, selects, 1)
    print(f"SELECT by key, parameter\t{seconds * 1e6 / selects}")
    print(f"SELECT by key, parameter, one thread\t{selects / seconds}")
    print(f"SELECT by key, parameter, two threads\t{2 * selects / threads(file, rows, selects, 2)}")
    ids = [number * 0x9E3779B1 % rows for number in range(singles)]
    began = time.perf_counter()
    for id in ids:
        assert len(connection.execute(f"SELECT * FROM turbines WHERE id = {id}").fetchall()) == 1
    micros("SELECT by key, key in the text", singles, began)
    began = time.perf_counter()
    for id in ids:
        connection.execute("SELECT * FROM turbines WHERE site = ?", (f"site {id % sites}",)).fetchall()
    micros("SELECT by index, 100 rows", singles, began)

    began = time.perf_counter()
    connection.execute("BEGIN")
    for id in ids:
        connection.execute("UPDATE turbines SET rated = ? WHERE id = ?", (0.5, id))
    connection.execute("COMMIT")
    rate("UPDATE by key, one transaction", singles, began)
    began = time.perf_counter()
    for id in ids:
        connection.execute("UPDATE turbines SET rated = ? WHERE id = ?", (0.75, id))
    rate("UPDATE by key, a durable transaction each", singles, began)


main()
