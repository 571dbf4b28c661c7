//! Support for the tests: a folder for each test, and runs of the program in this folder.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// The result of one run of the program.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// Runs a command and returns its result.
    pub(crate) fn of(mut command: Command) -> Self {
        Self::of_output(command.output().unwrap())
    }

    fn of_output(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Checks that the run succeeded; returns what it printed.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.out
    }

    /// Checks that the run failed with this exit code, and that its message contains these texts and a next step.
    #[track_caller]
    pub(crate) fn failed(self, code: i32, told: &[&str]) {
        assert_eq!(self.code, code, "{self:?}");
        for text in told {
            assert!(self.err.contains(text), "`{text}` is missing: {}", self.err);
        }
        assert!(
            self.err.contains("next: ") || code == 2,
            "no next step: {}",
            self.err
        );
        assert!(!self.err.contains("panicked"), "{}", self.err);
    }
}

pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Creates an empty folder; `name` is the name of the test.
    pub(crate) fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn command<S: AsRef<OsStr>>(&self, words: &[S]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidalite"));
        command
            .args(words)
            .current_dir(&self.0)
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run<S: AsRef<OsStr>>(&self, words: &[S]) -> Ran {
        Ran::of(self.command(words))
    }

    /// Runs the program with these bytes as its standard input.
    pub(crate) fn run_with<S: AsRef<OsStr>>(&self, words: &[S], input: &[u8]) -> Ran {
        let mut command = self.command(words);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // The program may end before it has read everything.
        let _ = child.stdin.take().unwrap().write_all(input);
        Ran::of_output(child.wait_with_output().unwrap())
    }

    /// Runs the program with a command line whose words are separated by spaces, without quotes.
    pub(crate) fn say(&self, line: &str) -> Ran {
        self.run(&line.split_whitespace().collect::<Vec<_>>())
    }

    /// Creates a folder with the database `plant.tdl`: two turbines, with one point per minute for two hours.
    pub(crate) fn with_plant(name: &str) -> Self {
        let folder = Self::new(name);
        let mut csv = String::from("time,turbine,wind,power\n");
        for minute in 0..120 {
            let time = format!("2014-06-01T{:02}:{:02}:00Z", minute / 60, minute % 60);
            let gap = if minute == 30 {
                "NA".to_owned()
            } else {
                (minute * 10).to_string()
            };
            csv += &format!("{time},A,{}.5,{gap}\n", minute % 10);
            csv += &format!("{time},B,{},-{minute}\n", minute);
        }
        folder.write("plant.csv", csv);
        folder
            .say("import plant.tdl plant.csv --tag turbine --prefix hb. --quiet")
            .ok();
        folder
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

/// A running command and the lines that it prints.
pub(crate) struct Running {
    child: Child,
    lines: Receiver<String>,
}

impl Running {
    pub(crate) fn start(folder: &Folder, words: &[&str]) -> Self {
        let mut command = folder.command(words);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, lines }
    }

    /// Waits for the next line. The limit of time only ends a test that would hang.
    #[track_caller]
    pub(crate) fn next(&self) -> String {
        self.lines.recv_timeout(Duration::from_secs(60)).unwrap()
    }

    /// Waits for the end of the program, which must succeed without another line.
    #[track_caller]
    pub(crate) fn ends(mut self) {
        let line = self.lines.recv_timeout(Duration::from_secs(60));
        assert!(line.is_err(), "{line:?}");
        assert!(self.child.wait().unwrap().success());
    }

    /// Checks the next lines.
    #[track_caller]
    pub(crate) fn expect(&self, expected: &[&str]) {
        for line in expected {
            let found = self.lines.recv_timeout(Duration::from_secs(60));
            assert_eq!(found.as_deref(), Ok(*line));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// True if this process, and so a program that it starts, ignores a signal: one started in the background by a shell or
/// by `nohup` keeps ignoring it.
#[cfg(target_os = "linux")]
pub(crate) fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = u64::from_str_radix(ignored.unwrap().trim(), 16).unwrap();
    ignored >> (signal - 1) & 1 != 0
}
