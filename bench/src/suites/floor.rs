//! Measures the disk's own time for a commit: blocks are overwritten in a file that was written before, and then
//! synced. An engine that syncs cannot be faster.
//!
//! | case | written before each sync |
//! |---|---|
//! | `disk-append` | a block at the end of a growing file: like a log that is not preallocated |
//! | `disk-block` | one block of 4 KiB: like a preallocated log |
//! | `disk-8-blocks` | eight adjacent blocks |
//! | `disk-4-places`, `disk-16-places` | as many scattered blocks |
//! | `disk-2-blocks` | two adjacent blocks: our small commit in the log |
//! | `disk-two-barriers` | three adjacent blocks, a sync, two blocks of a meta record: a commit without the log |

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;

use crate::args::Options;
use crate::contest::Contest;
use crate::engine::{Kind, Result};
use crate::meter::{Latencies, Meter};
use crate::os;

const BLOCK: u64 = 4096;
/// Number of blocks in the test file.
const BLOCKS: u64 = 16 << 10;
/// Block numbers of the two copies of a meta record; two such pairs are used alternately.
const RECORDS: [[u64; 2]; 2] = [[1, 4], [2, 5]];
/// Number of the first block that is used for all other writes.
const FIRST: u64 = 64;

/// The bare disk as a participant, without a database.
const DISK: Kind = Kind {
    name: "disk",
    ours: false,
    open: |_, _| Err("the disk is no database".into()),
};

/// Runs one round of all cases on the bare disk.
pub(crate) fn run(options: &Options, contest: &mut Contest) -> Result<()> {
    let dir = os::TempDir::within(&options.dir, DISK.name)?;
    os::settle(dir.path())?;
    let path = dir.path().join("blocks");
    let mut create = OpenOptions::new();
    let file = create.read(true).write(true).create(true).open(path)?;
    let zeros = vec![0; 1 << 20];
    for at in (0..BLOCKS * BLOCK).step_by(zeros.len()) {
        file.write_all_at(&zeros, at)?;
    }
    file.sync_all()?;
    let mut disk = Disk {
        file,
        syncs: 0,
        random: 1,
        bytes: vec![0; 8 * BLOCK as usize],
    };
    type Case = (&'static str, fn(&mut Disk) -> io::Result<()>);
    // The case that makes the file longer comes last, because the other cases need a file that was written before.
    let cases: [Case; 7] = [
        ("disk-block", |disk| disk.write_beside(1)?.sync()),
        ("disk-2-blocks", |disk| disk.write_beside(2)?.sync()),
        ("disk-8-blocks", |disk| disk.write_beside(8)?.sync()),
        ("disk-4-places", |disk| disk.write_scattered(4)?.sync()),
        ("disk-16-places", |disk| disk.write_scattered(16)?.sync()),
        ("disk-two-barriers", |disk| {
            disk.write_beside(3)?.sync()?;
            disk.write_record()?.sync()
        }),
        ("disk-append", |disk| {
            let at = BLOCKS + disk.syncs;
            disk.write(at, 1)?.sync()
        }),
    ];
    for (case, work) in cases {
        if !options.chosen(case) {
            continue;
        }
        disk.syncs = 0;
        let mut latencies = Latencies::default();
        let meter = Meter::start(dir.path());
        for _ in 0..options.commits {
            latencies.time(|| work(&mut disk))?;
        }
        let sample = meter.finish(options.commits, 0, latencies);
        contest.add(case, "commits/s", false, DISK, sample);
    }
    Ok(())
}

struct Disk {
    file: File,
    syncs: u64,
    random: u64,
    bytes: Vec<u8>,
}

impl Disk {
    fn write(&mut self, block: u64, blocks: u64) -> io::Result<&mut Self> {
        let bytes = &mut self.bytes[..(blocks * BLOCK) as usize];
        bytes.fill(self.syncs as u8);
        self.file.write_all_at(bytes, block * BLOCK)?;
        Ok(self)
    }

    /// Writes this many adjacent blocks, which lie after the blocks of the previous commit.
    fn write_beside(&mut self, blocks: u64) -> io::Result<&mut Self> {
        let places = (BLOCKS - FIRST) / blocks;
        let place = self.syncs % places;
        self.write(FIRST + place * blocks, blocks)
    }

    fn write_scattered(&mut self, blocks: u64) -> io::Result<&mut Self> {
        for _ in 0..blocks {
            // A random number generator of Knuth, whose high bits are random enough for positions.
            let next = self.random.wrapping_mul(6_364_136_223_846_793_005);
            self.random = next.wrapping_add(1_442_695_040_888_963_407);
            let place = (self.random >> 33) % (BLOCKS - FIRST);
            self.write(FIRST + place, 1)?;
        }
        Ok(self)
    }

    fn write_record(&mut self) -> io::Result<&mut Self> {
        let [a, b] = RECORDS[(self.syncs / 2 % 2) as usize];
        self.write(a, 1)?.write(b, 1)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.syncs += 1;
        self.file.sync_data()
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_case_is_measured() {
        let line = ["commit", "--commits", "2", "--peers", "none"].map(str::to_owned);
        let options = crate::args::parse(line).unwrap().unwrap();
        let mut contest = crate::contest::Contest::among("commit", &[]);
        super::run(&options, &mut contest).unwrap();
        assert_eq!(contest.table().lines().count(), 2 + 7);
        assert_eq!(contest.json().len(), 7);
    }
}
