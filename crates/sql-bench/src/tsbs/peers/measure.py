# This part loads the rows and runs the queries. The first line of a query is run beforehand; the others are its rounds, of
# which a slow query has only one.

import contextlib
import gc
import itertools
import tempfile

# Milliseconds from which a query is slow.
SLOW_MS = 1000.0

ENGINES = {"duckdb": duckdb, "sqlite": sqlite, "chdb": chdb, "questdb": questdb, "victoriametrics": victoriametrics}


def timed(run, text):
    """The milliseconds of a query, and its result. The collector of Python would walk all tuples of a result."""
    gc.disable()
    began = time.perf_counter()
    found = run(text)
    elapsed = (time.perf_counter() - began) * 1e3
    gc.enable()
    return elapsed, found


def measure(peer, queries):
    print(f"engine\t{peer.name}")
    print(f"loaded\t{peer.seconds}\t{peer.size}")
    pairs = (line.rstrip("\n").split("\t") for line in open(queries))
    for query, lines in itertools.groupby(pairs, key=lambda pair: pair[0]):
        beforehand, *rounds = (text for _, text in lines)
        is_slow = timed(peer.run, beforehand)[0] > SLOW_MS
        for text in rounds[:1] if is_slow else rounds:
            elapsed, found = timed(peer.run, text)
            length, total = peer.summary(found)
            # The result must not be freed while the next round is timed.
            found = None
            print(f"query\t{query}\t{elapsed}\t{length}\t{total!r}")


def main():
    name, rows, queries = sys.argv[1:]
    end_with_parent(signal.SIGTERM)
    # A signal ends the program like an error, and with it the server.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        try:
            peer = ENGINES[name](rows, folder, stack)
        except Missing as missing:
            print(f"# skipped, no {missing}")
            return
        measure(peer, queries)


main()
