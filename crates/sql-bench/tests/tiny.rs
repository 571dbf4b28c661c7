//! The benchmark runs at a tiny size.

use std::process::Command;

#[test]
fn every_query_runs_at_a_tiny_size() {
    let program = env!("CARGO_BIN_EXE_tidalite-sql-bench");
    let output = Command::new(program)
        .args(["--hosts", "8", "--hours", "13", "--rounds", "1"])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("| dg-all |") && text.contains("| scan |"),
        "{text}"
    );
}
