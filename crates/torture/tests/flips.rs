//! Every bit of a file, flipped.

use tidalite_torture::flips::{Contents, examine};

/// Bits for which the whole content is read besides the check.
const QUERY_MASKS: u8 = 0b0001_0000;

#[test]
fn every_flipped_bit_is_reported_and_no_answer_is_wrong() {
    let masks: Vec<u8> = (0..8).map(|bit| 1 << bit).collect();
    let found = examine(Contents::Mixed, 0, &masks, QUERY_MASKS, 2)
        .unwrap_or_else(|problem| panic!("{problem}"));
    println!("{found:?}");
    assert_eq!(found.flips, found.pages * 512 * 8, "every bit once");
}
