//! Buffers for *places*, the ranges of a file that are changed directly in mapped memory. A simulated disk has no
//! mapped memory, so it writes a place when a change of the place begins and when that change ends, like any other
//! write (`Storage::changed_in_place`). A power cut may then leave the old version, the new version, or a part of both.

use std::collections::HashMap;
use tidalite_disk::storage::Places;

/// One in `REFUSED` requests for a place is refused, so that tests cover the path without mapped memory as well.
const REFUSED: u64 = 4;

/// Buffers that stand for mapped memory of a file.
#[derive(Debug, Default)]
pub(crate) struct Buffers(HashMap<u64, Box<[u8]>>);

impl Places for Buffers {
    fn may(&mut self, at: u64, len: usize) -> bool {
        if (at / len as u64).is_multiple_of(REFUSED) {
            return false;
        }
        // The caller overwrites the whole buffer, so the buffer is filled with arbitrary bytes.
        self.0.insert(at, vec![0xa5; len].into());
        true
    }

    fn bytes(&self, at: u64, len: usize) -> &[u8] {
        let buffer = &self.0[&at];
        assert_eq!(buffer.len(), len, "a place is asked for as a whole");
        buffer
    }

    fn bytes_mut(&mut self, at: u64, len: usize) -> &mut [u8] {
        match self.0.get_mut(&at) {
            Some(buffer) if buffer.len() == len => buffer,
            _ => panic!("a place at {at} that nobody has asked for"),
        }
    }
}
