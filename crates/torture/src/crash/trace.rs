//! Formats the operations of a recording as text.

use super::open::HEAD_BYTES;
use tidalite_base::get_u64;
use tidalite_testkit::{Note, Op, SimDisk};

/// Number of operations shown when a run fails.
pub(super) const OPERATIONS_SHOWN: usize = 80;

/// Formats the last operations of a disk as text.
pub(super) fn last_lines(disk: &SimDisk) -> String {
    let recording = disk.recording();
    let from = recording.ops.len().saturating_sub(OPERATIONS_SHOWN);
    lines(&recording.ops, &[]).skip(from).collect()
}

/// Formats the operations of a run as text, one operation per line.
pub(super) fn lines<'a>(ops: &'a [Op], areas: &'a [Vec<u8>]) -> impl Iterator<Item = String> + 'a {
    // The numbers are offsets of fields in a meta record, as in docs/format.md section 3.
    let record = |bytes: &[u8]| {
        let (txn, sequence) = (get_u64(bytes, 24), get_u64(bytes, 48));
        (txn, sequence, get_u64(bytes, 216))
    };
    ops.iter().enumerate().map(move |(at, op)| match op {
        Op::Write(address, bytes) if bytes.len() == 4096 && *address < HEAD_BYTES as u64 => {
            let (txn, sequence, _) = record(bytes);
            format!("{at}: record at {address}: txn {txn}, sequence {sequence}\n")
        }
        Op::Write(address, bytes) => format!("{at}: write {address} +{}\n", bytes.len()),
        Op::Mark(mark) => match (Note::decode(*mark), areas) {
            (Note::Area(number), [_, ..]) => {
                let area = &areas[number as usize];
                let weak = [4096, 8192].map(|at| {
                    let (txn, _, on) = record(&area[at..]);
                    format!("weak txn {txn} on {on}")
                });
                let word = |at| get_u64(area, at);
                let words = format!("published {}, durable {}", word(64), word(72));
                format!("{at}: area: {words}, {}, {}\n", weak[0], weak[1])
            }
            (note, _) => format!("{at}: {note:?}\n"),
        },
        other => format!("{at}: {other:?}\n"),
    })
}
