//! The entry of a commit in the redo log: its meta record and its pages, each as the difference from its previous
//! contents.
//!
//! ```text
//! | bytes u32 | txn u64 | record bytes u32 | record | pages u32 | page u64 | base u64 | bytes u32 | difference | ...
//! ```
//!
//! `bytes` counts the bytes that follow it. The meta record is stored as the difference from the meta record of the
//! previous commit. In the two meta records, sequence number, lazy base, confirmations and address are set to 0
//! beforehand. A page is stored as the difference from page `base` as the previous commit left it; if `base` is 0,
//! from a page of zeros. Page numbers ascend.

use super::delta;
use super::delta::Encoder;
use crate::error::Result;
use crate::format::layout::BLOCK_BYTES;
use crate::format::meta::{LazyBase, Meta};
use std::sync::Arc;
use tidalite_base::{Corrupt, get_u32, get_u64};

/// A page that a commit has written, for the entry of the commit in the redo log.
pub(crate) struct PageOf<'a> {
    pub(crate) page: u64,
    /// Number and contents of the page from which this page was copied, if any.
    pub(crate) base: Option<(u64, &'a [u8])>,
    pub(crate) bytes: &'a [u8],
}

/// Encodes a meta record without the fields that depend on when and where it is written.
pub(super) fn image(meta: &Meta) -> Vec<u8> {
    let mut block = vec![0; BLOCK_BYTES];
    let unconfirmed;
    let bare = match meta.confirmations {
        0 => meta,
        _ => {
            unconfirmed = Meta {
                confirmations: 0,
                ..meta.clone()
            };
            &unconfirmed
        }
    };
    bare.encode_with_base(&mut block, 0, 0, &LazyBase::default());
    block
}

/// Appends a part that is preceded by its length; the length is filled in after `put` has appended the part.
fn with_length(out: &mut Vec<u8>, put: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    put(out);
    debug_assert!(
        u32::try_from(out.len() - at).is_ok(),
        "lengths have 32 bits"
    );
    let len = (out.len() - at - 4) as u32;
    out[at..at + 4].copy_from_slice(&len.to_le_bytes());
}

/// Encoder of entries for the redo log. Its buffers are reused from one entry to the next.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    steps: Encoder,
    /// The meta record that was encoded last, and its encoded bytes, kept because the next commit usually builds on
    /// it.
    last: Option<(Arc<Meta>, Vec<u8>)>,
    zeros: Vec<u8>,
}

impl Recorder {
    /// Encodes the log entry of commit `meta`, which builds on commit `before`. Returns `None` as soon as the entry
    /// is known to exceed `bytes_max`.
    pub(super) fn encode<'a>(
        &mut self,
        (meta, before): (&Arc<Meta>, &Arc<Meta>),
        pages: impl ExactSizeIterator<Item = PageOf<'a>>,
        bytes_max: usize,
    ) -> Option<Vec<u8>> {
        assert!(
            meta.txn > before.txn,
            "a commit is newer than the one below it"
        );
        let Self { steps, last, zeros } = self;
        let mut page_before = 0;
        let mut out = Vec::with_capacity(BLOCK_BYTES);
        let known = last.take().filter(|(known, _)| Arc::ptr_eq(known, before));
        let of_before = known.map_or_else(|| image(before), |(_, image)| image);
        let of_meta = image(meta);
        with_length(&mut out, |out| {
            out.extend_from_slice(&meta.txn.to_le_bytes());
            with_length(out, |out| steps.encode(&of_meta, &of_before, out));
            out.extend_from_slice(&(pages.len() as u32).to_le_bytes());
            for PageOf { page, base, bytes } in pages {
                assert!(page > page_before, "pages of a log record ascend");
                page_before = page;
                if out.len() > bytes_max {
                    break;
                }
                out.extend_from_slice(&page.to_le_bytes());
                out.extend_from_slice(&base.map_or(0, |(number, _)| number).to_le_bytes());
                with_length(out, |out| match base {
                    Some((_, base)) => steps.encode(bytes, base, out),
                    None => {
                        zeros.resize(bytes.len(), 0);
                        steps.encode(bytes, zeros, out);
                    }
                });
            }
        });
        *last = Some((Arc::clone(meta), of_meta));
        (out.len() <= bytes_max).then_some(out)
    }
}

/// A changed page in a decoded log entry: its number, the page from which it was copied, and the difference.
#[derive(Debug)]
pub(super) struct Changed<'a> {
    pub(super) page: u64,
    pub(super) base: u64,
    pub(super) steps: &'a [u8],
}

/// A decoded entry of the redo log.
#[derive(Debug)]
pub(super) struct Record<'a> {
    pub(super) meta: Meta,
    pub(super) pages: Vec<Changed<'a>>,
}

/// Reader that takes fields from the front of a byte slice.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let Some((taken, rest)) = self.0.split_at_checked(len) else {
            return Err(damaged(
                &format!("{} bytes more", self.0.len()),
                &format!("{len}"),
            ));
        };
        self.0 = rest;
        Ok(taken)
    }
    fn u32(&mut self) -> Result<u32> {
        Ok(get_u32(self.take(4)?, 0))
    }
    fn u64(&mut self) -> Result<u64> {
        Ok(get_u64(self.take(8)?, 0))
    }
    fn part(&mut self) -> Result<&'a [u8]> {
        let len = self.u32()? as usize;
        self.take(len)
    }
}

pub(super) fn damaged(found: &str, expected: &str) -> crate::Error {
    Corrupt::new("record in the log", 0, found, expected).into()
}

/// Decodes the first log entry in `bytes` and removes it from `bytes`. `before` is the meta record of the previous
/// commit.
pub(super) fn decode<'a>(bytes: &mut &'a [u8], before: &Meta) -> Result<Record<'a>> {
    let mut all = Reader(bytes);
    let mut own = Reader(all.part()?);
    *bytes = all.0;
    let txn = own.u64()?;
    let block = delta::decode(own.part()?, &image(before));
    let block = block.ok_or_else(|| damaged("steps that make no block", "a meta record"))?;
    let meta = Meta::decode(&block, 0, &before.uuid)?;
    if meta.txn != txn || txn <= before.txn {
        let found = format!("{} as {txn} after {}", meta.txn, before.txn);
        return Err(damaged(&found, "transactions that ascend"));
    }
    let (count, mut pages) = (own.u32()?, Vec::new());
    for _ in 0..count {
        pages.push(Changed {
            page: own.u64()?,
            base: own.u64()?,
            steps: own.part()?,
        });
    }
    if !own.0.is_empty() || !pages.is_sorted_by(|a, b| a.page < b.page) {
        return Err(damaged("pages out of order, or bytes left", "neither"));
    }
    Ok(Record { meta, pages })
}
