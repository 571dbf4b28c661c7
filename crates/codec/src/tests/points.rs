use super::{Rng, column_round_trip, few, times_round_trip};
use crate::{ColumnType, EncoderState, chunk, count_up_to, decode_column, word_at};

/// For a vector of each encoding with random access, looks up the word of every row, and searches for every word.
#[test]
fn single_words_of_every_encoding_that_has_them() {
    let mut rng = Rng(61);
    let mut met = [0; 16];
    for round in 0..few(60) {
        for (ty, words) in shapes(&mut rng, [1024, 1000, 200, 77][round as usize % 4]) {
            let mut payload = Vec::new();
            let chunk =
                crate::encode_column(ty, &words, &mut EncoderState::default(), &mut payload);
            let mut back = vec![0; words.len()];
            decode_column(&chunk, &payload, &mut back).unwrap();
            for (row, &word) in back.iter().enumerate().step_by(1 + few(3) as usize) {
                let found = word_at(&chunk, &payload, words.len(), row).unwrap();
                met[usize::from(chunk.encoding)] += usize::from(found.is_some());
                assert!(
                    found.is_none_or(|found| found == word),
                    "row {row} of {chunk:?}"
                );
            }
        }
    }
    let looked_into = [
        chunk::CONSTANT,
        chunk::RAW,
        chunk::FOR,
        chunk::DELTA,
        chunk::ALP_FOR,
        chunk::ALP_DELTA,
        chunk::ORDERED_FOR,
        chunk::ORDERED_DELTA,
        chunk::LIST,
    ];
    for encoding in looked_into.into_iter().filter(|_| !cfg!(miri)) {
        assert!(
            met[usize::from(encoding)] > 0,
            "encoding {encoding} among {met:?}"
        );
    }
}

fn shapes(rng: &mut Rng, n: u64) -> Vec<(ColumnType, Vec<u64>)> {
    let decimals = |of: &dyn Fn(u64) -> i64| {
        let word = |i| (of(i) as f64 / 100.0).to_bits();
        (ColumnType::F64, (0..n).map(word).collect())
    };
    let noise: Vec<u64> = (0..n).map(|_| rng.next()).collect();
    let mut walk = 0i64;
    let walk: Vec<i64> = noise
        .iter()
        .map(|x| {
            walk += (x % 101) as i64 - 50;
            walk
        })
        .collect();
    let rare = |i: u64| i64::from(noise[i as usize].is_multiple_of(50));
    vec![
        (ColumnType::U64, vec![7; n as usize]),
        (ColumnType::U64, noise.clone()),
        (
            ColumnType::U64,
            noise.iter().map(|x| 9000 + x % 1000).collect(),
        ),
        (
            ColumnType::I64,
            walk.iter().map(|x| (1_000_000 * *x) as u64).collect(),
        ),
        (
            ColumnType::I64,
            (0..n).map(|i| 5 * i + 700 * (rare(i) as u64)).collect(),
        ),
        (
            ColumnType::U64,
            noise
                .iter()
                .map(|x| [3, 1 << 60, 77, 1 << 33][(x % 4) as usize])
                .collect(),
        ),
        decimals(&|i| (noise[i as usize] % 5000) as i64),
        decimals(&|i| walk[i as usize] + 30_000 * rare(i)),
        decimals(&|i| 3 * i as i64),
        (
            ColumnType::F64,
            noise
                .iter()
                .map(|x| (1.0 + (x >> 40) as f64 * 1e-9).to_bits())
                .collect(),
        ),
        (
            ColumnType::F64,
            noise
                .iter()
                .map(|x| (4.0 + (x % 997) as f64 * 2f64.powi(-40)).to_bits())
                .collect(),
        ),
        (
            ColumnType::F64,
            (0..n)
                .map(|i| (4.0 + (7 * i as i64 + 900 * rare(i)) as f64 * 2f64.powi(-40)).to_bits())
                .collect(),
        ),
    ]
}

/// Creates series ids as in blocks of a run: several rows of each id, mostly the same number of rows.
#[test]
fn counts_up_to_a_word_of_ids() {
    let mut rng = Rng(67);
    let mut told = 0;
    for round in 0..few(300) {
        let each = 1 + rng.below([1, 2, 12, 200][round as usize % 4]);
        let (mut id, mut ids) = (rng.below(1 << 40), Vec::new());
        while ids.len() < 1000 {
            let own = if rng.below(20) == 0 {
                rng.below(each + 1)
            } else {
                each
            };
            ids.extend((0..own).map(|_| id));
            id += if rng.below(30) == 0 {
                2 + rng.below(9)
            } else {
                1
            };
        }
        ids.truncate(1 + rng.below(1000) as usize);
        let (chunk, payload) =
            column_round_trip(ColumnType::U64, &ids, &mut EncoderState::default());
        for word in ids[0].saturating_sub(1)..=ids[ids.len() - 1] + 1 {
            let count = count_up_to(&chunk, &payload, ids.len(), word).unwrap();
            let expected = ids.partition_point(|other| *other <= word);
            assert!(
                count.is_none_or(|count| count == expected),
                "{word} in {chunk:?}"
            );
            told += usize::from(count.is_some());
        }
    }
    assert!(told > 0, "nothing was told");
}

#[test]
fn single_times_near_a_line() {
    let mut rng = Rng(71);
    let times = (0..1000).map(|i| i * 1_000_000_000 + rng.below(1 << 20) as i64);
    let times: Vec<i64> = times.collect();
    let (chunk, payload) = times_round_trip(&times);
    assert_eq!(chunk.encoding, chunk::SLOPE);
    for (row, &time) in times.iter().enumerate() {
        let word = word_at(&chunk, &payload, times.len(), row).unwrap();
        assert_eq!(word, Some(time as u64), "row {row}");
    }
}
