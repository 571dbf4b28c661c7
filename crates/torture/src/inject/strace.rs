//! Runs a program under `strace`, which makes system calls fail or kills the program.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Time limit of a run in seconds, which suffices even on a busy machine.
const RUN_TIME: &str = "60";

/// A `strace` command that makes the named system calls fail, or kills the program at them.
pub(super) fn strace(log: &Path, call: &str, error: &str, when: &str) -> Command {
    let what = match error {
        "KILL" => "signal=KILL".to_owned(),
        error => format!("error={error}"),
    };
    let mut command = Command::new("timeout");
    command
        .args(["--signal=KILL", RUN_TIME, "strace"])
        .args(["-f", "-qq", "-o"])
        .arg(log)
        // With this option the program stops only at the traced calls; but strace 6.1 then sends no signals, so it is
        // not used for kills.
        .args((error != "KILL").then_some("--seccomp-bpf"))
        .args(["-e", &format!("trace={call}")])
        .args(["-e", &format!("inject={call}:{what}:when={when}")])
        .stdin(Stdio::null());
    command
}

pub(super) fn own_path() -> Result<PathBuf, String> {
    std::env::current_exe().map_err(|error| error.to_string())
}

/// True if the run reached the call into which an error is injected; also returns the log of the calls.
pub(super) fn is_met(log: &Path, output: &Output) -> Result<(bool, String), String> {
    let calls = std::fs::read_to_string(log).map_err(|error| error.to_string())?;
    let met = calls.contains("(INJECTED)") || output.status.signal().is_some();
    Ok((met, calls))
}

pub(super) fn is_killed(output: &Output) -> bool {
    output.status.signal() == Some(9) || output.status.code() == Some(137)
}
