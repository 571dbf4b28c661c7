//! Real power cuts under ext4, if FUSE and loop devices are available: a short run, and deliberate bugs that must be
//! found.
//!
//! To run more: `cargo run --release -p tidalite-torture -- powercut --cuts N --seed S`, as root.

use std::process::Command;

fn powercut(arguments: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tidalite-torture"))
        .arg("powercut")
        .args(arguments)
        .output()
        .expect("the program is built beside its tests");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.success(), said)
}

#[test]
fn no_acknowledged_commit_is_lost_when_the_power_goes() {
    println!("{}", nothing_lost(&["--cuts", "60", "--seed", "3"]));
}

#[test]
fn nor_on_a_device_without_a_file_system() {
    let raw = ["--cuts", "30", "--seed", "4", "--flavour", "raw device"];
    println!("{}", nothing_lost(&raw));
}

/// Checks that the run has lost nothing, and that it includes the critical case: lock files that name lazy commits with
/// pages that the disk has lost.
fn nothing_lost(arguments: &[&str]) -> String {
    let (well, said) = powercut(arguments);
    assert!(well, "{said}");
    if !said.starts_with("skipped") {
        assert!(said.contains("nothing lost"), "{said}");
        assert!(said.contains(" dropped: "), "{said}");
        assert!(!said.contains(" dropped: 0,"), "{said}");
    }
    said
}

/// If a lock file is trusted without verification, opening finds missing pages, and the search must detect this.
#[test]
fn trusting_an_unverified_lock_file_is_detected() {
    let arguments = [
        "--cuts",
        "120",
        "--seed",
        "5",
        "--bug",
        "UnsyncedMetaUnverified",
    ];
    let (well, said) = powercut(&arguments);
    println!("{said}");
    assert!(
        !well || said.starts_with("skipped"),
        "not found within 120 cuts"
    );
}

#[test]
fn a_sync_that_is_left_out_loses_something() {
    let (well, said) = powercut(&["--cuts", "200", "--seed", "2", "--bug", "SkipSync"]);
    println!("{said}");
    assert!(
        !well || said.starts_with("skipped"),
        "not found within 200 cuts"
    );
}
