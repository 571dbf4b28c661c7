//! Flips bits of files, and checks that the damage is reported and never gives wrong answers.
//!
//! The long search flips every bit of every kind of file and reads the content after each flip: `cargo run --release -p
//! tidalite-torture -- flips`.

use tidalite_torture::flips::{Contents, Depth, examine, heal, isolated, salvaged};

const THREADS: usize = 2;

#[test]
fn every_flipped_bit_is_reported_and_no_answer_is_wrong() {
    let found = examine(Contents::Mixed, 0, Depth::EveryBit, THREADS)
        .unwrap_or_else(|problem| panic!("{problem}"));
    println!("{found:?}");
    assert_eq!(found.flips, found.pages * 512 * 8, "every bit once");
}

#[test]
fn a_bit_of_every_byte_of_the_other_kinds_of_file() {
    for contents in &Contents::ALL[1..] {
        let found = examine(*contents, 0, Depth::OneBit, THREADS)
            .unwrap_or_else(|problem| panic!("{contents:?}: {problem}"));
        println!("{contents:?}: {found:?}");
        assert_eq!(found.flips, found.pages * 512, "one of every byte");
    }
}

#[test]
fn a_flip_in_the_head_is_healed_by_writers() {
    let flips = heal(Contents::Mixed, 0, Depth::OneBit, THREADS)
        .unwrap_or_else(|problem| panic!("{problem}"));
    println!("{flips} flips in the head");
    assert!(flips >= 6 * 4096 / 4, "{flips}");
}

#[test]
fn a_flip_in_a_chunk_damages_one_object() {
    let chunks = isolated(0).unwrap_or_else(|problem| panic!("{problem}"));
    println!("{chunks} chunks");
    assert!(chunks > 15, "{chunks}");
}

#[test]
fn salvage_gives_back_what_no_damaged_page_held() {
    let damages: [fn(&mut [u8]); 2] = [|page| page.fill(0), |page| page[200] ^= 4];
    for damage in damages {
        let saved = salvaged(0, damage).unwrap_or_else(|problem| panic!("{problem}"));
        println!("{saved:?}");
        assert!(saved.lost.iter().all(|lost| *lost > 0), "{saved:?}");
        assert!(saved.whole > 0, "{saved:?}");
        assert!(saved.above * 20 < saved.pages, "{saved:?}");
        assert!(saved.without_options <= 1, "{saved:?}");
    }
}
