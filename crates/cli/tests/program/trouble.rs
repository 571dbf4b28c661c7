//! Errors of everyday use: files that are not databases, names that no series has, closed pipes.

use crate::support::{Folder, Ran};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tidalite::Options;
use tidalite_testkit::image::{INCOMPATIBLE_AT, VERSION_AT, with_superblocks};

/// Id of a user without rights.
const NOBODY: u32 = 65_534;
/// Length in bytes of the head of a database file.
const HEAD_BYTES: usize = 24 << 10;

#[test]
fn a_file_that_is_not_a_database_is_named() {
    let folder = Folder::with_plant("a_file_that_is_not_a_database_is_named");
    folder
        .say("series nosuch.tdl")
        .failed(3, &["no database nosuch.tdl", "tidalite import nosuch.tdl"]);
    folder
        .say("series plant.csv")
        .failed(5, &["plant.csv", "not a Tidalite database"]);
    folder.say("check .").failed(5, &["folder"]);
    folder.write("empty.tdl", "");
    folder.say("stat empty.tdl").failed(5, &["empty.tdl"]);
    folder
        .say("import . plant.csv")
        .failed(5, &["folder", "one file"]);
    folder
        .say("import empty.tdl plant.csv")
        .failed(5, &["empty.tdl", "not a Tidalite database"]);
}

#[test]
fn a_truncated_file_is_named() {
    let folder = Folder::with_plant("a_truncated_file_is_named");
    let whole = std::fs::read(folder.path("plant.tdl")).unwrap();
    // The file is recognised by its magic number, which ends at byte 48.
    for (len, code, told) in [
        (40, 5, "not a Tidalite database"),
        (100, 4, "damaged"),
        (HEAD_BYTES - 1, 4, "damaged"),
        (HEAD_BYTES, 4, "truncated"),
        (30_000, 4, "truncated"),
    ] {
        folder.write("cut.tdl", &whole[..len]);
        for line in ["scan cut.tdl hb.wind", "import cut.tdl plant.csv"] {
            folder.say(line).failed(code, &["cut.tdl", told]);
        }
        let left = std::fs::read(folder.path("cut.tdl")).unwrap();
        assert_eq!(left, &whole[..len], "not touched");
    }
    folder.say("check cut.tdl").failed(4, &["salvage"]);
}

#[test]
fn a_file_of_a_newer_version_is_named() {
    let folder = Folder::with_plant("a_file_of_a_newer_version_is_named");
    let whole = std::fs::read(folder.path("plant.tdl")).unwrap();
    for (at, told) in [
        (VERSION_AT, "found a file of format version 32767, expected"),
        (INCOMPATIBLE_AT, "features 0x7fff"),
    ] {
        let newer = with_superblocks(&whole, |block| {
            block[at..at + 2].copy_from_slice(&0x7fff_u16.to_le_bytes());
        });
        folder.write("newer.tdl", &newer);
        for line in [
            "stat newer.tdl",
            "check newer.tdl",
            "import newer.tdl plant.csv",
        ] {
            folder.say(line).failed(
                5,
                &["newer.tdl", told, "newer version", "tidalite --version"],
            );
        }
        assert_eq!(std::fs::read(folder.path("newer.tdl")).unwrap(), newer);
    }
}

#[test]
fn a_database_opened_exclusively_is_busy() {
    let folder = Folder::with_plant("a_database_opened_exclusively_is_busy");
    let alone = Options::new()
        .exclusive(true)
        .open(folder.path("plant.tdl"))
        .unwrap();
    for line in [
        "series plant.tdl",
        "check plant.tdl",
        "import plant.tdl plant.csv",
    ] {
        folder
            .say(line)
            .failed(6, &["plant.tdl", "open elsewhere", "fuser plant.tdl"]);
    }
    drop(alone);
    folder.say("series plant.tdl").ok();
}

/// With a limited file size, as on a full disk, an import reports the error and stores nothing.
#[test]
fn a_full_disk_stores_nothing_and_is_reported() {
    const BYTES_MAX: u64 = 2 << 20;
    let folder = Folder::with_plant("a_full_disk_stores_nothing_and_is_reported");
    let mut rng = tidalite_testkit::rng::Rng::new(1);
    let mut csv = String::from("time,noise\n");
    for second in 0..400_000 {
        csv += &format!("{},{}\n", 1_401_580_800 + second, rng.f64());
    }
    folder.write("noise.csv", csv);
    let limited = |line: &str| {
        // The signal that this limit sends would end the program, so the shell ignores it.
        let script = format!(
            "trap '' XFSZ; ulimit -f {}; exec \"$0\" {line}",
            BYTES_MAX / 512
        );
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &script, env!("CARGO_BIN_EXE_tidalite")])
            .current_dir(folder.path(""));
        Ran::of(shell)
    };
    let before = folder.say("scan plant.tdl hb.* -f csv").ok();
    for name in ["plant.tdl", "new.tdl"] {
        let line = format!("import {name} noise.csv --quiet");
        limited(&line).failed(1, &[name, "disk full", "was rolled back"]);
    }
    assert_eq!(folder.say("scan plant.tdl hb.* -f csv").ok(), before);
    folder.say("check plant.tdl").ok();
    folder
        .say("series plant.tdl noise")
        .failed(3, &["no series"]);
    folder.say("import plant.tdl noise.csv --quiet").ok();
    folder.say("series plant.tdl noise").ok();
}

#[test]
fn unknown_series_get_suggestions() {
    let folder = Folder::with_plant("unknown_series_get_suggestions");
    for command in ["scan", "aggregate", "plot", "latest", "series"] {
        folder.say(&format!("{command} plant.tdl hb.wnid")).failed(
            3,
            &[
                "no series in plant.tdl matches `hb.wnid`",
                "hb.wind",
                "tidalite series plant.tdl",
            ],
        );
    }
    folder
        .say("window plant.tdl hb.wnid --by 1h")
        .failed(3, &["hb.wind"]);
    folder
        .say("scan plant.tdl hb.wind{turbine:A}")
        .failed(2, &["single quotes"]);
    folder
        .say("scan plant.tdl hb.wind --from 2020")
        .failed(3, &["no point in this range"]);
    folder
        .say("aggregate plant.tdl hb.wind --column x")
        .failed(3, &["no column `x`", "flags, value"]);
    folder
        .say("scan plant.tdl hb.wind --from noon")
        .failed(2, &["`noon`", "2014-06-01"]);
    folder
        .say("scan plant.tdl hb.wind --from 2015 --to 2014")
        .failed(2, &["--from is not before --to"]);
    folder
        .say("window plant.tdl hb.wind --by 1x")
        .failed(2, &["1x"]);
}

#[test]
fn a_hostile_column_name_stays_text() {
    let folder = Folder::new("a_hostile_column_name_stays_text");
    folder.write("a.csv", "time,\u{1b}[31mred {x} \"q\",ok\n2014-06-01,1,2\n");
    folder.say("import a.tdl a.csv").ok();
    let out = folder.say("series a.tdl").ok();
    assert!(!out.contains('\u{1b}'), "{out:?}");
    assert!(out.contains("red {x}"), "{out}");
    assert!(!folder.say("plot a.tdl *").ok().contains('\u{1b}'));
}

/// A reader such as `head`, which takes one line and closes the pipe, does not cause an error.
#[test]
fn a_closed_pipe_is_not_an_error() {
    let folder = Folder::with_plant("a_closed_pipe_is_not_an_error");
    let mut csv = String::from("time,v\n");
    for second in 0..100_000 {
        csv += &format!("{},{second}\n", 1_401_580_800 + second);
    }
    folder.write("a.csv", csv);
    folder.say("import plant.tdl a.csv --quiet").ok();
    for words in [
        &["scan", "plant.tdl", "v"][..],
        &["scan", "plant.tdl", "v", "-f", "json"],
        &["completions", "zsh"],
    ] {
        let mut child = folder
            .command(words)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = [0; 10];
        child.stdout.take().unwrap().read_exact(&mut first).unwrap();
        let output = child.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.success() && told.is_empty(),
            "{words:?}: {told}"
        );
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_of_the_output_is_reported() {
    let folder = Folder::with_plant("a_full_disk_of_the_output_is_reported");
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let mut command = folder.command(&["scan", "plant.tdl", "hb.wind"]);
    let output = command
        .stdout(full)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        told.contains("writing the output failed: No space left"),
        "{told}"
    );
}

#[test]
fn a_database_in_use_can_be_looked_at_and_written_in_turn() {
    let folder = Folder::with_plant("a_database_in_use");
    let import = |series: &str, seconds: u32| {
        let mut child = folder
            .command(&["import", "plant.tdl", "-", "--quiet"])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut pipe = child.stdin.take().unwrap();
        // With 40,000 rows the import has begun to write: it first reads a sample, which has fewer rows.
        let mut rows = format!("time,{series}\n");
        for second in 0..seconds {
            let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
            rows += &format!("2014-06-01T{hour:02}:{minute:02}:{second:02}Z,{second}\n");
        }
        pipe.write_all(rows.as_bytes()).unwrap();
        (child, pipe)
    };
    let (mut first, pipe) = import("v", 40_000);
    let begun = Instant::now();
    while !folder.say("readers plant.tdl").ok().contains("write") {
        assert!(begun.elapsed() < Duration::from_secs(20), "it never writes");
    }
    let json = folder.say("readers plant.tdl --format json").ok();
    assert!(
        json.contains(&format!(r#""process":{}"#, first.id())),
        "{json}"
    );
    for line in [
        "series plant.tdl",
        "stat plant.tdl",
        "check plant.tdl",
        "latest plant.tdl",
    ] {
        let out = folder.say(line).ok();
        assert!(!out.contains("v "), "{out}");
    }
    // Another writer waits for the writer lock, and prints the id of the process that holds it.
    let (mut second, second_pipe) = import("w", 10);
    drop(second_pipe);
    let mut told = String::new();
    let mut messages = BufReader::new(second.stderr.take().unwrap());
    messages.read_line(&mut told).unwrap();
    assert!(told.contains(&format!("process {}", first.id())), "{told}");
    drop(pipe);
    assert!(first.wait().unwrap().success());
    assert!(second.wait().unwrap().success());
    folder.say("series plant.tdl v").ok();
    folder.say("series plant.tdl w").ok();
    let out = folder.say("readers plant.tdl").ok();
    assert!(!out.contains("write"), "{out}");
}

#[test]
#[cfg(unix)]
fn permissions_are_respected() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::with_plant("permissions_are_respected");
    std::fs::set_permissions(folder.path("plant.tdl"), PermissionsExt::from_mode(0o000)).unwrap();
    // The superuser may read any file; then the test is repeated as another user.
    if std::fs::File::open(folder.path("plant.tdl")).is_err() {
        folder
            .say("series plant.tdl")
            .failed(1, &["permission denied"]);
    } else {
        a_copy_run_by_nobody(&folder);
    }
    std::fs::set_permissions(folder.path("plant.tdl"), PermissionsExt::from_mode(0o444)).unwrap();
    folder.say("series plant.tdl").ok();
}

/// Repeats the test as a user without rights, in a folder that this user can access: the superuser may read any file.
#[cfg(unix)]
fn a_copy_run_by_nobody(folder: &Folder) {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    let name = format!("tidalite-nobody-{}", std::process::id());
    let place = std::env::temp_dir().join(name);
    let mode = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    };
    std::fs::create_dir_all(&place).unwrap();
    mode(&place, 0o755);
    let program = place.join("program");
    // Another process copies the program. If this one did, a child that another test starts meanwhile could inherit the open
    // file, and an executable that is open for writing cannot run.
    let copied = Command::new("cp")
        .arg(env!("CARGO_BIN_EXE_tidalite"))
        .arg(&program)
        .status()
        .unwrap();
    assert!(copied.success(), "{copied}");
    mode(&program, 0o755);
    std::fs::copy(folder.path("plant.tdl"), place.join("plant.tdl")).unwrap();
    std::fs::copy(folder.path("plant.csv"), place.join("plant.csv")).unwrap();
    let run = |words: &[&str]| {
        let mut command = Command::new(&program);
        command
            .args(words)
            .current_dir(&place)
            .uid(NOBODY)
            .gid(NOBODY);
        Ran::of(command)
    };
    mode(&place.join("plant.tdl"), 0o600);
    for words in [
        &["series", "plant.tdl"][..],
        &["import", "plant.tdl", "plant.csv"],
    ] {
        run(words).failed(1, &["plant.tdl", "permission denied"]);
    }
    // From here on the user may read the database, but not write it.
    mode(&place.join("plant.tdl"), 0o644);
    run(&["series", "plant.tdl"]).ok();
    run(&["import", "plant.tdl", "plant.csv"]).failed(1, &["plant.tdl", "permission denied"]);
    let mut backup = Command::new(&program);
    backup
        .args(["backup", "plant.tdl", "-"])
        .current_dir(&place);
    let backup = backup.uid(NOBODY).gid(NOBODY).output().unwrap();
    assert!(
        backup.status.success() && !backup.stdout.is_empty(),
        "{backup:?}"
    );
    // The folder of the database is not writable, so the temporary file of the copy is created in another folder.
    let mut copy = Command::new(&program);
    copy.args(["copy", "plant.tdl", "-"]).current_dir(&place);
    let copy = copy.uid(NOBODY).gid(NOBODY).output().unwrap();
    assert!(
        copy.status.success() && copy.stdout.len() > HEAD_BYTES,
        "{copy:?}"
    );
    run(&["copy", "plant.tdl", "-", "--temporary", "."]).failed(1, &["permission denied"]);
    assert!(!place.join("new.tdl").exists());
    run(&["import", "new.tdl", "plant.csv"]).failed(1, &["new.tdl", "permission denied"]);
    // If another process has the database open, write permission on the lock file is required.
    let held = Options::new().open(place.join("plant.tdl")).unwrap();
    run(&["series", "plant.tdl"]).failed(6, &["plant.tdl-lock", "ermission denied", "chmod g+w"]);
    mode(&place.join("plant.tdl"), 0o646);
    run(&["import", "plant.tdl", "plant.csv"]).failed(1, &["plant.tdl-lock: permission denied"]);
    mode(&place.join("plant.tdl-lock"), 0o666);
    run(&["series", "plant.tdl"]).ok();
    run(&["import", "plant.tdl", "plant.csv", "--tag", "turbine"]).ok();
    drop(held);
    std::fs::remove_dir_all(&place).unwrap();
}

/// If the file was replaced while another process has the old one open, the error says so.
#[test]
fn a_file_that_was_replaced_while_it_is_open_is_named() {
    let folder = Folder::with_plant("a_file_that_was_replaced_while_it_is_open_is_named");
    let (path, copy) = (folder.path("plant.tdl"), folder.path("copy.tdl"));
    let holder = Options::new().open(&path).unwrap();
    std::fs::copy(&path, &copy).unwrap();
    std::fs::rename(&copy, &path).unwrap();
    let process = format!("process {} ", std::process::id());
    for command in ["stat plant.tdl", "kv put plant.tdl config speed 7"] {
        folder
            .say(command)
            .failed(6, &["was replaced or deleted", &process, "ps -p"]);
    }
    drop(holder);
    folder.say("check plant.tdl").ok();
}
