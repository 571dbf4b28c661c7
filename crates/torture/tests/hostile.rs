//! Files changed under right checksums: a slice of the long search.
//!
//! More: `cargo run --release -p tidalite-torture -- hostile --files N --seed S`.

use std::process::Command;
use tidalite_torture::hostile::exercise::Went;
use tidalite_torture::hostile::{kinds, sound};

#[test]
fn the_sound_files_hold_every_kind_of_block() {
    let kinds = kinds().unwrap();
    println!("{kinds:?}");

    for number in 1..=kinds_known() {
        let kind = format!("{:?}", tidalite_pager::Kind::from_u8(number));
        // Only a database of two files has it, and files are changed one at a time here: crates/pager/tests/large.rs.
        if kind != "LargeSpace" {
            assert!(kinds.contains_key(&kind), "{kind} is in no sound file");
        }
    }
    assert!(kinds.contains_key("None"), "payloads of leaves");
}

/// Or the errors that hostile files give would say nothing.
#[test]
fn everything_that_is_done_with_a_hostile_file_goes_well_with_a_sound_one() {
    tidalite_testkit::watch();
    for (name, went) in sound().unwrap() {
        assert_eq!(went, Went::Used, "{name}");
    }
}

/// The highest number of a kind.
fn kinds_known() -> u8 {
    (1..=u8::MAX)
        .take_while(|&n| tidalite_pager::Kind::from_u8(n) != tidalite_pager::Kind::None)
        .count() as u8
}

#[test]
fn no_hostile_file_makes_it_panic_hang_or_take_memory() {
    let output = Command::new(env!("CARGO_BIN_EXE_tidalite-torture"))
        .args([
            "hostile", "--files", "4000", "--seed", "0", "--first", "5000",
        ])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{said}");
    assert!(output.status.success(), "{said}");
}
