//! `import`: loads files of measurements into a database, with the command-line programs that a user would call.
//! Measures CPU seconds of all their threads and processes, in user mode and in the kernel.
//!
//! | case | file |
//! |---|---|
//! | `csv` | a time, four tags and three values in each row; `--mib` of it |
//! | `csv-gz` | the same file, compressed with gzip |
//! | `json` | the same rows as JSON, one object per line |
//! | `line` | the same rows in the line protocol, which the peers do not read |
//!
//! `NAME-wall` is the elapsed time, `NAME-bytes` the size of the database afterwards.
//!
//! | program | how |
//! |---|---|
//! | Tidalite | `tidalite import` with four options `--tag` |
//! | DuckDB | `create table ... as select * from read_csv(...)`, `read_json(...)`; types are detected |
//! | SQLite | `sqlite3` with `.import` into a table with types; gzip through a pipe; JSON as lines, taken apart with `->>` |
//!
//! The peers keep the table in the order of the file, without an index on time; Tidalite sorts rows into series. All of
//! them commit durably. After each import, the number of rows and the sum of a column are compared with the file.
//!
//! The benchmark does not build the programs: `TIDALITE` names our program (default `target/release/tidalite`),
//! `DUCKDB` a `duckdb` program or a Python interpreter with the module `duckdb`, `SQLITE` the program `sqlite3`. A peer
//! that is not found is skipped, with a note.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::args::Options;
use crate::engine::Result;
use crate::engine::data::Random;
use crate::os;
use crate::report::Line;

const CASES: [&str; 4] = ["csv", "csv-gz", "json", "line"];
/// Number of devices. Each has one row per second, and its tags are derived from its number.
const DEVICES: u64 = 100;
/// 2024-01-01T00:00:00Z, in seconds since 1970.
const START: u64 = 1_704_067_200;

/// The number of rows of the file, and the sum of its first value, in hundredths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Content {
    rows: u64,
    hundredths: i64,
}

/// Costs of one import.
struct Cost {
    cpu_seconds: f64,
    wall_seconds: f64,
    bytes: u64,
}

/// A program that can import files.
struct Program {
    name: &'static str,
    path: OsString,
}

/// Runs the suite `import`.
pub(crate) fn run(options: &Options) -> Result<Vec<Line>> {
    let dir = os::TempDir::within(&options.dir, "import")?;
    let content = write_files(dir.path(), options.mib << 20)?;
    let programs = programs(&options.peers)?;
    let mut lines = Vec::new();
    for case in CASES {
        if !options.chosen(case) {
            continue;
        }
        let mut costs: Vec<Vec<Cost>> = programs.iter().map(|_| Vec::new()).collect();
        for round in 0..options.rounds {
            for turn in 0..programs.len() {
                let at = (turn + round) % programs.len();
                let program = &programs[at];
                if at > 0 && case == "line" {
                    continue;
                }
                let cost = import(program, case, dir.path(), content)?;
                eprintln!(
                    "  {case:<8} {:<10} {:>8.3} CPU s {:>8.3} s",
                    program.name, cost.cpu_seconds, cost.wall_seconds
                );
                costs[at].push(cost);
            }
        }
        for (unit, suffix, of) in [
            ("CPU s", "", (|cost| cost.cpu_seconds) as fn(&Cost) -> f64),
            ("s", "-wall", |cost| cost.wall_seconds),
            ("bytes", "-bytes", |cost| cost.bytes as f64),
        ] {
            let values = |at: usize| costs[at].iter().map(of).collect::<Vec<f64>>();
            let peers = (1..programs.len()).filter(|at| !costs[*at].is_empty());
            let line = |peer: &'static str, theirs: Vec<f64>| Line {
                suite: "import",
                case: format!("{case}{suffix}"),
                unit,
                peer,
                ours: values(0),
                theirs,
                less_is_better: true,
            };
            let before = lines.len();
            lines.extend(peers.map(|at| line(programs[at].name, values(at))));
            if lines.len() == before {
                lines.push(line("", Vec::new()));
            }
        }
    }
    Ok(lines)
}

/// The program of Tidalite, and the programs of the installed peers.
fn programs(peers: &[String]) -> Result<Vec<Program>> {
    let named = |variable: &str, default: &str| {
        std::env::var_os(variable).unwrap_or_else(|| OsString::from(default))
    };
    let ours = named("TIDALITE", "target/release/tidalite");
    if !answers(&ours) {
        let path = ours.display();
        return Err(format!(
            "{path} cannot be run: build it with cargo build --release, or set TIDALITE"
        )
        .into());
    }
    let mut programs = vec![Program {
        name: "tidalite",
        path: ours,
    }];
    for (name, variable, default) in [
        ("duckdb", "DUCKDB", "duckdb"),
        ("sqlite", "SQLITE", "sqlite3"),
    ] {
        if !peers.is_empty() && !peers.iter().any(|peer| peer == name) {
            continue;
        }
        let path = named(variable, default);
        match answers(&path) {
            true => programs.push(Program { name, path }),
            false => eprintln!(
                "note: {name} takes no part: {} cannot be run; set {variable}",
                path.display()
            ),
        }
    }
    Ok(programs)
}

/// Whether a program can be run.
fn answers(path: &OsString) -> bool {
    let mut command = Command::new(path);
    command
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Writes the files of all cases.
fn write_files(dir: &Path, csv_bytes: u64) -> Result<Content> {
    let open = |name: &str| Ok::<_, std::io::Error>(BufWriter::new(File::create(dir.join(name))?));
    let (mut csv, mut json, mut lines) = (open("data.csv")?, open("data.jsonl")?, open("data.lp")?);
    let mut gz = GzEncoder::new(open("data.csv.gz")?, Compression::default());
    let header = "time,region,site,device,kind,temp,pressure,load\n";
    csv.write_all(header.as_bytes())?;
    gz.write_all(header.as_bytes())?;
    let mut random = Random::new(42);
    let mut walks = vec![[2150_i64, 101_325, 50_000]; DEVICES as usize];
    let (mut content, mut written) = (Content::default(), header.len() as u64);
    while written < csv_bytes {
        let (device, second) = (content.rows % DEVICES, START + content.rows / DEVICES);
        let (region, site, kind) = (device % 4, device % 20, device % 3);
        let bits = random.next();
        for (place, value) in walks[device as usize].iter_mut().enumerate() {
            *value += ((bits >> (8 * place)) & 0xff) as i64 % 21 - 10;
        }
        let [temp, pressure, load] = walks[device as usize];
        let values = (
            decimal(temp, 100),
            decimal(pressure, 100),
            decimal(load, 1000),
        );
        let time = timestamp(second);
        let row = format!(
            "{time},region{region},site{site},device{device},kind{kind},{},{},{}\n",
            values.0, values.1, values.2
        );
        csv.write_all(row.as_bytes())?;
        gz.write_all(row.as_bytes())?;
        writeln!(
            json,
            r#"{{"time":"{time}","region":"region{region}","site":"site{site}","device":"device{device}","kind":"kind{kind}","temp":{},"pressure":{},"load":{}}}"#,
            values.0, values.1, values.2
        )?;
        writeln!(
            lines,
            "m,region=region{region},site=site{site},device=device{device},kind=kind{kind} temp={},pressure={},load={} {second}000000000",
            values.0, values.1, values.2
        )?;
        written += row.len() as u64;
        content.rows += 1;
        content.hundredths += temp;
    }
    for mut file in [csv, json, lines, gz.finish()?] {
        file.flush()?;
    }
    Ok(content)
}

/// Formats a number of units, such as hundredths, as a decimal.
fn decimal(parts: i64, scale: i64) -> String {
    let digits = scale.ilog10() as usize;
    let sign = if parts < 0 { "-" } else { "" };
    let (whole, rest) = (parts.abs() / scale, parts.abs() % scale);
    format!("{sign}{whole}.{rest:0digits$}")
}

/// A time in January 2024 as text.
fn timestamp(seconds: u64) -> String {
    let since = seconds - START;
    let (day, rest) = (since / 86_400 + 1, since % 86_400);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("2024-01-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Imports a file with a program into a new database, and checks the stored rows.
fn import(program: &Program, case: &str, dir: &Path, content: Content) -> Result<Cost> {
    let file = dir.join(match case {
        "csv" => "data.csv",
        "csv-gz" => "data.csv.gz",
        "json" => "data.jsonl",
        _ => "data.lp",
    });
    let database = dir.join(format!("{}.db", program.name));
    for suffix in ["", "-lock", ".wal", "-journal"] {
        let path = PathBuf::from(format!("{}{suffix}", database.display()));
        if path.exists() {
            std::fs::remove_file(path)?;
        }
    }
    let mut command = match program.name {
        "tidalite" => ours(program, case, &file, &database),
        "duckdb" => duckdb(program, &database, &duckdb_import(&file, case)),
        _ => sqlite(program, &database, &sqlite_import(&file, case)),
    };
    let (start, before) = (Instant::now(), os::Spent::of_children());
    let output = command.output()?;
    let wall_seconds = start.elapsed().as_secs_f64();
    let cpu_seconds = os::Spent::of_children().seconds() - before.seconds();
    if !output.status.success() {
        let told = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{} failed with {case}: {told}", program.name).into());
    }
    let cost = Cost {
        cpu_seconds,
        wall_seconds,
        bytes: std::fs::metadata(&database)?.len(),
    };
    let found = content_of(program, case, &database)?;
    if found != content {
        let name = program.name;
        return Err(format!("{name} stored {found:?} of {content:?} with {case}").into());
    }
    Ok(cost)
}

fn ours(program: &Program, case: &str, file: &Path, database: &Path) -> Command {
    let mut command = Command::new(&program.path);
    command.arg("import").arg(database).arg(file).arg("--quiet");
    if case != "line" {
        for tag in ["region", "site", "device", "kind"] {
            command.args(["--tag", tag]);
        }
    }
    command
}

/// The command that runs SQL in DuckDB, either as a program of its own or as a module of Python.
fn duckdb(program: &Program, database: &Path, sql: &str) -> Command {
    let mut command = Command::new(&program.path);
    let name = program.path.to_string_lossy();
    if name.contains("python") {
        let script = "import duckdb, sys\nfor row in duckdb.connect(sys.argv[1]).execute(sys.argv[2]).fetchall(): print(*row, sep='|')";
        command.args(["-c", script]).arg(database).arg(sql);
    } else {
        command
            .args(["-noheader", "-list"])
            .arg(database)
            .args(["-c", sql]);
    }
    command
}

fn duckdb_import(file: &Path, case: &str) -> String {
    let file = file.display();
    match case {
        "json" => format!(
            "create table t as select * from read_json('{file}', format = 'newline_delimited')"
        ),
        _ => format!("create table t as select * from read_csv('{file}')"),
    }
}

fn sqlite(program: &Program, database: &Path, script: &[String]) -> Command {
    let mut command = Command::new(&program.path);
    command.arg("-bail").arg(database);
    for line in script {
        command.arg("-cmd").arg(line);
    }
    command.arg("select 0 where false");
    command
}

fn sqlite_import(file: &Path, case: &str) -> Vec<String> {
    let file = file.display();
    let table = "create table t (time text, region text, site text, device text, kind text, temp real, pressure real, load real)";
    let lines: Vec<String> = match case {
        "csv" => vec![table.to_owned(), format!(".import --csv --skip 1 {file} t")],
        "csv-gz" => vec![
            table.to_owned(),
            format!(".import --csv --skip 1 \"|gzip -dc {file}\" t"),
        ],
        _ => {
            let keys = [
                "time", "region", "site", "device", "kind", "temp", "pressure", "load",
            ];
            let columns = keys.map(|key| format!("line ->> '{key}'")).join(", ");
            vec![
                table.to_owned(),
                "create temp table lines (line text)".to_owned(),
                ".mode ascii".to_owned(),
                ".separator \"\\001\" \"\\n\"".to_owned(),
                format!(".import {file} lines"),
                format!("insert into t select {columns} from lines"),
            ]
        }
    };
    lines
}

/// Number of rows in a database, and the sum of the first value.
fn content_of(program: &Program, case: &str, database: &Path) -> Result<Content> {
    const QUESTION: &str = "select count(*), sum(temp) from t";
    let mut command = match program.name {
        "tidalite" => {
            let pattern = if case == "line" { "m.temp*" } else { "temp*" };
            let mut command = Command::new(&program.path);
            command.arg("aggregate").arg(database);
            command.args([pattern, "--fn", "count,sum", "--format", "csv"]);
            command
        }
        "duckdb" => duckdb(program, database, QUESTION),
        _ => {
            let mut command = Command::new(&program.path);
            command.arg(database).arg(QUESTION);
            command
        }
    };
    let output = command.output()?;
    let text = String::from_utf8(output.stdout)?;
    let (mut rows, mut sum) = (0, 0.0);
    for line in text.lines() {
        // The name of a series contains commas, so the two figures are taken from the end of the line.
        let mut fields = line.rsplit([',', '|']);
        let (last, before) = (fields.next(), fields.next());
        let figures = (before.map(str::parse::<u64>), last.map(str::parse::<f64>));
        if let (Some(Ok(count)), Some(Ok(own))) = figures {
            (rows, sum) = (rows + count, sum + own);
        }
    }
    Ok(Content {
        rows,
        hundredths: (sum * 100.0).round() as i64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_the_rows_that_are_told() {
        let dir = os::TempDir::new("import").unwrap();
        let content = write_files(dir.path(), 100_000).unwrap();
        let csv = std::fs::read_to_string(dir.path().join("data.csv")).unwrap();
        assert_eq!(csv.lines().count() as u64, content.rows + 1);
        assert!((100_000..100_200).contains(&csv.len()), "{}", csv.len());
        let temps = csv
            .lines()
            .skip(1)
            .map(|line| line.split(',').nth(5).unwrap());
        let sum: f64 = temps.map(|temp| temp.parse::<f64>().unwrap()).sum();
        assert_eq!((sum * 100.0).round() as i64, content.hundredths);
        for name in ["data.jsonl", "data.lp"] {
            let text = std::fs::read_to_string(dir.path().join(name)).unwrap();
            assert_eq!(text.lines().count() as u64, content.rows);
        }
        assert_eq!(decimal(-5, 100), "-0.05");
        assert_eq!(timestamp(START + 90_061), "2024-01-02T01:01:01Z");
    }
}
