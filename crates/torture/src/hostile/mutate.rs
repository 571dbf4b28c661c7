//! Converts the input bytes of a fuzzer into changes of a valid file, whose checksums stay correct.
//!
//! The same bytes give the same file; missing bytes count as zeros. So a fuzzer without knowledge of the
//! format and a seeded generator can drive the same changes.

use super::files::Files;
use super::graph::{Block, Graph};
use tidalite_base::{get_u32, get_u64, put_u32, put_u64};
use tidalite_pager::{HEADER_BYTES, Kind};

/// Maximum number of changes that are made to a file.
const CHANGES_MAX: u64 = 3;
/// Number of bytes after a block's header that contain counts and lengths.
const FIELDS_BYTES: usize = 96;
/// Maximum number of bytes that one change affects.
const RANGE_MAX: usize = 64;

/// A valid file, or the two files of one database, with the graph of their blocks.
pub struct Base {
    /// Name of the file, for messages.
    pub name: String,
    /// The bytes of the file or files.
    pub files: Files,
    /// The references between the blocks of the file.
    pub graph: Graph,
    /// The blocks by kind, so that rare kinds are changed as often as others.
    by_kind: Vec<(Kind, Vec<usize>)>,
}

impl Base {
    /// Finds the blocks of a valid file.
    #[must_use]
    pub fn new(name: &str, files: Files) -> Self {
        let graph = Graph::of(&files);
        let mut by_kind: Vec<(Kind, Vec<usize>)> = Vec::new();
        for (number, block) in graph.blocks.iter().enumerate() {
            match by_kind.iter_mut().find(|(kind, _)| *kind == block.kind) {
                Some((_, numbers)) => numbers.push(number),
                None => by_kind.push((block.kind, vec![number])),
            }
        }
        Self {
            name: name.to_owned(),
            files,
            graph,
            by_kind,
        }
    }

    /// The kinds of the file's blocks; `None` stands for payloads, which have no header.
    pub fn kinds(&self) -> impl Iterator<Item = Kind> {
        self.by_kind.iter().map(|(kind, _)| *kind)
    }
}

/// The input bytes that have not been used yet for a choice.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        first
    }

    fn word(&mut self) -> u64 {
        u64::from_le_bytes([(); 8].map(|()| self.byte()))
    }

    fn below(&mut self, bound: u64) -> u64 {
        (u64::from(self.byte()) << 8 | u64::from(self.byte())) % bound.max(1)
    }

    fn index(&mut self, len: usize) -> usize {
        let wide = u64::from(self.byte()) << 16 | self.below(1 << 16);
        (wide % (len as u64).max(1)) as usize
    }
}

/// Changes a valid file as these input bytes determine; returns the changed file and the kind of the first changed
/// block.
#[must_use]
pub fn derive(base: &Base, input: &[u8]) -> (Files, Kind) {
    let mut choices = Choices(input);
    let mut file = base.files.bytes.clone();
    let mut changed = Vec::new();
    for _ in 0..=choices.below(CHANGES_MAX) {
        let (_, numbers) = &base.by_kind[choices.index(base.by_kind.len())];
        let number = numbers[choices.index(numbers.len())];
        change(&mut file, base, number, &mut choices);
        changed.push(number);
    }
    base.graph.seal(&mut file, &changed);
    let second_at = base.files.second_at;
    if let Some(at) = second_at {
        // Sometimes truncates or empties the second file; but not when the input bytes are used up, where all choices
        // are zero.
        match choices.below(24) {
            1 => file.truncate(at),
            2 => file.truncate(at + choices.index(file.len() - at)),
            _ => {}
        }
    }
    let files = Files {
        bytes: file,
        second_at,
    };
    (files, base.graph.blocks[changed[0]].kind)
}

fn change(file: &mut [u8], base: &Base, number: usize, choices: &mut Choices<'_>) {
    let block = &base.graph.blocks[number];
    let offset = offset(block, choices);
    let (at, end) = (block.at + offset, block.at + block.len);
    match choices.below(10) {
        0 => file[at] ^= 1 << (choices.byte() & 7),
        1 => file[at] = choices.byte(),
        2 => file[at] = *pick(&[0, 1, 0x7f, 0x80, 0xfe, 0xff], choices),
        3 => nudge(file, at, end, choices),
        4 => {
            let len = choices.index(RANGE_MAX).min(end - at);
            let value = *pick(&[0, 0xff, 1, 0x80], choices);
            file[at..at + len].fill(value);
        }
        5 => {
            let len = choices.index(RANGE_MAX).min(end - at);
            for byte in &mut file[at..at + len] {
                *byte = choices.byte();
            }
        }
        6 => {
            // Copies bytes from another place in the same block.
            let len = choices.index(RANGE_MAX).min(end - at);
            let from = block.at + choices.index(block.len - len + 1);
            file.copy_within(from..from + len, at);
        }
        7 => swap_body(file, base, number, choices),
        8 => redirect(file, base, number, choices),
        _ => {
            nudge(file, at, end, choices);
            let other = block.at + self::offset(block, choices);
            nudge(file, other, end, choices);
        }
    }
}

fn pick<'a, T>(of: &'a [T], choices: &mut Choices<'_>) -> &'a T {
    &of[choices.below(of.len() as u64) as usize]
}

/// Offset of a change: half of the changes hit the beginning of the block, with its counts and lengths; the header is
/// rarely hit.
fn offset(block: &Block, choices: &mut Choices<'_>) -> usize {
    let front = HEADER_BYTES.min(block.len - 1);
    let from = if choices.below(16) == 0 {
        block.guarded().min(block.len - 1)
    } else {
        front
    };
    let room = block.len - from;
    if choices.below(2) == 0 {
        from + choices.index(room.min(FIELDS_BYTES))
    } else {
        from + choices.index(room)
    }
}

/// Changes a number of 2, 4 or 8 bytes: by a small step, to a boundary value, or at random.
fn nudge(file: &mut [u8], at: usize, end: usize, choices: &mut Choices<'_>) {
    let by = *pick(&[1u64, 2, 8, 16, 64, 1024, 4096, 1 << 31], choices);
    let borders = [
        0,
        1,
        0x7fff,
        0xffff,
        0x7fff_ffff,
        0xffff_ffff,
        1 << 47,
        i64::MAX as u64,
        1 << 63,
        u64::MAX,
        u64::MAX - 1,
    ];
    let how = choices.below(4);
    let border = *pick(&borders, choices);
    let random = choices.word();
    let new = |old: u64| match how {
        0 => old.wrapping_add(by),
        1 => old.wrapping_sub(by),
        2 => border,
        _ => random,
    };
    // Most fields are aligned to their size, so the changed number usually is as well.
    match choices.below(4) {
        0 if at + 2 <= end => {
            let old = u16::from_le_bytes([file[at], file[at + 1]]);
            file[at..at + 2].copy_from_slice(&(new(u64::from(old)) as u16).to_le_bytes());
        }
        1 if at + 8 <= end => {
            let value = new(get_u64(file, at));
            put_u64(file, at, value);
        }
        2 if at % 8 + 8 <= end - at => {
            let at = at.next_multiple_of(8);
            if at + 8 <= end {
                let value = new(get_u64(file, at));
                put_u64(file, at, value);
            }
        }
        _ if at + 4 <= end => {
            let value = new(u64::from(get_u32(file, at))) as u32;
            put_u32(file, at, value);
        }
        _ => file[at] = random as u8,
    }
}

/// Replaces the bytes after the header by the bytes of another block of the same kind.
fn swap_body(file: &mut [u8], base: &Base, number: usize, choices: &mut Choices<'_>) {
    let kind = base.graph.blocks[number].kind;
    let Some((_, numbers)) = base.by_kind.iter().find(|(of, _)| *of == kind) else {
        return;
    };
    let other = &base.graph.blocks[numbers[choices.index(numbers.len())]];
    let block = &base.graph.blocks[number];
    let skip = if block.guarded() > 0 { HEADER_BYTES } else { 0 };
    let len = block.len.min(other.len);
    if len > skip {
        let body = base.files.bytes[other.at + skip..other.at + len].to_vec();
        file[block.at + skip..block.at + len].copy_from_slice(&body);
    }
}

/// Replaces a pointer in this block by a valid pointer to a wrong block.
fn redirect(file: &mut [u8], base: &Base, number: usize, choices: &mut Choices<'_>) {
    let places = base.graph.pointers_in(number);
    let same = choices.below(2) == 0;
    if places.is_empty() {
        return;
    }
    let place = base.graph.blocks[number].at + places[choices.index(places.len())];
    let kind = Kind::from_u8(file[place + 12]);
    let candidates: Vec<usize> = (0..base.graph.blocks.len())
        .filter(|&other| !same || base.graph.blocks[other].kind == kind)
        .collect();
    if candidates.is_empty() {
        return;
    }
    let target = candidates[choices.index(candidates.len())];
    if let Some(ptr) = base.graph.pointer_to(file, target) {
        ptr.encode(file, place);
    }
}
