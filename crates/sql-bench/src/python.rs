//! Runs Python programs, which measure the peers.

use std::error::Error;
use std::ffi::OsStr;
use std::process::Command;

/// Runs a program and returns its output. Lines that begin with `# ` are printed instead of being returned. The
/// program's temporary files are created in our temporary folder.
pub(crate) fn run(
    program: &str,
    arguments: &[&OsStr],
    peer: &str,
) -> Result<String, Box<dyn Error>> {
    let output = Command::new("python3")
        .arg("-c")
        .arg(program)
        .args(arguments)
        .env("TMPDIR", tempfile::env::temp_dir())
        .output()
        .map_err(|error| format!("python3: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let mut rest = String::new();
    for line in String::from_utf8(output.stdout)?.lines() {
        if let Some(note) = line.strip_prefix("# ") {
            println!("{peer}: {note}");
        } else {
            rest.push_str(line);
            rest.push('\n');
        }
    }
    Ok(rest)
}
