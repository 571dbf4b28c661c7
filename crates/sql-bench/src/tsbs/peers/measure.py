# This part loads the rows and runs the queries: each once before its first round, and in a single round if it is slow.

import contextlib
import tempfile

# Seconds from which a query is slow.
SLOW_SECONDS = 1.0

ENGINES = {"duckdb": duckdb, "sqlite": sqlite, "chdb": chdb, "questdb": questdb, "victoriametrics": victoriametrics}


def measure(peer, queries):
    print(f"engine\t{peer.name}")
    print(f"loaded\t{peer.seconds}\t{peer.size}")
    last, slow = None, False
    for line in open(queries):
        query, text = line.rstrip("\n").split("\t")
        if query == last and slow:
            continue
        if query != last:
            began = time.perf_counter()
            peer.run(text)
            slow = time.perf_counter() - began > SLOW_SECONDS
        last = query
        began = time.perf_counter()
        found = peer.run(text)
        elapsed = (time.perf_counter() - began) * 1e3
        length, total = peer.summary(found)
        print(f"query\t{query}\t{elapsed}\t{length}\t{total}")


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
