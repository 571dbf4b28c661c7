//! Kills processes at random moments: a short run, and a run with a deliberate bug that must be found.
//!
//! To run more: `cargo run --release -p tidalite-torture -- kills --readers N --writers N --seed S`.

use std::process::Command;

fn kills(arguments: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tidalite-torture"))
        .arg("kills")
        .args(arguments)
        .output()
        .expect("the program is built beside its tests");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.success(), said)
}

#[test]
fn killed_processes_lose_block_and_retain_nothing() {
    // In the file of this seed, writers may evict snapshots.
    let (well, said) = kills(&["--readers", "120", "--writers", "20", "--seed", "25"]);
    println!("{said}");
    assert!(well, "{said}");
}

#[test]
fn a_writer_that_forgets_readers_is_found_out() {
    let (well, said) = kills(&[
        "--readers",
        "400",
        "--writers",
        "60",
        "--seed",
        "2",
        "--bug",
        "ForgetReaders",
    ]);
    println!("{said}");
    assert!(!well, "not found: {said}");
}
