"""Measures a table in SQLite: sqlite.py FILE NAME=NUMBER... The numbers are those of `Plan` in Rust, and the names of the
figures are those of plan.rs.

The package keeps prepared statements by their texts. Threads are processes here, because Python runs one thread at a time.
Results are checked after the clock has stopped, because a check in Python takes about as long as a look-up.
"""

import gc
import multiprocessing
import os
import sys
import time

# Seconds that a process waits for the others.
PATIENCE_SECONDS = 60

INSERT = "INSERT INTO turbines VALUES (?, ?, ?, ?)"
SELECT = "SELECT * FROM turbines WHERE id = ?"
UPDATE = "UPDATE turbines SET rated = ? WHERE id = ?"


class Plan:
    """The rows, and how many of them each measurement takes."""

    def __init__(self, arguments):
        numbers = {name: int(number) for name, number in (argument.split("=") for argument in arguments)}
        self.rows, self.inserts = numbers["rows"], numbers["inserts"]
        self.singles, self.selects = numbers["singles"], numbers["selects"]
        self.sites, self.scatter, self.ratings = numbers["sites"], numbers["scatter"], numbers["ratings"]

    def rated(self, id):
        return id % self.ratings / 4

    def row(self, id):
        return id, f"site {id % self.sites}", self.rated(id), f"turbine {id}"

    def scattered(self, number):
        return number * self.scatter % self.rows


def connect(file):
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA cache_size = -2000000")
    connection.execute("PRAGMA mmap_size = 8000000000")
    return connection


def expect(found, expected, what):
    if found != expected:
        raise ValueError(f"{what}: {str(found)[:500]} instead of {str(expected)[:500]}")


def look_up(file, plan, thread, barrier, times):
    """Sends the seconds of all look-ups of a thread, or the text of an error."""
    try:
        connection = connect(file)
        connection.execute(SELECT, (0,)).fetchall()
        ids = [plan.scattered(number) for number in range(thread * plan.selects, (thread + 1) * plan.selects)]
        barrier.wait()
        began = time.perf_counter()
        found = [connection.execute(SELECT, (id,)).fetchall() for id in ids]
        seconds = time.perf_counter() - began
        expect(found, [[plan.row(id)] for id in ids], "rows by key")
        times.put(seconds)
    except Exception as error:
        # The other processes would wait in vain.
        barrier.abort()
        times.put(repr(error))


def threads(file, plan, count):
    context = multiprocessing.get_context("fork")
    barrier, times = context.Barrier(count, timeout=PATIENCE_SECONDS), context.Queue()
    running = [context.Process(target=look_up, args=(file, plan, thread, barrier, times), daemon=True)
               for thread in range(count)]
    for process in running:
        process.start()
    ended = [times.get(timeout=600) for _ in running]
    for process in running:
        process.join()
    errors = [error for error in ended if isinstance(error, str)]
    if errors:
        raise RuntimeError("; ".join(errors))
    return max(ended)


def main():
    file, plan = sys.argv[1], Plan(sys.argv[2:])
    connection = connect(file)
    connection.execute("CREATE TABLE turbines (id INTEGER PRIMARY KEY, site TEXT, rated REAL, name TEXT)")
    # The collector would walk all rows that Python holds.
    gc.disable()

    def rate(name, count, seconds):
        print(f"{name}\t{count / seconds}")

    def micros(name, count, seconds):
        print(f"{name}\t{seconds * 1e6 / count}")

    def expect_rows(count):
        found = connection.execute("SELECT count(*), sum(rated) FROM turbines").fetchone()
        expect(found, (count, sum(map(plan.rated, range(count)))), "count and sum")

    lines = [plan.row(id) for id in range(plan.rows)]
    began = time.perf_counter()
    connection.execute("BEGIN")
    connection.executemany(INSERT, lines)
    connection.execute("COMMIT")
    rate("load of Arrow batches (SQLite: executemany)", plan.rows, time.perf_counter() - began)
    expect_rows(plan.rows)
    began = time.perf_counter()
    connection.execute("CREATE INDEX turbines_site ON turbines (site)")
    rate("CREATE INDEX on site", plan.rows, time.perf_counter() - began)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    print(f"# version {sqlite3.sqlite_version}, {os.path.getsize(file) / 1e6:.1f} MB after the load")

    end = plan.rows + plan.inserts
    lines = [plan.row(id) for id in range(plan.rows, end)]
    began = time.perf_counter()
    connection.execute("BEGIN")
    for line in lines:
        connection.execute(INSERT, line)
    connection.execute("COMMIT")
    rate("INSERT with parameters, one transaction", plan.inserts, time.perf_counter() - began)
    lines = [plan.row(id) for id in range(end, end + plan.singles)]
    began = time.perf_counter()
    for line in lines:
        connection.execute(INSERT, line)
    rate("INSERT with parameters, a durable transaction each", plan.singles, time.perf_counter() - began)
    count = end + plan.singles
    expect_rows(count)

    began = time.perf_counter()
    for id in range(plan.selects):
        connection.execute("SELECT ?", (id,)).fetchall()
    micros("SELECT of a parameter, which reads nothing", plan.selects, time.perf_counter() - began)
    seconds = threads(file, plan, 1)
    micros("SELECT by key, parameter", plan.selects, seconds)
    rate("SELECT by key, parameter, one thread", plan.selects, seconds)
    rate("SELECT by key, parameter, two threads", 2 * plan.selects, threads(file, plan, 2))
    ids = [plan.scattered(number) for number in range(plan.singles)]
    began = time.perf_counter()
    found = [connection.execute(f"SELECT * FROM turbines WHERE id = {id}").fetchall() for id in ids]
    micros("SELECT by key, key in the text", plan.singles, time.perf_counter() - began)
    expect(found, [[plan.row(id)] for id in ids], "rows by key")
    sites = [id % plan.sites for id in ids]
    began = time.perf_counter()
    found = [connection.execute("SELECT * FROM turbines WHERE site = ?", (f"site {site}",)).fetchall() for site in sites]
    micros("SELECT by index, 100 rows", plan.singles, time.perf_counter() - began)
    expect(found, [[plan.row(id) for id in range(site, count, plan.sites)] for site in sites], "rows by index")

    def update(rated):
        return [connection.execute(UPDATE, (rated, id)).rowcount for id in ids]

    # SQLite writes nothing if the value is the same already, so each pass has its own.
    began = time.perf_counter()
    connection.execute("BEGIN")
    changed = update(0.5)
    connection.execute("COMMIT")
    rate("UPDATE by key, one transaction", plan.singles, time.perf_counter() - began)
    expect(changed, [1] * plan.singles, "changed rows")
    began = time.perf_counter()
    changed = update(0.75)
    rate("UPDATE by key, a durable transaction each", plan.singles, time.perf_counter() - began)
    expect(changed, [1] * plan.singles, "changed rows")
    found = [connection.execute("SELECT rated FROM turbines WHERE id = ?", (id,)).fetchone() for id in ids]
    expect(found, [(0.75,)] * plan.singles, "changed values")


try:
    import sqlite3
except ImportError:
    print("# skipped, no sqlite3")
else:
    main()
