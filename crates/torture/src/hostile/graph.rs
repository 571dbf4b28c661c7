//! The references between the blocks of a valid file. They are used to restore correct checksums after a byte was
//! changed.
//!
//! Nothing here decodes a structure. A pointer (32 bytes, docs/format.md section 2) is recognised anywhere, because the
//! block at its address has its checksum, length and kind. The same test finds the entries of a run directory, which
//! store short numbers, and the short form of pointers between table pages. Three checksums are not in pointers and are
//! read at their positions in the format: the next chunk of a large value, the payloads of a series leaf, and the meta
//! record on which the blocks of a log are based.
//!
//! 1. Each block is in the list once; `places` are all positions of its checksum in other blocks of the list.
//! 2. The list is in sealing order: a block comes after all blocks that it points to.

use super::files::Files;
use std::collections::HashMap;
use tidalite_base::limits::SECOND_FILE_AT;
use tidalite_base::{TxnId, checksum, get_u16, get_u32, get_u64, put_u64};
use tidalite_pager::{HEADER_BYTES, Header, Kind, PTR_BYTES, Ptr, verify_block};

/// Size in bytes of a block in the head of a file, and (below) the number of these blocks.
const HEAD_BLOCK_BYTES: usize = 4096;
const HEAD_BLOCKS: usize = 6;
/// Offset of the second copy of the head in the second file.
const SECOND_HEAD_COPY_AT: usize = 12_288;
/// Maximum length in bytes of a chunk of a large value, and distance between the beginnings of two chunks.
const CHUNK_BYTES: usize = 64 << 10;
/// Offsets of the page size in the superblock, of the log's location (page and number of pages) in a meta record, and
/// of the checksum of that meta record in a log block, as in docs/format.md section 3.
const PAGE_SIZE_AT: usize = 52;
const LOG_AT: usize = 1952;
const STANDS_ON_AT: usize = 40;
/// Offsets of a page's birth and checksum in a child entry of a branch or in the root of a nested table, and the length
/// that these two forms share, as in docs/format.md section 5.
const CHILD_BIRTH_AT: usize = 6;
const CHILD_CHECKSUM_AT: usize = 12;
const CHILD_BYTES: usize = 26;
/// Offset in a chunk of the checksum of the next chunk.
const NEXT_CHUNK_AT: usize = HEADER_BYTES;

/// Offsets in a leaf directory of the number of vectors, of the number of columns, and of the sections.
const VECTORS_AT: usize = HEADER_BYTES + 4;
const SECTIONS_AT: usize = 64;
const SECTION_BYTES: usize = 8;

/// A range of bytes that one checksum covers.
#[derive(Clone, Debug)]
pub struct Block {
    /// Offset of the block's first byte in the file.
    pub at: usize,
    /// Length of the block in bytes.
    pub len: usize,
    /// Kind of the block; `None` for a payload, which has no header.
    pub kind: Kind,
    /// Positions of this block's checksum in other blocks: index of the other block, offset in it.
    places: Vec<(usize, usize)>,
}

impl Block {
    fn has_header(&self) -> bool {
        self.kind != Kind::None
    }

    /// Number of bytes at the beginning that a mutation must not change, because they hold the block's own checksum.
    #[must_use]
    pub fn guarded(&self) -> usize {
        if self.has_header() { 8 } else { 0 }
    }
}

/// All blocks reachable from the meta records of a file.
#[derive(Clone, Debug)]
pub struct Graph {
    /// The blocks in sealing order: each block comes after all blocks to which it refers.
    pub blocks: Vec<Block>,
    second_at: Option<usize>,
}

struct Search<'a> {
    files: &'a Files,
    /// The bytes of the files.
    file: &'a [u8],
    known: HashMap<(usize, usize), usize>,
    blocks: Vec<Block>,
    /// The blocks whose references are all found, referenced blocks first.
    order: Vec<usize>,
}

impl Search<'_> {
    /// Adds a block and all blocks to which it refers; returns the number of the block.
    fn add(&mut self, at: usize, len: usize, kind: Kind) -> usize {
        if let Some(&number) = self.known.get(&(at, len)) {
            return number;
        }
        let number = self.blocks.len();
        self.known.insert((at, len), number);
        self.blocks.push(Block {
            at,
            len,
            kind,
            places: Vec::new(),
        });
        if kind != Kind::None {
            self.pointers(number);
        }
        if matches!(kind, Kind::KvLeaf | Kind::KvBranch) {
            self.children(number);
        }
        if kind == Kind::KvLeaf {
            self.entries(number);
        }
        if kind == Kind::KvValue {
            self.next_chunk(number);
        }
        if matches!(kind, Kind::SeriesLeaf | Kind::SeriesCold) {
            self.payloads(number);
        }
        self.order.push(number);
        number
    }

    fn link(&mut self, from: usize, offset: usize, to: usize) {
        self.blocks[to].places.push((from, offset));
    }

    fn pointers(&mut self, number: usize) {
        let Block { at, len, .. } = self.blocks[number];
        for offset in HEADER_BYTES..(len + 1).saturating_sub(PTR_BYTES) {
            let Some(ptr) = self.pointer(at + offset) else {
                continue;
            };
            let Some(place) = self.files.place(ptr.addr) else {
                continue;
            };
            let target = self.add(place, ptr.len as usize, ptr.kind);
            self.link(number, offset + 16, target);
        }
    }

    fn pointer(&self, at: usize) -> Option<Ptr> {
        if self.file[at + 12] == 0 || self.file[at + 13..at + 16] != [0; 3] {
            return None;
        }
        let ptr = Ptr::decode(self.file, at);
        let from = self.files.place(ptr.addr)?;
        let bytes = self.file.get(from..from.checked_add(ptr.len as usize)?)?;
        (ptr.addr != 0 && verify_block(bytes, &ptr).is_ok()).then_some(ptr)
    }

    /// Adds the table pages to which a table page refers: the children of a branch, and the roots of tables nested in a
    /// leaf.
    fn children(&mut self, number: usize) {
        let Block { at, len, .. } = self.blocks[number];
        for offset in HEADER_BYTES..(len + 1).saturating_sub(CHILD_BYTES) {
            if let Some(ptr) = self.child(at + offset) {
                let target = self.add(ptr.addr as usize, ptr.len as usize, ptr.kind);
                self.link(number, offset + CHILD_CHECKSUM_AT, target);
            }
        }
    }

    fn child(&self, at: usize) -> Option<Ptr> {
        let u48 = |at| get_u64(self.file, at) & 0xffff_ffff_ffff;
        let page_size = get_u32(self.file, PAGE_SIZE_AT);
        let addr = u48(at).checked_mul(u64::from(page_size))?;
        let checksum = get_u64(self.file, at + CHILD_CHECKSUM_AT);
        let from = usize::try_from(addr).ok()?;
        let page = self.file.get(from..from.checked_add(page_size as usize)?)?;
        if addr == 0 || get_u64(page, 0) != checksum {
            return None;
        }
        let ptr = Ptr {
            addr,
            len: page_size,
            kind: Header::decode(page).kind,
            checksum,
            birth: TxnId(u48(at + CHILD_BIRTH_AT)),
        };
        let of_table = matches!(ptr.kind, Kind::KvLeaf | Kind::KvBranch);
        (of_table && verify_block(page, &ptr).is_ok()).then_some(ptr)
    }

    /// Adds the blocks to which the entries in a leaf of a run's directory refer (docs/format.md section 7).
    fn entries(&mut self, number: usize) {
        let Block { at, len, .. } = self.blocks[number];
        for offset in HEADER_BYTES..len {
            if let Some((ptr, checksum_at)) = self.entry(at + offset) {
                let target = self.add(ptr.addr as usize, ptr.len as usize, ptr.kind);
                self.link(number, offset + checksum_at, target);
            }
        }
    }

    /// The block to which the directory entry at this offset refers, and the offset of the block's checksum in the
    /// entry. A checksum stored in fewer than eight bytes is not accepted, because it cannot be replaced by any other
    /// checksum.
    fn entry(&self, at: usize) -> Option<(Ptr, usize)> {
        let lengths = get_u32(self.file.get(at..at + 4)?, 0);
        let mut behind = 4;
        let mut number = |which: usize| {
            let len = (lengths >> (4 * which) & 15) as usize;
            let mut word = [0; 8];
            let bytes = self.file.get(at + behind..at + behind + len)?;
            word.get_mut(..len)?.copy_from_slice(bytes);
            behind += len;
            Some((u64::from_le_bytes(word), behind - len, len))
        };
        let (addr, len) = (number(0)?.0, number(1)?.0);
        let (checksum, checksum_at, checksum_bytes) = number(2)?;
        let ptr = Ptr {
            addr,
            len: u32::try_from(len).ok()?,
            kind: Kind::RunBlock,
            checksum,
            birth: TxnId(number(3)?.0),
        };
        let from = usize::try_from(addr).ok()?;
        let block = self.file.get(from..from.checked_add(ptr.len as usize)?)?;
        let found = lengths >> 28 == 0
            && checksum_bytes == 8
            && block.len() > HEADER_BYTES
            && get_u64(block, 0) == checksum
            && verify_block(block, &ptr).is_ok();
        found.then_some((ptr, checksum_at))
    }

    fn next_chunk(&mut self, number: usize) {
        let at = self.blocks[number].at;
        let sum = get_u64(self.file, at + NEXT_CHUNK_AT);
        let from = at + CHUNK_BYTES;
        if sum == 0 || from + HEADER_BYTES > self.file.len() {
            return;
        }
        // A chunk is as long as possible, but the last one ends with its extent: at whole pages, of at least 512 bytes.
        let longest = CHUNK_BYTES.min(self.file.len() - from);
        let fits = |len: &usize| checksum(&self.file[from + 8..from + len]) == sum;
        let Some(len) = (1..=longest / 512).map(|n| n * 512).rev().find(fits) else {
            return;
        };
        let next = self.add(from, len, Kind::KvValue);
        self.link(number, NEXT_CHUNK_AT, next);
    }

    /// Adds the blocks of the redo logs that meta records name. These blocks contain the checksum of the first copy of
    /// the meta record.
    fn logs(&mut self) {
        let page_size = get_u32(self.file, PAGE_SIZE_AT) as usize;
        for pair in [1, 2] {
            let meta = pair * HEAD_BLOCK_BYTES;
            let [from, len] =
                [0, 8].map(|field| get_u64(self.file, meta + LOG_AT + field) as usize * page_size);
            let (sum, Some(record)) = (
                get_u64(self.file, meta),
                self.known.get(&(meta, HEAD_BLOCK_BYTES)).copied(),
            ) else {
                continue;
            };
            for at in (from..from + len).step_by(HEAD_BLOCK_BYTES) {
                let Some(bytes) = self.file.get(at..at + HEAD_BLOCK_BYTES) else {
                    break;
                };
                let is_sound = checksum(&bytes[8..]) == get_u64(bytes, 0);
                if is_sound && get_u64(bytes, STANDS_ON_AT) == sum {
                    let block = self.add(at, HEAD_BLOCK_BYTES, Kind::Redo);
                    self.link(block, STANDS_ON_AT, record);
                }
            }
        }
    }

    /// Adds the payloads of a leaf directory (docs/format.md section 8). Each section begins with the lengths of its
    /// entries and payloads; an entry ends with the checksum of its payload, unless the payload is empty.
    fn payloads(&mut self, number: usize) {
        let Block { at, len, .. } = self.blocks[number];
        let file = self.file;
        let vectors = usize::from(file[at + VECTORS_AT]);
        let sections = 1 + usize::from(file[at + VECTORS_AT + 1]);
        let mut section = SECTIONS_AT + sections * SECTION_BYTES;
        let mut payload = at + len;
        for s in 0..sections {
            let field = at + SECTIONS_AT + s * SECTION_BYTES;
            let (mode, bytes) = (file[field], usize::from(get_u16(file, field + 2)));
            let payloads_end = payload + get_u32(file, field + 4) as usize;
            let mut table = section;
            section += bytes;
            if mode == 1 {
                continue;
            }
            if mode == 2 {
                let model = get_u32(file, at + table + 8) as usize;
                self.payload(number, table, (payload, model));
                payload += model;
                table += 12;
            }
            let mut entry = table + 3 * vectors;
            for place in (table..).step_by(3).take(vectors) {
                let bytes = usize::from(get_u16(file, at + place + 1));
                entry += usize::from(file[at + place]);
                self.payload(number, entry - 8, (payload, bytes));
                payload += bytes;
            }
            assert!(
                entry == section && payload == payloads_end,
                "a section of a sound leaf is full"
            );
        }
    }

    /// Adds a payload whose checksum is at `offset` in the block with this number.
    fn payload(&mut self, number: usize, offset: usize, (from, bytes): (usize, usize)) {
        if bytes == 0 {
            return;
        }
        let sum = get_u64(self.file, self.blocks[number].at + offset);
        let sound = checksum(&self.file[from..from + bytes]) == sum;
        assert!(sound, "a payload of a sound leaf has its checksum");
        let payload = self.add(from, bytes, Kind::None);
        self.link(number, offset, payload);
    }
}

impl Graph {
    /// Finds the blocks and references of a valid file, or of the two files of one database.
    #[must_use]
    pub fn of(files: &Files) -> Self {
        let file = &files.bytes[..];
        let mut search = Search {
            files,
            file,
            known: HashMap::new(),
            blocks: Vec::new(),
            order: Vec::new(),
        };
        for block in 0..HEAD_BLOCKS {
            let at = block * HEAD_BLOCK_BYTES;
            search.add(
                at,
                HEAD_BLOCK_BYTES,
                Header::decode(&file[at..at + HEADER_BYTES]).kind,
            );
        }
        // Adds the two copies of the second file's head, to which no block refers.
        for at in files
            .second_at
            .into_iter()
            .flat_map(|at| [at, at + SECOND_HEAD_COPY_AT])
        {
            let kind = Header::decode(&file[at..at + HEADER_BYTES]).kind;
            search.add(at, HEAD_BLOCK_BYTES, kind);
        }
        search.logs();
        let Search { blocks, order, .. } = search;
        let mut position = vec![0; blocks.len()];
        for (new, &old) in order.iter().enumerate() {
            position[old] = new;
        }
        let moved = |&old: &usize| {
            let mut block = blocks[old].clone();
            for place in &mut block.places {
                place.0 = position[place.0];
            }
            block
        };
        Self {
            blocks: order.iter().map(moved).collect(),
            second_at: files.second_at,
        }
    }

    /// Updates the checksums of the changed blocks, and of all blocks that refer to them directly or indirectly.
    pub fn seal(&self, file: &mut [u8], changed: &[usize]) {
        let mut open = vec![false; self.blocks.len()];
        for &block in changed {
            open[block] = true;
        }
        for number in 0..self.blocks.len() {
            if !open[number] {
                continue;
            }
            let block = &self.blocks[number];
            let bytes = &file[block.at + block.guarded()..block.at + block.len];
            let sum = checksum(bytes);
            if block.has_header() {
                put_u64(file, block.at, sum);
            }
            for &(parent, offset) in &block.places {
                put_u64(file, self.blocks[parent].at + offset, sum);
                open[parent] = true;
            }
        }
    }

    /// A pointer to the block with this number, in its current state in `file`; `None` for a payload.
    #[must_use]
    pub fn pointer_to(&self, file: &[u8], number: usize) -> Option<Ptr> {
        let block = &self.blocks[number];
        let header = Header::decode(file.get(block.at..block.at + HEADER_BYTES)?);
        block.has_header().then(|| Ptr {
            addr: match self
                .second_at
                .and_then(|second| block.at.checked_sub(second))
            {
                Some(behind) => SECOND_FILE_AT + behind as u64,
                None => block.at as u64,
            },
            len: block.len as u32,
            kind: header.kind,
            checksum: get_u64(file, block.at),
            birth: header.birth,
        })
    }

    /// The offsets of all pointers in the block with this number.
    #[must_use]
    pub fn pointers_in(&self, number: usize) -> Vec<usize> {
        let all = self.blocks.iter().filter(|block| block.has_header());
        let places = all.flat_map(|block| block.places.iter());
        let here = places.filter(|place| place.0 == number && place.1 >= HEADER_BYTES + 16);
        here.map(|place| place.1 - 16).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_is_sealed_from_its_end() {
        // Creates a meta block that refers to a page, which refers to another page.
        let mut file = vec![0u8; HEAD_BLOCKS * HEAD_BLOCK_BYTES + 2 * 512];
        let seal = |file: &mut Vec<u8>, at: usize, len: usize, kind| {
            let header = Header {
                kind,
                flags: 0,
                owner: 0,
                address: at as u64,
                birth: tidalite_base::TxnId(3),
            };
            tidalite_pager::seal_block(&mut file[at..at + len], &header)
        };
        let low = HEAD_BLOCKS * HEAD_BLOCK_BYTES;
        let leaf = seal(&mut file, low, 512, Kind::KvLeaf);
        leaf.encode(&mut file, low + 512 + 77);
        let branch = seal(&mut file, low + 512, 512, Kind::KvBranch);
        branch.encode(&mut file, 4096 + 901);
        let _ = seal(&mut file, 4096, 4096, Kind::Meta);
        let graph = Graph::of(&Files::one(file.clone()));
        let leaf = graph.blocks.iter().position(|b| b.at == low).unwrap();
        file[low + 100] ^= 1;
        graph.seal(&mut file, &[leaf]);
        let again = Graph::of(&Files::one(file.clone()));
        assert_eq!(again.blocks.len(), graph.blocks.len(), "all is reached");
        assert_eq!(
            get_u64(&file, 4096),
            checksum(&file[4096 + 8..8192]),
            "up to the meta block"
        );
    }
}
