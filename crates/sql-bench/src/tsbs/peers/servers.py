# This part has the engines that are servers. Each listens on a free port of the loopback interface, keeps its files in
# the folder of the measurement, and ends with the stack of contexts, after an error, too.

import ctypes
import glob
import http.client
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
from urllib.parse import urlencode

# Bytes of rows in one request.
BLOCK_BYTES = 4 << 20

# Seconds until an answer, a start or a load counts as failed.
PATIENCE_SECONDS = 600


def end_with_parent(number):
    """Asks Linux to send this process a signal when the process that started it ends, however it ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, number)  # PR_SET_PDEATHSIG


class Server:
    """A running server, and a connection to it."""

    def __init__(self, command, folder, port, environment=None):
        self.log = os.path.join(folder, "log")
        self.port = port
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, **(environment or {})},
                preexec_fn=lambda: end_with_parent(signal.SIGKILL))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def connect(self, path):
        """Waits until the server answers."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            if self.process.poll() is not None or time.monotonic() > deadline:
                with open(self.log, errors="replace") as log:
                    raise RuntimeError("the server did not start:\n" + "".join(log.readlines()[-20:]))
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS)
            try:
                self.request("GET", path)
                return
            except (OSError, http.client.HTTPException, RuntimeError):
                self.connection.close()
                time.sleep(0.05)

    def request(self, method, path, body=None):
        """The whole answer to a request."""
        self.connection.request(method, path, body)
        response = self.connection.getresponse()
        found = response.read()
        if response.status not in (200, 204):
            raise RuntimeError(f"{method} {path[:500]}: {response.status} {found[:500].decode(errors='replace')}")
        return found

    def send_lines(self, rows):
        """Sends rows in line protocol; returns the seconds without those of reading the file."""
        seconds = 0.0
        with open(rows, "rb") as file:
            while block := file.read(BLOCK_BYTES):
                block += file.readline()
                began = time.perf_counter()
                self.request("POST", "/write", block)
                seconds += time.perf_counter() - began
        return seconds


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def disk_bytes(folder, skipped=()):
    """Bytes of the disk blocks of all files in a folder, except in folders of some names."""
    total = 0
    for path, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(tuple(skipped))]
        total += sum(os.stat(os.path.join(path, name)).st_blocks * 512 for name in files)
    return total


def wait_until(condition, what):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what} did not come")
        time.sleep(0.005)


def count_lines(rows):
    with open(rows, "rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))


def questdb(rows, folder, stack):
    jar = os.environ.get("QUESTDB_JAR")
    if not jar or not os.path.isfile(jar):
        raise Missing("QUESTDB_JAR")
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if not java or not os.path.isfile(java):
        raise Missing("java")
    port = free_port()
    root = os.path.join(folder, "questdb")
    os.mkdir(root)
    server = stack.enter_context(Server(
        [java, "-XX:+UseParallelGC", f"-Djava.io.tmpdir={folder}", "-p", jar, "-m", "io.questdb/io.questdb.ServerMain",
         "-d", root], folder, port,
        {"QDB_HTTP_BIND_TO": f"127.0.0.1:{port}", "QDB_HTTP_MIN_ENABLED": "false", "QDB_PG_ENABLED": "false",
         "QDB_LINE_TCP_ENABLED": "false", "QDB_TELEMETRY_ENABLED": "false"}))

    def run(sql):
        return server.request("GET", "/exec?" + urlencode({"query": sql}))

    def summary(found):
        found = json.loads(found)
        types = [column["type"] for column in found["columns"]]
        numbers = [at for at, name in enumerate(types) if name in ("INT", "LONG", "FLOAT", "DOUBLE")]
        lines = found["dataset"]
        return len(lines), float(sum(line[at] for line in lines for at in numbers if line[at] is not None))

    server.connect("/exec?query=SELECT%201")
    build = json.loads(run("SELECT build()"))["dataset"][0][0]
    columns = ", ".join(f"{name} LONG" for name in COLUMNS)
    run(f"CREATE TABLE cpu (time TIMESTAMP, host SYMBOL, region SYMBOL, {columns}) TIMESTAMP(time) PARTITION BY DAY WAL")
    length = count_lines(rows)
    seconds = server.send_lines(rows)
    began = time.perf_counter()
    wait_until(lambda: json.loads(run("SELECT count() FROM cpu"))["dataset"] == [[length]], "the last row")
    seconds += time.perf_counter() - began
    (table,) = glob.glob(os.path.join(root, "db", "cpu~*", ""))
    size = disk_bytes(table, skipped=("wal", "txn_seq"))
    version = re.search(r"QuestDB ([^,\s]+)", build)
    return Peer(f"QuestDB {version[1] if version else build}", seconds, size, run, summary)


def victoria_version(program, metrics):
    """The version: as the server tells it, or as the package of Debian or the compiler of Go knows it."""
    told = re.search(r'short_version="v?([^"]+)"', metrics)
    if told:
        return told[1]
    for command, pattern in [(["dpkg-query", "-S", program], None),
                             (["go", "version", "-m", program], r"^\s*mod\s+\S+\s+v(\S+)")]:
        try:
            found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            if pattern is None:
                name = found.split(":")[0]
                return subprocess.run(["dpkg-query", "-W", "-f", "${Version}", name], capture_output=True, text=True,
                                      check=True).stdout
            return re.search(pattern, found, re.MULTILINE)[1]
        except (OSError, subprocess.CalledProcessError, TypeError):
            continue
    return "of unknown version"


def victoriametrics(rows, folder, stack):
    program = shutil.which("victoria-metrics")
    if not program:
        raise Missing("victoria-metrics")
    port = free_port()
    root = os.path.join(folder, "victoria")
    server = stack.enter_context(Server(
        [program, f"-storageDataPath={root}", f"-httpListenAddr=127.0.0.1:{port}", "-retentionPeriod=100y",
         "-search.disableCache"], folder, port))
    server.connect("/health")
    version = victoria_version(program, server.request("GET", "/metrics").decode())
    seconds = server.send_lines(rows)
    began = time.perf_counter()
    server.request("GET", "/internal/force_flush")
    seconds += time.perf_counter() - began
    server.request("GET", "/internal/force_merge")
    time.sleep(0.5)
    wait_until(lambda: not re.search(rb"^vm_active_force_merges [1-9]", server.request("GET", "/metrics"), re.MULTILINE),
               "the end of the merge")
    size = disk_bytes(os.path.join(root, "data")) + disk_bytes(os.path.join(root, "indexdb"))

    def run(text):
        kind, rest = text.split(" ", 1)
        if kind == "range":
            begin, end, step, query = rest.split(" ", 3)
            asked = {"query": query, "start": begin, "end": end, "step": step, "nocache": 1}
            return server.request("GET", "/api/v1/query_range?" + urlencode(asked))
        if kind == "instant":
            at, query = rest.split(" ", 1)
            return server.request("GET", "/api/v1/query?" + urlencode({"query": query, "time": at, "nocache": 1}))
        begin, end, query = rest.split(" ", 2)
        asked = {"match[]": query, "start": begin, "end": end}
        return server.request("GET", "/api/v1/export?" + urlencode(asked))

    def series(found):
        """The labels, times and values of each series."""
        if found.startswith(b'{"metric"'):
            for line in found.splitlines():
                line = json.loads(line)
                yield line["metric"], line["timestamps"], line["values"]
            return
        for one in json.loads(found)["data"]["result"] if found else []:
            points = one["values"] if "values" in one else [one["value"]]
            yield one["metric"], [point[0] for point in points], [float(point[1]) for point in points]

    def summary(found):
        # A row of SQL has the values of all metrics of a host at a time.
        lines, total = {}, 0.0
        for labels, times, values in series(found):
            host = tuple(sorted(pair for pair in labels.items() if pair[0] != "__name__"))
            lines.setdefault(host, set()).update(times)
            total += float(sum(values))
        return sum(map(len, lines.values())), total

    return Peer(f"VictoriaMetrics {version}", seconds, size, run, summary)


