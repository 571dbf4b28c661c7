//! Programs in Python, which measure the peers.

use std::error::Error;
use std::ffi::OsStr;
use std::process::Command;

/// Runs a program; returns its output, without the lines that begin with `# `, which are printed. Its temporary files go
/// where ours are.
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
