//! System calls of the program fail or kill it, through `strace -e inject`.
//!
//! The command `cargo run --release -p tidalite-torture -- inject` runs a longer test, of a process that commits many
//! times.

use crate::support::{Folder, Ran};
use std::process::{Command, Stdio};

/// System calls that write, sync or extend files, each with the errors to inject; `KILL` ends the program inside the
/// call.
const CALLS: [(&str, &[&str]); 6] = [
    ("fdatasync", &["EIO", "ENOSPC", "KILL"]),
    ("fsync", &["EIO", "KILL"]),
    ("pwrite64", &["EIO", "ENOSPC", "KILL"]),
    ("pwritev", &["EIO", "ENOSPC", "KILL"]),
    ("fallocate", &["ENOSPC", "KILL"]),
    ("ftruncate", &["EIO", "KILL"]),
];
/// For each kind of call, the first this many calls fail: each once alone and once with all later calls.
const FIRST: usize = 3;

/// Each entry is a command, a second command that shows the effect of the first, and the output of the second command
/// after and before the first.
const WORK: [(&str, &str, &str, &str); 4] = [
    (
        "kv put a.tdl config speed 8",
        "kv get a.tdl config speed",
        "8\n",
        "7\n",
    ),
    ("kv del a.tdl config speed", "kv scan a.tdl config", "", ""),
    (
        "import a.tdl more.csv --quiet",
        "aggregate a.tdl v --fn count,sum -f csv",
        "2000",
        "1000",
    ),
    (
        "remove a.tdl v --to 2014-06-02",
        "aggregate a.tdl v --fn count -f csv",
        "",
        "",
    ),
];

/// Whether `strace` can make calls fail on this machine.
fn injects() -> bool {
    let probe = Command::new("strace")
        .args(["-f", "--seccomp-bpf", "-qq"])
        .args(["-e", "inject=sync:error=EIO", "true"])
        .output();
    probe.is_ok_and(|probe| probe.status.success())
}

/// Runs a command of which one call fails, selected by `when`; returns whether that call was made, and the result of
/// the command.
fn run(folder: &Folder, line: &str, (call, error): (&str, &str), when: &str) -> (bool, Ran) {
    let what = match error {
        "KILL" => "signal=KILL".to_owned(),
        error => format!("error={error}"),
    };
    let program = folder.command(&line.split_whitespace().collect::<Vec<_>>());
    let log = folder.path("calls");
    let mut strace = Command::new("strace");
    strace
        .args(["-f", "-qq", "-o"])
        .arg(&log)
        // This option stops the program only at the selected calls, but with it strace 6.1 sends no signals.
        .args((error != "KILL").then_some("--seccomp-bpf"))
        .args(["-e", &format!("trace={call}")])
        .args(["-e", &format!("inject={call}:{what}:when={when}")])
        .arg(program.get_program())
        .args(program.get_args())
        .current_dir(folder.path(""))
        .stdin(Stdio::null());
    let ran = Ran::of(strace);
    let calls = std::fs::read_to_string(&log).unwrap();
    let met = calls.contains("(INJECTED)") || calls.contains("killed by SIGKILL");
    (met, ran)
}

/// After any failure, all acknowledged changes are present. If a change was not acknowledged, the file has the old data
/// or the complete change.
#[test]
fn a_call_that_fails_ends_the_program_and_loses_nothing() {
    if !injects() {
        eprintln!("skipped: no strace");
        return;
    }
    let folder = Folder::new("a_call_that_fails_ends_the_program_and_loses_nothing");
    let rows = |day: u32| {
        let minute = |n: u32| {
            let (hour, minute) = (n / 60, n % 60);
            format!(
                "2014-06-{:02}T{hour:02}:{minute:02}:00Z,{n}\n",
                day + n / 1440
            )
        };
        let rows: String = (0..1000).map(minute).collect();
        format!("time,v\n{rows}")
    };
    folder.write("first.csv", rows(1));
    folder.write("more.csv", rows(3));
    folder.say("import base.tdl first.csv --quiet").ok();
    folder.say("kv put base.tdl config speed 7").ok();
    folder.say("kv put base.tdl config stays here").ok();
    let base = std::fs::read(folder.path("base.tdl")).unwrap();
    let (mut met, mut ended, mut done) = (0, 0, 0);
    for (line, question, after, before) in WORK {
        let start = || {
            folder.write("a.tdl", &base);
            let _ = std::fs::remove_file(folder.path("a.tdl-lock"));
        };
        let ask = || folder.say(question).out;
        // The expected output before and after the command; where `WORK` does not give it, it is taken from the
        // program.
        start();
        let was = ask();
        folder.say(line).ok();
        let is = ask();
        assert!(
            was != is && was.contains(before) && is.contains(after),
            "{was}{is}"
        );
        for (call, errors) in CALLS {
            for error in errors {
                for at in 1..=FIRST {
                    for when in [format!("{at}"), format!("{at}+")] {
                        start();
                        let (call_met, ran) = run(&folder, line, (call, error), &when);
                        if !call_met {
                            continue;
                        }
                        met += 1;
                        let told = format!("{line}: {call} {error} {when}: {ran:?}");
                        assert!(!ran.err.contains("panicked"), "{told}");
                        assert!(ran.code != 0 || *error != "KILL", "{told}");
                        if ran.code > 0 {
                            assert!(ran.err.contains("error: "), "{told}");
                            ended += 1;
                        }
                        let now = ask();
                        assert!(now == was || now == is, "{told}\n{now}");
                        if ran.code == 0 {
                            assert_eq!(now, is, "{told}");
                            done += 1;
                        }
                        assert_eq!(folder.say("kv get a.tdl config stays").ok(), "here\n");
                        folder.say("check a.tdl").ok();
                    }
                }
            }
        }
    }
    println!(
        "{met} calls that failed or killed, {ended} errors told, {done} went well all the same"
    );
    assert!(met > 40 && ended > 10);
}
