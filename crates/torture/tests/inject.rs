//! Makes some of the system calls fail or kill the process, with `strace`: a sample of the long search.
//!
//! To run more: `cargo run --release -p tidalite-torture -- inject --seed S`.

use std::process::Command;

#[test]
fn a_failed_call_is_a_typed_error_and_loses_nothing() {
    let output = Command::new(env!("CARGO_BIN_EXE_tidalite-torture"))
        .args(["inject", "--seed", "1", "--step", "7", "--rounds", "2"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{said}");
    assert!(output.status.success(), "{said}");
    let ran = said.contains("nothing lost") && !said.contains(" 0 killed");
    assert!(ran || said.starts_with("skipped"), "{said}");
}
