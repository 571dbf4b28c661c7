//! Each reason why a file cannot be opened or a call fails is a typed error that states the problem, the place and the
//! next step. The failed call does no harm.

use crate::common::{Folder, assert_clean, content_of, in_memory};
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tidalite::{
    ColumnType, Database, Error, ErrorKind, OpenMode, Options, Point, Schema, SeriesId, Steps,
    Timestamp, Unit,
};
use tidalite_testkit::image::{
    COMPATIBLE_AT, INCOMPATIBLE_AT, READ_ONLY_AT, VERSION_AT, with_superblocks as patched,
};

/// Environment variable with the role of a child process; set by the tests that start this program again.
const ROLE: &str = "TIDALITE_TEST_ROLE";
const FILE: &str = "TIDALITE_TEST_FILE";
/// Id of a user without rights.
const NOBODY: u32 = 65_534;
const BLOCK: usize = 4096;

/// Checks that the error's text contains all of these parts.
fn says(error: &impl std::fmt::Display, parts: &[&str]) {
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "`{text}` does not say `{part}`");
    }
}

fn read_only() -> Options {
    Options::new().read_only(true)
}

/// Creates a file with tables, leaves and a delta.
fn sample(path: &Path) {
    let db = Database::open(path).unwrap();
    for commit in 0..4 {
        let mut tx = db.begin_write().unwrap();
        let mut series = tx.series("power{site=\"a\"}").unwrap();
        for i in 0..3_000 {
            let time = commit * 3_000 + i;
            series
                .insert_point(Steps(time), 0, (time * time) as f64 / 7.0)
                .unwrap();
        }
        let mut table = tx.table("notes").unwrap();
        table
            .put(format!("n{commit}").as_bytes(), &[7; 9_000])
            .unwrap();
        tx.commit().unwrap();
    }
}

#[test]
fn a_file_that_is_not_a_database_stays_unchanged() {
    let folder = Folder::new("foreign");
    let path = folder.file("plant.tdl");
    let csv = b"time,value\n2014-06-01,1\n".repeat(3_000);
    for content in [&b""[..], b"x", b"SQLite format 3\0", &[0; 30_000], &csv] {
        fs::write(&path, content).unwrap();
        for options in [
            Options::new(),
            Options::new().mode(OpenMode::Open),
            read_only(),
        ] {
            let error = options.open(&path).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::NotADatabase, "{error:?}");
            says(
                &error,
                &[
                    "not a Tidalite database",
                    "begins with",
                    "path of a database",
                ],
            );
        }
        assert_eq!(fs::read(&path).unwrap(), content, "it was not touched");
    }
}

#[test]
fn a_truncated_file_is_refused_or_whole() {
    let folder = Folder::new("truncated");
    let path = folder.file("plant.tdl");
    sample(&path);
    let whole = fs::read(&path).unwrap();
    let db = Database::open(&path).unwrap();
    let expected = content_of(&db.begin_read().unwrap()).unwrap();
    let mut lengths: Vec<usize> = vec![1, 100, 511, 4_095];
    lengths.extend((1..=6).flat_map(|block| [block * BLOCK - 1, block * BLOCK]));
    lengths.extend((1..40).map(|part| whole.len() * part / 40));
    lengths.extend([whole.len() - BLOCK, whole.len() - 1]);
    drop(db);
    let mut refused = 0;
    for len in lengths {
        for options in [Options::new(), read_only()] {
            fs::write(&path, &whole[..len]).unwrap();
            match options.open(&path) {
                Ok(db) => {
                    // Only space that the file had grown in advance was truncated.
                    assert_eq!(content_of(&db.begin_read().unwrap()).unwrap(), expected);
                    assert_clean(&db);
                }
                Err(error) if error.corrupt().is_some() => {
                    refused += 1;
                    says(
                        &error,
                        &[
                            "damaged",
                            "byte",
                            "found",
                            "expected",
                            "`check`",
                            "`salvage`",
                        ],
                    );
                    if len >= 6 * BLOCK {
                        says(&error, &["truncated"]);
                    }
                    assert_eq!(fs::read(&path).unwrap(), &whole[..len], "not touched");
                }
                Err(error) if error.kind() == ErrorKind::NotADatabase && len < BLOCK => {}
                Err(error) => panic!("{len} bytes: {error:?}"),
            }
        }
    }
    assert!(refused > 30, "{refused} lengths were refused");
}

#[test]
fn newer_files_are_named_as_such() {
    let folder = Folder::new("newer");
    let path = folder.file("plant.tdl");
    sample(&path);
    let whole = fs::read(&path).unwrap();
    for (at, word) in [
        (VERSION_AT, "format version 32767"),
        (INCOMPATIBLE_AT, "0x8000"),
    ] {
        let number = if at == VERSION_AT { 0x7fff } else { 0x8000u16 };
        let image = patched(&whole, |block| {
            block[at..at + 2].copy_from_slice(&number.to_le_bytes())
        });
        for options in [Options::new(), read_only()] {
            fs::write(&path, &image).unwrap();
            let error = options.open(&path).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{error:?}");
            says(&error, &["found", word, "expected", "newer version"]);
            assert_eq!(fs::read(&path).unwrap(), image, "not touched");
        }
    }
    fs::write(&path, patched(&whole, |block| block[READ_ONLY_AT] = 4)).unwrap();
    let error = Database::open(&path).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error:?}");
    says(&error, &["0x4", "read-only"]);
    let db = read_only().open(&path).unwrap();
    assert_eq!(db.begin_read().unwrap().list("").unwrap().len(), 1);
    drop(db);
    fs::write(&path, patched(&whole, |block| block[COMPATIBLE_AT] = 4)).unwrap();
    let db = Database::open(&path).unwrap();
    let mut tx = db.begin_write().unwrap();
    tx.table("notes").unwrap().put(b"more", b"1").unwrap();
    tx.commit().unwrap();
    assert_clean(&db);
    drop(db);
    assert_eq!(fs::read(&path).unwrap()[COMPATIBLE_AT], 4, "kept");
}

#[test]
fn a_file_opened_read_only_is_not_written() {
    let folder = Folder::new("read-only");
    let path = folder.file("plant.tdl");
    sample(&path);
    let before = fs::read(&path).unwrap();
    let db = read_only().open(&path).unwrap();
    for error in [db.begin_write().err(), db.try_begin_write().err()] {
        let error = error.unwrap();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error:?}");
        says(&error, &["read-only", "open it"]);
    }
    assert_clean(&db);
    assert_eq!(
        db.stat().unwrap().leaf_rows + db.stat().unwrap().delta_rows,
        12_000
    );
    drop(db);
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn modes_and_places_that_do_not_fit() {
    let folder = Folder::new("places");
    let path = folder.file("plant.tdl");
    let open = |path: &Path, mode| Options::new().mode(mode).open(path).err();
    let expect = |error: Option<Error>, kind: io::ErrorKind, path: &Path| {
        let error = error.unwrap();
        says(&error, &["cannot open", path.to_str().unwrap()]);
        let next = match kind {
            io::ErrorKind::NotFound => "check the path",
            io::ErrorKind::AlreadyExists => "another name",
            io::ErrorKind::IsADirectory => "give the path of a file",
            _ => "one of its folders is a file",
        };
        says(&error, &[next]);
        // The error may name the lock file, because it is opened first and is missing if the folder is.
        let mut lock = path.as_os_str().to_owned();
        lock.push("-lock");
        assert!([Some(path), Some(Path::new(&lock))].contains(&error.path()));
        assert_eq!(error.io_error().unwrap().kind(), kind);
    };
    expect(open(&path, OpenMode::Open), io::ErrorKind::NotFound, &path);
    expect(
        read_only().open(&path).err(),
        io::ErrorKind::NotFound,
        &path,
    );
    for mode in [OpenMode::Open, OpenMode::Create, OpenMode::CreateOrOpen] {
        expect(
            open(&folder.0, mode),
            io::ErrorKind::IsADirectory,
            &folder.0,
        );
        let nowhere = folder.0.join("missing/plant.tdl");
        expect(open(&nowhere, mode), io::ErrorKind::NotFound, &nowhere);
    }
    assert_eq!(
        fs::read_dir(&folder.0).unwrap().count(),
        0,
        "nothing was made"
    );
    sample(&path);
    let inside = path.join("below.tdl");
    expect(
        open(&inside, OpenMode::CreateOrOpen),
        io::ErrorKind::NotADirectory,
        &inside,
    );
    expect(
        open(&path, OpenMode::Create),
        io::ErrorKind::AlreadyExists,
        &path,
    );
    assert_clean(&Database::open(&path).unwrap());
}

/// This is not a test: child processes of the tests below run this function.
#[test]
fn role_of_a_child_process() {
    let (Ok(role), Ok(path)) = (std::env::var(ROLE), std::env::var(FILE)) else {
        return;
    };
    let path = Path::new(&path);
    let opened = match role.as_str() {
        "read" => read_only().open(path),
        _ => Database::open(path),
    };
    let told = match &opened {
        Ok(_) => "open".to_owned(),
        Err(error) => format!("refused: {error}"),
    };
    println!("\nchild: {told}");
    std::io::stdout().flush().unwrap();
    if opened.is_ok() {
        // The child process runs until the parent process ends it, or closes the pipe.
        let mut line = String::new();
        drop(std::io::stdin().read_line(&mut line));
    }
}

fn child_of(program: &Path, role: &str, path: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .args(["errors::role_of_a_child_process", "--exact", "--nocapture"])
        .env(ROLE, role)
        .env(FILE, path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    command
}

/// Starts a child process and returns it with the line that it prints.
fn start(command: &mut Command) -> std::io::Result<(Child, String)> {
    let mut child = command.spawn()?;
    let out = child.stdout.take().unwrap();
    let told = BufReader::new(out)
        .lines()
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix("child: ").map(str::to_owned));
    Ok((child, told.unwrap()))
}

fn end(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn open_elsewhere_in_this_process_and_in_another() {
    let folder = Folder::new("elsewhere");
    let path = folder.file("plant.tdl");
    sample(&path);
    let program = std::env::current_exe().unwrap();
    let refused = |options: &Options| {
        let error = options.open(&path).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Locked, "{error:?}");
        says(
            &error,
            &[path.to_str().unwrap(), "open elsewhere", "close it"],
        );
    };
    let alone = Options::new().exclusive(true);
    let writer = Database::open(&path).unwrap();
    let kept = writer.begin_read().unwrap();
    // A hard link is a second name of the same file, with a second lock file; a symbolic link leads to the first lock
    // file.
    let links = [folder.file("symbolic.tdl"), folder.file("hard.tdl")];
    std::os::unix::fs::symlink(&path, &links[0]).unwrap();
    fs::hard_link(&path, &links[1]).unwrap();
    for options in [Options::new(), read_only()] {
        drop(options.open(&links[0]).unwrap());
        let error = options.open(&links[1]).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Locked, "{error:?}");
        drop(options.open(&path).unwrap());
    }
    refused(&alone);
    for role in ["read", "write"] {
        let (child, told) = start(&mut child_of(&program, role, &path)).unwrap();
        assert_eq!(told, "open");
        end(child);
    }
    drop(writer);
    refused(&alone); // the snapshot keeps it open
    drop(kept);

    let (child, told) = start(&mut child_of(&program, "write", &path)).unwrap();
    assert_eq!(told, "open");
    refused(&alone);
    refused(&read_only().exclusive(true));
    end(child); // killed: the lock goes with it
    drop(alone.open(&path).unwrap());

    let (child, told) = start(&mut child_of(&program, "read", &path)).unwrap();
    assert_eq!(told, "open");
    drop(read_only().open(&path).unwrap());
    refused(&alone);
    refused(&read_only().exclusive(true));
    end(child);
    let alone = read_only().exclusive(true).open(&path).unwrap();
    refused(&read_only());
    drop(alone);
    assert_clean(&Database::open(&path).unwrap());
}

#[test]
fn without_permission() {
    let folder = Folder::new("permission");
    let path = folder.file("plant.tdl");
    sample(&path);
    // Root is allowed everything, so a copy of this program runs as another user.
    let program = folder.file("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let mode =
        |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    mode(&program, 0o755);
    fs::remove_file(folder.file("plant.tdl-lock")).unwrap();
    let as_nobody = |role: &str, path: &Path| {
        let started = start(child_of(&program, role, path).uid(NOBODY).gid(NOBODY));
        started.map(|(child, told)| {
            end(child);
            told
        })
    };
    mode(&folder.0, 0o755);
    mode(&path, 0o644);
    let Ok(told) = as_nobody("write", &path) else {
        println!("skipped");
        return;
    };
    // The user may not create the lock file in the folder: the file can be read but not written.
    says(
        &told,
        &["plant.tdl", "ermission", "obtain read and write permission"],
    );
    assert_eq!(as_nobody("read", &path).unwrap(), "open");
    let new = folder.file("new.tdl");
    let told = as_nobody("write", &new).unwrap();
    assert!(
        told.contains("new.tdl") && told.contains("ermission"),
        "{told}"
    );
    // The user may create the lock file, but may not write the data file.
    mode(&folder.0, 0o777);
    let told = as_nobody("write", &path).unwrap();
    assert!(
        told.contains("plant.tdl") && told.contains("ermission"),
        "{told}"
    );
    assert_eq!(as_nobody("read", &path).unwrap(), "open");
    // The user may not read the data file either.
    mode(&path, 0o600);
    for role in ["read", "write"] {
        let told = as_nobody(role, &path).unwrap();
        assert!(
            told.contains("plant.tdl") && told.contains("ermission"),
            "{told}"
        );
    }
    assert!(!new.exists(), "nothing was made");
}

#[test]
fn names_that_cannot_be() {
    let db = in_memory(&Options::new());
    let mut tx = db.begin_write().unwrap();
    for name in [
        "",
        " ",
        "{a=\"b\"}",
        "x{",
        "x{a}",
        "x{a=}",
        "x{a=\"b\"",
        "x{a=\"b\",a=\"c\"}",
        "x y",
        "x{a=b}",
        "\"",
        "x}",
        "x{=\"b\"}",
        "a*",
        "x\u{0}",
    ] {
        let error = tx.series(name).err();
        assert!(
            matches!(error, Some(ref error) if error.kind() == ErrorKind::InvalidName),
            "{name:?}: {error:?}"
        );
        says(&error.unwrap(), &["name", "cannot be used"]);
    }
    for name in [String::new(), "t".repeat(256)] {
        let error = tx.table(&name).err();
        assert!(
            matches!(error, Some(ref error) if error.kind() == ErrorKind::InvalidName),
            "{error:?}"
        );
        says(&error.unwrap(), &["255"]);
    }
    assert!(
        matches!(tx.series_by_id(SeriesId(0)).err(), Some(ref error) if error.kind() == ErrorKind::NotFound)
    );
    let error = tx.series_by_id(SeriesId(u64::MAX)).err();
    says(&error.unwrap(), &["no series", "18446744073709551615"]);
    // The transaction continues after the refused calls.
    tx.series("fine")
        .unwrap()
        .insert_point(Steps(1), 0, 2.0)
        .unwrap();
    tx.commit().unwrap();
    let snap = db.begin_read().unwrap();
    assert!(
        matches!(snap.series("x{").err(), Some(ref error) if error.kind() == ErrorKind::InvalidName)
    );
    assert!(
        matches!(snap.list("x{").err(), Some(ref error) if error.kind() == ErrorKind::InvalidName)
    );
    assert!(snap.series("absent").unwrap().is_none());
    assert!(snap.table("absent").unwrap().is_none() && snap.table("").unwrap().is_none());
    assert!(snap.series_by_id(SeriesId(77)).unwrap().is_none());
    assert_eq!(snap.list("").unwrap().len(), 1);
    assert_clean(&db);
}

struct Wide;

impl Point for Wide {
    fn schema() -> Schema {
        Schema::new(
            Unit::Micros,
            [
                ("a", ColumnType::F64),
                ("b", ColumnType::U64),
                ("c", ColumnType::I64),
            ],
        )
    }

    fn time(&self) -> i64 {
        5
    }

    fn write_words(&self, words: &mut [u64]) {
        words.copy_from_slice(&[1, 2, 3]);
    }

    fn from_words(_: i64, _: &[u64]) -> Self {
        Self
    }
}

fn schema_problem(error: Option<Error>, parts: &[&str]) {
    let error = error.unwrap();
    assert!(error.kind() == ErrorKind::Schema, "{error:?}");
    says(&error, parts);
}

#[test]
fn schemas_and_columns_that_do_not_fit() {
    let db = in_memory(&Options::new());
    let one = Schema::new(Unit::Seconds, [("x", ColumnType::F64)]);
    let mut tx = db.begin_write().unwrap();
    tx.series_with("one", &one)
        .unwrap()
        .insert_row(Steps(1), &[2.5f64.to_bits()])
        .unwrap();
    tx.series("two")
        .unwrap()
        .insert_point(Steps(1), 0, 3.5)
        .unwrap();
    let none = Schema {
        unit: Unit::Nanos,
        columns: Vec::new(),
    };
    let twice = Schema::new(
        Unit::Nanos,
        [("x", ColumnType::F64), ("x", ColumnType::F64)],
    );
    let nameless = Schema::new(Unit::Nanos, [("", ColumnType::F64)]);
    for (schema, part) in [
        (&none, "0 columns"),
        (&twice, "x is there twice"),
        (&nameless, "0 bytes"),
    ] {
        schema_problem(tx.series_with("bad", schema).err(), &["schema", part]);
        schema_problem(tx.series_of_guid([1; 16], schema).err(), &["schema", part]);
    }
    schema_problem(tx.series_with("two", &one).err(), &["two", "value"]);
    // The error states the differing columns and units, not only the series' name.
    let other = Schema::new(Unit::Millis, [("x", ColumnType::I64)]);
    let told = ["one has x:f64, time in seconds", "x:i64, time in millis"];
    schema_problem(tx.series_with("one", &other).err(), &told);
    let told = ["the columns x:f64; asked for were flags:i64 value:f64"];
    schema_problem(tx.series("one").unwrap().insert(Steps(1), 1.0).err(), &told);
    schema_problem(tx.series_of::<Wide>("two").err(), &["two"]);
    let mut series = tx.series("one").unwrap();
    schema_problem(series.insert(Steps(1), 1.0).err(), &["one", "columns"]);
    schema_problem(
        series.insert_point(Steps(1), 0, 1.0).err(),
        &["one", "1 columns"],
    );
    schema_problem(
        series.insert_row(Steps(1), &[1, 2]).err(),
        &["one", "1 columns"],
    );
    schema_problem(series.insert_row(Steps(1), &[]).err(), &["one"]);
    schema_problem(series.insert_record(&Wide).err(), &["one"]);
    schema_problem(series.append_rows(&[1, 2], &[&[1]]).err(), &["one"]);
    schema_problem(
        series.append_rows(&[1, 2], &[&[1, 2], &[1, 2]]).err(),
        &["one"],
    );
    tx.commit().unwrap();

    let snap = db.begin_read().unwrap();
    let series = snap.series("one").unwrap().unwrap();
    let all = series.query(..);
    schema_problem(all.aggregate(1).err(), &["1 columns", "number 1"]);
    schema_problem(all.windows(Steps(10), 1).err(), &["number 1"]);
    schema_problem(
        all.clone().columns([0, 7]).for_each_vector(|_| ()).err(),
        &["number 7"],
    );
    schema_problem(all.for_each_sample(|_| ()).err(), &["one"]);
    schema_problem(all.for_each_record(|_: Wide| ()).err(), &["one"]);
    schema_problem(
        series.query(Steps(3)..Steps(3)).aggregate(9).err(),
        &["number 9"],
    );
    for width in [0, -1, i64::MIN] {
        let error = all.windows(Steps(width), 0).err().unwrap();
        says(&error, &["window"]);
    }
    for text in ["", "yesterday", "2014-13-01"] {
        let error = series.query(text..).count().err();
        assert!(
            matches!(error, Some(ref error) if error.kind() == ErrorKind::InvalidInput),
            "{error:?}"
        );
        says(&error.unwrap(), &["not a timestamp"]);
    }
    assert!(series.query("1969-12-31"..).count().unwrap() == 1);
    assert!(Timestamp::parse("9999-01-01").is_err());
    assert_eq!(series.count().unwrap(), 1);
    assert_clean(&db);
}
