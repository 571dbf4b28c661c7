//! Tests of damage: bit flips under checksums are detected; arbitrary bytes under a valid checksum never cause a panic.

use super::{POINT, World, ramp};
use crate::{SeriesTree, View};
use std::sync::Arc;
use tidalite_base::{Corrupt, SeriesId};
use tidalite_codec::{COLD, ColumnType, Rows};
use tidalite_pager::{Counters, Error, PageRead, PageRef, Ptr, Result};
use tidalite_testkit::ScratchPages;
use tidalite_testkit::rng::Rng;

/// Creates a small file with every kind of block: nodes, pending links, leaves with constant and irregular steps, dead
/// leaves.
fn world(rng: &mut Rng) -> World {
    let mut world = World::new(512, 3, &POINT);
    for i in 0..14 {
        let mut rows = ramp(i * 1_000_000, 10, 700);
        if i % 2 == 1 {
            for time in &mut rows.times {
                *time += rng.between(0, 8);
            }
            for word in &mut rows.columns[1] {
                *word = (rng.below(1000) as f64 / 10.0).to_bits();
            }
        }
        world.link(rows.view());
    }
    // Adds several leaves in one transaction, of which one is deleted.
    world.transact(|tree, pages, packer| {
        for i in 20..24 {
            tree.link(pages, packer, ramp(i * 1_000_000, 10, 600).view())
                .unwrap();
        }
    });
    for i in 20..24 {
        world.note(ramp(i * 1_000_000, 10, 600).view());
    }
    world.delete(21_000_000, 21_999_999);
    if COLD {
        // Adds, before all other rows, a leaf whose times and values become smaller in cold form; also short leaves and
        // dead leaves.
        let mut rows = ramp(-10_000_000, 10, 2500);
        for (time, word) in rows.times.iter_mut().zip(&mut rows.columns[1]) {
            *time += i64::from(rng.u64().trailing_zeros().min(8));
            // Values near one of five others.
            let near = (rng.u64() % 5) as u32 * 100_000;
            *word = f64::from(near + rng.u64().leading_zeros()).to_bits();
        }
        world.link(rows.view());
        let done = world.cool(-1_000_000, u64::MAX);
        assert!(done.bytes_after < done.bytes_before, "{done:?}");
        assert!(world.cool(9_000_000, u64::MAX).leaves > 2);
        world.link(ramp(4_000_001, 1_000_000, 2).view());
        assert!(world.cool(9_000_000, u64::MAX).leaves > 0);
    }
    world.check();
    world
}

/// The results of all queries, or the errors that a reader gets.
fn answers<R: PageRead>(view: &View<'_, R>, times: &[i64]) -> Vec<Result<String>> {
    let mut out = Vec::new();
    let mut scan = Rows::new(2);
    let read = view.for_each_vector(i64::MIN, i64::MAX, &[0, 1], |vector| {
        scan.times.extend_from_slice(vector.times());
        scan.columns[0].extend_from_slice(vector.words(0));
        scan.columns[1].extend_from_slice(vector.words(1));
    });
    out.push(read.map(|_| format!("{scan:?}")));
    let read = view.for_each_vector_reverse(times[0], times[1], &[1], |_| ());
    out.push(read.map(|rows| rows.to_string()));
    for pair in times.windows(2) {
        let (from, to) = (pair[0].min(pair[1]), pair[0].max(pair[1]));
        out.push(view.count(from, to).map(|rows| rows.to_string()));
        out.push(
            view.aggregate(from, to, 1)
                .map(|stats| format!("{stats:?}")),
        );
        let mut windows = Vec::new();
        let done = view.windows(from, to, 777_777, 5, 1, |window| windows.push(window));
        out.push(done.map(|()| format!("{windows:?}")));
        let mut cursor = view.cursor();
        let found = cursor.search(pair[0]);
        out.push(found.map(|found| format!("{found:?} {:?}", cursor.row())));
        for _ in 0..3 {
            out.push(
                cursor
                    .previous()
                    .map(|on| format!("{on} {:?}", cursor.row())),
            );
        }
        let far = cursor.search(pair[1]).and_then(|_| cursor.next());
        out.push(far.map(|on| format!("{on} {:?}", cursor.row())));
    }
    out.push(Ok(format!("{:?} {:?}", view.first(), view.last())));
    out
}

#[test]
fn every_flip_is_reported_and_never_gives_a_wrong_answer() {
    let seed = 11;
    println!("seed {seed}");
    let mut rng = Rng::new(seed);
    let mut world = world(&mut rng);
    let times = [5_000_100, 20_000_500, -1, 2_003_000, 23_000_000, i64::MAX];
    let right: Vec<String> = answers(&world.view(), &times)
        .into_iter()
        .map(|answer| answer.unwrap())
        .collect();
    let mut series_ranges = Vec::new();
    world.report(&mut |claim| series_ranges.push((claim.addr, claim.pages * 512)));
    let bytes: u64 = series_ranges.iter().map(|(_, len)| len).sum();
    let (mut reported, mut refused, mut flips) = (0, 0, 0);
    for (start, len) in series_ranges {
        // Flips one bit of every byte near the beginning of a page range, and of some bytes further on.
        let mut at = start;
        while at < start + len {
            let bit = rng.below(8) as u8;
            world.pages.flip_bit(at, bit);
            flips += 1;
            let report = world.report(&mut |_| ());
            assert!(
                !report.problems.is_empty(),
                "the flip of bit {bit} at {at} is not reported"
            );
            reported += 1;
            if flips % 5 == 0 {
                for (found, right) in answers(&world.view(), &times).iter().zip(&right) {
                    match found {
                        Ok(found) => assert_eq!(found, right, "flip of bit {bit} at {at}"),
                        Err(Error::Corrupt(_)) => refused += 1,
                        Err(other) => panic!("flip of bit {bit} at {at}: {other}"),
                    }
                }
            }
            world.pages.flip_bit(at, bit);
            at += 1 + rng.below(if at - start < 200 { 2 } else { 150 });
        }
    }
    println!("{flips} flips in {bytes} bytes: {reported} reported, {refused} answers refused");
    world.check();
}

/// Reads pages with arbitrary bytes under valid checksums, in place of the real pages.
struct Forged<'a> {
    pages: &'a ScratchPages,
    ranges: Vec<(u64, u64)>,
    changes: Vec<(u64, u8)>,
    counters: Counters,
}

impl Forged<'_> {
    fn read(&self, addr: u64, len: usize) -> Result<PageRef<'_>> {
        let size = self.pages.page_size() as u64;
        let end = addr.saturating_add(len as u64);
        let held = self
            .ranges
            .iter()
            .any(|&(a, pages)| a <= addr && end <= a + pages * size);
        if !held {
            return Err(Corrupt::new("read", addr, "outside", "inside").into());
        }
        let mut bytes = self.pages.bytes(addr, len)?.to_vec();
        for &(at, value) in &self.changes {
            if at >= addr && at < end {
                bytes[(at - addr) as usize] = value;
            }
        }
        Ok(PageRef::Owned(Arc::from(bytes)))
    }
}

impl PageRead for Forged<'_> {
    fn page_size(&self) -> usize {
        self.pages.page_size()
    }

    fn page(&self, ptr: &Ptr) -> Result<PageRef<'_>> {
        self.pages.page(ptr)
    }

    fn block(&self, ptr: &Ptr) -> Result<PageRef<'_>> {
        self.read(ptr.addr, ptr.len as usize)
    }

    fn bytes(&self, addr: u64, len: usize) -> Result<PageRef<'_>> {
        self.read(addr, len)
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }
}

/// The problems that a check reports after these bytes were changed under valid checksums.
pub(super) fn with_changes(world: &World, changes: &[(u64, u8)]) -> Vec<String> {
    let forged = Forged {
        pages: &world.pages,
        ranges: world.pages.live_ranges(),
        changes: changes.to_vec(),
        counters: Counters::default(),
    };
    let mut check = crate::Check::new();
    check.tree(&forged, &world.tree, &mut |_| ()).unwrap();
    check
        .extents(&forged, &world.table, &mut |_| ())
        .unwrap()
        .problems
}

fn a_byte(rng: &mut Rng) -> u8 {
    let any = rng.u64() as u8;
    *rng.pick(&[0, 1, 2, 0x7f, 0x80, 0xff, any])
}

#[test]
fn forged_bytes_never_panic() {
    let seed = 12;
    println!("seed {seed}");
    let mut rng = Rng::new(seed);
    let mut world = world(&mut rng);
    let mut series_ranges = Vec::new();
    world.report(&mut |claim| series_ranges.push((claim.addr, claim.pages * 512)));
    let record = world.tree.encode();
    for round in 0..1200 {
        let mut forged = Forged {
            pages: &world.pages,
            ranges: world.pages.live_ranges(),
            changes: Vec::new(),
            counters: Counters::default(),
        };
        for _ in 0..rng.between(1, 3) {
            let (start, len) = *rng.pick(&series_ranges);
            // Changes mostly the first bytes of a block, where directories and spines are.
            let reach = if rng.one_in(2) { 160 } else { len };
            let at = start + rng.below(reach.min(len));
            let value = a_byte(&mut rng);
            forged.changes.push((at, value));
        }
        let mut bytes = record.clone();
        if round % 3 == 0 {
            for _ in 0..rng.between(1, 2) {
                let at = rng.index(bytes.len());
                bytes[at] = a_byte(&mut rng);
            }
        }
        let Ok(tree) = SeriesTree::decode(SeriesId(7), &bytes) else {
            continue;
        };
        let late = if round % 2 == 0 {
            Rows::new(2)
        } else {
            ramp(2_999_000, 333, 400)
        };
        if tree.types() != POINT {
            continue; // the columns have other types, so the late rows would belong to another series
        }
        let view = View::new(&forged, &tree, late.view());
        let times = [
            rng.between(-1, 24_000_000),
            20_000_500,
            rng.u64() as i64,
            i64::MIN,
        ];
        answers(&view, &times);
        let mut check = crate::Check::new();
        check.tree(&forged, &tree, &mut |_| ()).unwrap();
        check.extents(&forged, &world.table, &mut |_| ()).unwrap();
    }
    world.late = Rows::new(2);
    world.check();
}

#[test]
fn arbitrary_records_are_decoded_or_refused() {
    let seed = 13;
    println!("seed {seed}");
    let mut rng = Rng::new(seed);
    let world = world(&mut rng);
    let record = world.tree.encode();
    assert!(SeriesTree::decode(SeriesId(7), &record).is_ok());
    for cut in 0..record.len() {
        assert!(
            SeriesTree::decode(SeriesId(7), &record[..cut]).is_err(),
            "{cut} bytes"
        );
    }
    for _ in 0..20_000 {
        let mut bytes = record.clone();
        let at = rng.index(bytes.len());
        bytes[at] = rng.u64() as u8;
        if let Ok(tree) = SeriesTree::decode(SeriesId(7), &bytes) {
            let _ = (tree.count(), tree.span(), tree.stored_bytes());
        }
    }
    let mut noise = vec![0; 300];
    for _ in 0..2000 {
        rng.fill(&mut noise);
        assert!(SeriesTree::decode(SeriesId(7), &noise).is_err());
    }
    assert_eq!(ColumnType::from_code(9).ok(), None);
}
