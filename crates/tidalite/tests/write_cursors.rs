//! The positions of write cursors after unsuccessful searches and after removals are compared with lists; then entries
//! are removed by a predicate.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use tidalite::storage::MemoryStorage;
use tidalite::{Database, Options, SetCursorMut, TableMut};
use tidalite_testkit::rng::Rng;

fn small_pages() -> Database {
    tidalite_testkit::watch();
    Options::new()
        .page_size(512)
        .open_storage(Arc::new(MemoryStorage::new()))
        .unwrap()
}

/// After a seek to `probe`, whether or not it is found, a step in either direction goes to the neighbour, and a step in
/// the other direction returns.
fn steps_from_a_miss(table: &mut TableMut<'_>, keys: &[Vec<u8>], probe: &[u8]) {
    let at = keys.partition_point(|key| key.as_slice() < probe);
    let there = keys.get(at).is_some_and(|key| key == probe);
    let (before, behind) = (
        at.checked_sub(1).map(|at| &keys[at]),
        keys.get(at + usize::from(there)),
    );
    let mut edit = table.cursor_mut();
    for round in 0..2 {
        assert_eq!(edit.seek(probe).unwrap(), there, "{probe:?}");
        assert!(edit.is_at_entry() == there && !edit.eof());
        assert_eq!(edit.next().unwrap(), behind.is_some());
        assert!(edit.is_at_entry() == behind.is_some() && edit.eof() == behind.is_none());
        assert!(behind.is_none_or(|behind| edit.key() == behind));
        assert_eq!(
            edit.on_first().unwrap(),
            behind.is_some() && at + usize::from(there) == 0
        );
        if round == 1 && !there {
            // Steps back over the gap where `probe` would be.
            assert_eq!(edit.previous().unwrap(), before.is_some());
            continue;
        }
        assert_eq!(edit.seek(probe).unwrap(), there);
        assert_eq!(edit.previous().unwrap(), before.is_some());
        assert!(edit.is_at_entry() == before.is_some() && !edit.eof());
        assert!(before.is_none_or(|before| edit.key() == before));
        assert_eq!(
            edit.on_last().unwrap(),
            before.is_some() && at == keys.len()
        );
    }
}

#[test]
fn a_key_that_is_not_there_leaves_the_cursor_in_its_gap() {
    let db = small_pages();
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.table("t").unwrap();
    for (path, rows) in [
        (&[][..], 300),
        (&["small"], 3),
        (&["large"], 300),
        (&["none"], 0),
    ] {
        let mut table = table.nested_at(path);
        let keys: Vec<_> = (0..rows)
            .map(|i| (2 * i + 1u16).to_be_bytes().to_vec())
            .collect();
        for key in &keys {
            table.put(key, b"v").unwrap();
        }
        // In the outer table the keys of the nested tables come last; the probes stay before them.
        for probe in 0..2 * rows.min(40) + 2 {
            steps_from_a_miss(&mut table, &keys, &probe.to_be_bytes());
        }
        steps_from_a_miss(&mut table, &keys, b"");
        if rows > 0 {
            let behind = (2 * rows).to_be_bytes();
            steps_from_a_miss(&mut table, &keys, &behind);
        }
    }
}

type Pair = (Vec<u8>, Vec<u8>);

/// The position of a cursor among pairs. A gap is a key and the index of the pair after the gap.
#[derive(Clone, Debug, PartialEq)]
enum Here {
    Before,
    On(usize),
    Gap(Vec<u8>, usize),
    After,
}

struct Model {
    pairs: Vec<Pair>,
    here: Here,
}

impl Model {
    fn below(&self, pair: &Pair) -> usize {
        self.pairs.partition_point(|other| other < pair)
    }

    fn upto(&self, pair: &Pair) -> usize {
        self.pairs.partition_point(|other| other <= pair)
    }

    /// Indices of the pairs of a key.
    fn of(&self, key: &[u8]) -> std::ops::Range<usize> {
        let from = self.pairs.partition_point(|other| other.0.as_slice() < key);
        let to = self
            .pairs
            .partition_point(|other| other.0.as_slice() <= key);
        from..to
    }

    fn key(&self) -> Option<Vec<u8>> {
        match &self.here {
            Here::On(at) => Some(self.pairs[*at].0.clone()),
            Here::Gap(key, _) => Some(key.clone()),
            Here::Before | Here::After => None,
        }
    }

    /// Index of the pair after the cursor's position, and the number of pairs before that position.
    fn around(&self) -> (usize, usize) {
        match self.here {
            Here::Before => (0, 0),
            Here::On(at) => (at + 1, at),
            Here::Gap(_, at) => (at, at),
            Here::After => (self.pairs.len(), self.pairs.len()),
        }
    }

    fn forward(&mut self, to: usize) -> bool {
        let there = to < self.pairs.len();
        self.here = if there { Here::On(to) } else { Here::After };
        there
    }

    /// Moves to the pair whose index is one less than `before`; returns false if there is none.
    fn backward(&mut self, before: usize) -> bool {
        let found = before.checked_sub(1);
        self.here = found.map_or(Here::Before, Here::On);
        found.is_some()
    }

    /// Moves to the pair with index `to` if that belongs to this key, otherwise into the gap at `miss`.
    fn among(&mut self, key: &[u8], to: Option<usize>, miss: Option<usize>) -> bool {
        let found = to.filter(|to| self.of(key).contains(to));
        match (found, miss) {
            (Some(to), _) => self.here = Here::On(to),
            (None, Some(gap)) => self.here = Here::Gap(key.to_vec(), gap),
            (None, None) => {}
        }
        found.is_some()
    }
}

/// Makes the same move with the cursor and in the model, and returns both results.
fn go(edit: &mut SetCursorMut<'_, '_>, model: &mut Model, number: u64, to: &Pair) -> (bool, bool) {
    let (key, value) = (&to.0[..], &to.1[..]);
    let (behind, before) = model.around();
    let (below, upto, of) = (model.below(to), model.upto(to), model.of(key));
    let here = model.key();
    let own = here.as_deref().map(|key| model.of(key));
    let last_before = |at: usize| at.checked_sub(1);
    match number {
        0 => (edit.first().unwrap(), model.forward(0)),
        1 => (edit.last().unwrap(), model.backward(model.pairs.len())),
        2 => (edit.next().unwrap(), model.forward(behind)),
        3 => (edit.previous().unwrap(), model.backward(before)),
        4 => {
            let found = here.is_some_and(|key| model.among(&key, Some(behind), None));
            (edit.next_value().unwrap(), found)
        }
        5 => {
            let to = last_before(before);
            let found = here.is_some_and(|key| model.among(&key, to, None));
            (edit.previous_value().unwrap(), found)
        }
        6 => {
            let to = own.map_or(behind, |own| own.end);
            (edit.next_key().unwrap(), model.forward(to))
        }
        7 => {
            let to = own.map_or(before, |own| own.start);
            (edit.previous_key().unwrap(), model.backward(to))
        }
        8 | 9 => {
            let found = here.is_some_and(|key| {
                let own = model.of(&key);
                let to = if number == 8 {
                    Some(own.start)
                } else {
                    last_before(own.end)
                };
                model.among(&key, to, None)
            });
            let moved = if number == 8 {
                edit.first_value()
            } else {
                edit.last_value()
            };
            (moved.unwrap(), found)
        }
        10 => {
            let found = model.among(key, Some(of.start), Some(of.start));
            (edit.seek_key(key).unwrap(), found)
        }
        11 => (edit.seek_key_ge(key).unwrap(), model.forward(of.start)),
        12 => (edit.seek_key_gt(key).unwrap(), model.forward(of.end)),
        13 => (edit.seek_key_le(key).unwrap(), model.backward(of.end)),
        14 => (edit.seek_key_lt(key).unwrap(), model.backward(of.start)),
        15 => {
            let exact = (below < upto).then_some(below);
            let found = model.among(key, exact, Some(below));
            (edit.seek(key, value).unwrap(), found)
        }
        16 => {
            let found = model.among(key, Some(below), Some(below));
            (edit.seek_value_ge(key, value).unwrap(), found)
        }
        17 => {
            let found = model.among(key, Some(upto), Some(upto));
            (edit.seek_value_gt(key, value).unwrap(), found)
        }
        18 => {
            let found = model.among(key, last_before(upto), Some(upto));
            (edit.seek_value_le(key, value).unwrap(), found)
        }
        19 => {
            let found = model.among(key, last_before(below), Some(below));
            (edit.seek_value_lt(key, value).unwrap(), found)
        }
        20 => (edit.seek_ge(key, value).unwrap(), model.forward(below)),
        21 => (edit.seek_gt(key, value).unwrap(), model.forward(upto)),
        22 => (edit.seek_le(key, value).unwrap(), model.backward(upto)),
        _ => (edit.seek_lt(key, value).unwrap(), model.backward(below)),
    }
}

fn change(edit: &mut SetCursorMut<'_, '_>, model: &mut Model, number: u64, to: &Pair) {
    match (number, model.here.clone()) {
        (0..4, _) => {
            let new = edit.put(&to.0, &to.1).unwrap();
            let at = model.below(to);
            assert_eq!(new, model.pairs.get(at) != Some(to));
            if new {
                model.pairs.insert(at, to.clone());
            }
            model.here = Here::On(at);
        }
        (4..7, here) => {
            assert_eq!(edit.remove().unwrap(), matches!(here, Here::On(_)));
            if let Here::On(at) = here {
                let (key, _) = model.pairs.remove(at);
                model.here = Here::Gap(key, at);
            }
        }
        (7, Here::On(at)) => {
            let (key, _) = model.pairs[at].clone();
            let of = model.of(&key);
            assert_eq!(edit.remove_all().unwrap(), of.len() as u64);
            model.pairs.drain(of.clone());
            model.here = Here::Gap(key, of.start);
        }
        (8, Here::On(at)) => {
            let (key, _) = model.pairs.remove(at);
            edit.replace(&to.1).unwrap();
            let pair = (key, to.1.clone());
            let at = model.below(&pair);
            if model.pairs.get(at) != Some(&pair) {
                model.pairs.insert(at, pair);
            }
            model.here = Here::On(at);
        }
        _ => {}
    }
}

#[test]
fn moves_among_pairs_agree_with_a_list() {
    for seed in 0..4 {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let db = small_pages();
        let mut tx = db.begin_write().unwrap();
        let mut table = tx.set_table("m").unwrap();
        // Few values, among them some that differ only in the number of zero bytes at their end; or so many that the
        // set of a key has pages of its own.
        let values = if seed < 2 { 5 } else { 90 };
        let pair = |rng: &mut Rng| {
            let key = vec![b'k'; rng.index(4)];
            let value = match rng.below(values) {
                0 => Vec::new(),
                n @ 1..=2 => vec![0; n as usize],
                n => format!("value {n:03}").into_bytes(),
            };
            (key, value)
        };
        let mut model = Model {
            pairs: Vec::new(),
            here: Here::Before,
        };
        let mut edit = table.cursor_mut();
        for step in 0..12_000 {
            let to = pair(&mut rng);
            if rng.one_in(4) {
                let number = rng.below(9);
                // Keeps the number of pairs roughly constant: removal of a whole key is rare.
                if number != 7 || rng.one_in(10) {
                    change(&mut edit, &mut model, number, &to);
                }
            } else {
                let number = rng.below(24);
                let was = model.here.clone();
                let (found, expected) = go(&mut edit, &mut model, number, &to);
                assert_eq!(
                    found, expected,
                    "step {step}: {number} from {was:?} to {to:?}"
                );
            }
            let on = match model.here {
                Here::On(at) => Some(at),
                _ => None,
            };
            assert_eq!(edit.is_at_entry(), on.is_some(), "step {step}");
            assert_eq!(edit.eof(), model.here == Here::After, "step {step}");
            let own = on.map_or(0..0, |at| model.of(&model.pairs[at].0));
            assert_eq!(edit.count().unwrap(), own.len() as u64);
            if let Some(at) = on {
                assert_eq!((edit.key(), edit.value()), {
                    let (key, value) = &model.pairs[at];
                    (&key[..], &value[..])
                });
            }
            let ends = [
                (edit.on_first().unwrap(), 0),
                (edit.on_last().unwrap(), model.pairs.len().wrapping_sub(1)),
                (edit.on_first_value().unwrap(), own.start),
                (edit.on_last_value().unwrap(), own.end.wrapping_sub(1)),
            ];
            for (is, end) in ends {
                assert_eq!(is, on == Some(end), "step {step}");
            }
        }
        while !model.pairs.is_empty() {
            assert_eq!(table.pop_first().unwrap(), Some(model.pairs.remove(0)));
            assert_eq!(table.pop_last().unwrap(), model.pairs.pop());
        }
        assert_eq!(table.pop_first().unwrap(), None);
        assert_eq!(table.pop_last().unwrap(), None);
    }
}

#[test]
fn retained_pairs_equal_a_map() {
    for seed in 0..6 {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let db = small_pages();
        let mut tx = db.begin_write().unwrap();
        let mut table = tx.table("t").unwrap();
        let mut table = table.nested_at(&["below"][..seed as usize % 2]);
        let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
        // There are more entries than one pass of `retain` collects.
        for i in 0..if seed < 4 { 5000u32 } else { 3 } {
            let len = if rng.one_in(100) { 900 } else { rng.index(9) };
            let (key, value) = (i.to_be_bytes().to_vec(), vec![i as u8; len]);
            table.put(&key, &value).unwrap();
            model.insert(key, value);
        }
        let nested = [2, 2000u32].map(|i| [&i.to_be_bytes()[..], b"nested"].concat());
        for key in &nested {
            table.nested(key).put(b"in", b"v").unwrap();
        }
        for round in 0..4 {
            let bound = |rng: &mut Rng| {
                let key = (rng.below(5000) as u32).to_be_bytes().to_vec();
                match rng.below(3) {
                    0 => Bound::Unbounded,
                    1 => Bound::Included(key),
                    _ => Bound::Excluded(key),
                }
            };
            let ends = match round {
                3 => (Bound::Unbounded, Bound::Unbounded),
                _ => (bound(&mut rng), bound(&mut rng)),
            };
            // The predicate keeps every second entry, long runs of entries, or entries chosen by value.
            let kept = |key: &[u8], value: &[u8]| match round {
                0 => key[3].is_multiple_of(2),
                1 => key[2].is_multiple_of(3),
                2 => value.len() > 4,
                _ => false,
            };
            let mut asked = Vec::new();
            let removed = table.retain(ends.clone(), |key, value| {
                asked.push((key.to_vec(), value.to_vec()));
                kept(key, value)
            });
            let inside = |key: &Vec<u8>| std::ops::RangeBounds::contains(&ends, key);
            let expected = model.iter().filter(|row| inside(row.0));
            assert!(asked.iter().map(|(key, value)| (key, value)).eq(expected));
            let before = model.len();
            model.retain(|key, value| !inside(key) || kept(key, value));
            assert_eq!(removed.unwrap(), (before - model.len()) as u64);
            let view = table.view().unwrap();
            assert_eq!(view.count(), (model.len() + nested.len()) as u64);
            for (key, value) in &model {
                assert_eq!(view.get(key).unwrap().as_ref(), Some(value));
            }
        }
        for key in &nested {
            assert_eq!(table.nested(key).get(b"in").unwrap().unwrap(), b"v");
        }
        assert_eq!(table.nested(b"none").retain(.., |_, _| false).unwrap(), 0);
        tx.commit().unwrap();
        assert!(db.check().unwrap().is_clean());
    }
}
