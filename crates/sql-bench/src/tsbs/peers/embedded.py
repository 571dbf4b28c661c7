"""Loads rows and runs queries in a peer: NAME ROWS QUERIES. This part has the engines in the process of Python.

A function of an engine takes the file of the rows, an empty folder and a stack of contexts, and returns a `Peer`.
"""

import os
import time

COLUMNS = ["usage_user", "usage_system", "usage_idle", "usage_nice", "usage_iowait", "usage_irq", "usage_softirq",
           "usage_steal", "usage_guest", "usage_guest_nice"]

# Names of columns whose numbers are times or texts.
NOT_SUMMED = ("time", "bin", "host", "max(time)")


class Missing(Exception):
    """A peer is not there; the argument is what it lacks."""


class Peer:
    """A loaded peer: its name with its version, the seconds and bytes of the load, a function that runs a query to its
    last byte, and a function that returns the number of rows and the sum of a result."""

    def __init__(self, name, seconds, size, run, summary):
        self.name, self.seconds, self.size, self.run, self.summary = name, seconds, size, run, summary


def package(name):
    """Imports a package."""
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        raise Missing(name) from None


def arrow_table(rows):
    """The rows as a table of Arrow in memory."""
    with package("pyarrow.ipc").open_file(rows) as file:
        return file.read_all()


def arrow_summary(table):
    """Number of rows of a table of Arrow, and the sum of all numbers in it but times."""
    pyarrow = package("pyarrow")
    total = 0.0
    for name, column in zip(table.column_names, table.columns):
        types = pyarrow.types
        is_number = types.is_integer(column.type) or types.is_floating(column.type) or types.is_decimal(column.type)
        if is_number and name not in NOT_SUMMED:
            total += float(package("pyarrow.compute").sum(column).as_py() or 0)
    return table.num_rows, total


def duckdb(rows, folder, _):
    duckdb = package("duckdb")
    table = arrow_table(rows)
    path = os.path.join(folder, "cpu.duckdb")
    connection = duckdb.connect(path)
    # The bar would go to standard output, among the figures.
    connection.execute("SET enable_progress_bar = false")
    connection.register("arrow_rows", table)
    began = time.perf_counter()
    connection.execute("CREATE TABLE cpu AS SELECT CAST(time AS TIMESTAMP) AS time, host, region, "
                       f"{', '.join(COLUMNS)} FROM arrow_rows")
    connection.execute("CHECKPOINT")
    seconds = time.perf_counter() - began
    connection.unregister("arrow_rows")

    def run(sql):
        # execute() would copy the rows once more.
        return connection.sql(sql).to_arrow_table()

    return Peer(f"DuckDB {duckdb.__version__}", seconds, os.path.getsize(path), run, arrow_summary)


def sqlite(rows, folder, _):
    import csv
    import itertools

    sqlite3 = package("sqlite3")
    path = os.path.join(folder, "cpu.sqlite")
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA cache_size = -2000000")
    connection.execute("PRAGMA mmap_size = 8000000000")
    columns = ", ".join(f"{name} INTEGER" for name in COLUMNS)
    connection.execute(f"CREATE TABLE cpu (time INTEGER, host TEXT, region TEXT, {columns}, PRIMARY KEY (host, time)) WITHOUT ROWID")
    insert = f"INSERT INTO cpu VALUES ({', '.join('?' * (3 + len(COLUMNS)))})"
    seconds = 0.0
    with open(rows, newline="") as file:
        tuples = ((int(line[0]), line[1], line[2], *map(int, line[3:])) for line in csv.reader(file))
        while part := list(itertools.islice(tuples, 100_000)):
            began = time.perf_counter()
            connection.executemany(insert, part)
            seconds += time.perf_counter() - began
    began = time.perf_counter()
    connection.execute("CREATE INDEX cpu_time ON cpu (time)")
    connection.commit()
    seconds += time.perf_counter() - began
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    size = os.path.getsize(path)
    connection.execute("CREATE TABLE hosts AS SELECT DISTINCT host FROM cpu")
    # With statistics, SQLite finds the interval of each host by the primary key instead of scanning the table.
    connection.execute("ANALYZE")
    connection.commit()

    def run(sql):
        cursor = connection.execute(sql)
        return [column[0] for column in cursor.description], cursor.fetchall()

    def summary(found):
        names, lines = found
        numbers = [at for at, name in enumerate(names) if name not in NOT_SUMMED]
        return len(lines), float(sum(line[at] for line in lines for at in numbers if line[at] is not None))

    return Peer(f"SQLite {sqlite3.sqlite_version}", seconds, size, run, summary)


def chdb(rows, folder, stack):
    chdb, pyarrow = package("chdb"), package("pyarrow")
    table = arrow_table(rows)  # noqa: F841, the statement finds it by this name
    session = package("chdb.session").Session(os.path.join(folder, "chdb"))
    stack.callback(session.close)
    session.query("CREATE DATABASE bench ENGINE = Atomic")
    session.query("USE bench")
    columns = ", ".join(f"{name} Int64" for name in COLUMNS)
    session.query("CREATE TABLE cpu (time DateTime('UTC'), host LowCardinality(String), region LowCardinality(String), "
                  f"{columns}) ENGINE = MergeTree ORDER BY (host, time)")
    began = time.perf_counter()
    session.query("INSERT INTO cpu SELECT * FROM Python(table)")
    seconds = time.perf_counter() - began
    session.query("OPTIMIZE TABLE cpu FINAL")
    parts = "SELECT sum(bytes_on_disk) FROM system.parts WHERE database = 'bench' AND table = 'cpu' AND active"
    size = int(session.query(parts, "TSV").bytes())

    # The default is LZ4; the results of the other engines are not compressed.
    session.query("SET output_format_arrow_compression_method = 'none'")

    def run(sql):
        return session.query(sql, "Arrow").bytes()

    def summary(found):
        # An empty result may have no bytes at all.
        table = pyarrow.ipc.open_file(pyarrow.BufferReader(found)).read_all() if found else pyarrow.table({})
        return arrow_summary(table)

    return Peer(f"chDB {chdb.__version__}", seconds, size, run, summary)


