//! Real power cuts under ext4, where FUSE and loop devices are to be had: a slice, and that a deliberate bug shows.
//!
//! More: `cargo run --release -p tidalite-torture -- powercut --cuts N --seed S`, as root.

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
    println!("{}", nothing_lost(&["--cuts", "24", "--seed", "1"]));
}

#[test]
fn nor_on_a_device_without_a_file_system() {
    let raw = ["--cuts", "24", "--seed", "4", "--flavour", "raw device"];
    println!("{}", nothing_lost(&raw));
}

fn nothing_lost(arguments: &[&str]) -> String {
    let (well, said) = powercut(arguments);
    assert!(well, "{said}");
    assert!(
        said.contains("nothing lost") || said.starts_with("skipped"),
        "{said}"
    );
    said
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
