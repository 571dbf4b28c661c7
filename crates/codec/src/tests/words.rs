//! First, smallest, largest and last words stored as the integers of their chunk's decimal rule.

use super::{Rng, few};
use crate::{Anchors, Chunk, Clock, ColumnType, Hint, Parts, Stats, WordForm, encode_column};

/// Words with two decimals are stored as integers beside their chunk, whether the rule multiplies or divides, and
/// round-trip bit by bit. Words that are not decimals of the chunk's rule keep the form of the type.
#[test]
fn words_of_decimals_are_short_integers() {
    let mut rng = Rng(433);
    for round in 0..few(300) {
        let by = [10.0, 100.0, 1000.0][rng.below(3) as usize];
        let mut value = rng.next() as i64 >> (30 + rng.below(30));
        let words: Vec<u64> = (0..1024)
            .map(|_| {
                value += rng.below(101) as i64 - 50;
                (value as f64 / by).to_bits()
            })
            .collect();
        let times: Vec<i64> = (0..1024).map(|i| i * 1000).collect();
        let stats = Stats::of(ColumnType::F64, &times, &words);
        let clock = Clock::units(0, 1023 * 1000);
        let chunk = encode_column(
            ColumnType::F64,
            &words,
            &mut Hint::default(),
            &mut Vec::new(),
        );
        let form = WordForm::beside(&chunk, &stats);
        assert_eq!(form.code(), 1, "round {round}: {chunk:?}");
        let fields = stats.to_fields(&clock, form);
        // The largest, the first and the last value, relative to the smallest.
        assert!([0, 2, 3].iter().all(|&field| fields[field] <= 102_300));
        let anchors = Anchors::of_fields(ColumnType::F64, form, [fields[0], fields[1]]);
        let (rule, own) = chunk.to_fields(anchors);
        assert_eq!(own[2], 0, "what steps start from is the first word");
        let of = (chunk.rows(), chunk.len());
        assert_eq!(Chunk::from_fields(rule, of, &own, anchors), chunk);
        let read = WordForm::of_code(1, rule[0], own[0]).unwrap();
        assert_eq!(read, form);
        let of = (ColumnType::F64, read);
        let back = Stats::of_fields(of, 1024, &fields, &clock).unwrap();
        assert_eq!(back.to_bytes(), stats.to_bytes(), "round {round}");
        for parts in [Parts::SUM, Parts::EXTREMES, Parts::ALL] {
            let mut found = Stats::empty_with(parts, ColumnType::F64);
            found
                .merge_fields(1024, &clock, || Some(fields), || Some((fields, read)))
                .unwrap();
            let mut expected = Stats::empty_with(parts, ColumnType::F64);
            expected.merge_after(&stats);
            assert_eq!(format!("{found:?}"), format!("{expected:?}"));
        }
        // The rule does not fit all four words.
        let mut odd = words;
        odd[0] = std::f64::consts::PI.to_bits();
        let stats = Stats::of(ColumnType::F64, &times, &odd);
        assert_eq!(WordForm::beside(&chunk, &stats), WordForm::OF_TYPE);
    }
    for (code, encoding, details) in [(2, 5, 0), (1, 4, 0), (1, 5, 19), (1, 6, 254 << 8)] {
        assert_eq!(WordForm::of_code(code, encoding, details), None);
    }
}
