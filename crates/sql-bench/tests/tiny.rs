//! The benchmark runs at a tiny size.

use std::process::Command;

#[test]
fn every_part_runs_at_a_tiny_size() {
    let program = env!("CARGO_BIN_EXE_tidalite-sql-bench");
    let output = Command::new(program)
        .args(["--hosts", "8", "--hours", "13", "--rounds", "1"])
        .args(["--scale", "0.001", "--rows", "2000"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success(),
        "{}\n{text}",
        String::from_utf8_lossy(&output.stderr)
    );
    for line in [
        "| ours, plan kept |",
        "| dg-all |",
        "| scan |",
        "| Arrow, all hosts at each time |",
        "| 22 |",
        "| SELECT of a parameter, which reads nothing |",
        "| UPDATE by key, a durable transaction each |",
    ] {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }
}
