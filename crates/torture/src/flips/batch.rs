//! Flips bits of many pages in one file, so that a single check tests all of them.
//!
//! The check reads the whole of a damaged file, and continues after a block with a broken pointer. So if flips in two
//! pages are reported under different addresses, both may be flipped in one file, and both must be reported.
//!
//! 1. `companies` groups the pages by flipping one bit of each, alone and then together. A page that is not reported in
//!    its group, because a block that leads to it is damaged as well, moves to another group.
//! 2. A bit counts as reported in its group if the check reports all addresses that its page has alone; no other page
//!    of the group has any of them. Otherwise the bit is flipped again alone, and that result counts.

use super::image::{HEAD_BYTES, PAGE_BYTES, open_image};
use std::collections::BTreeSet;

type Addresses = BTreeSet<u64>;

/// A group of pages that may be flipped together, each with the addresses that the check reports for the page.
pub(super) type Company = Vec<(usize, Addresses)>;

/// The addresses that the check reports when these bits (byte offsets and masks) are flipped; empty if the file does
/// not open.
fn told(bytes: &[u8], bits: impl IntoIterator<Item = (usize, u8)>) -> Addresses {
    let mut image = Box::<[u8]>::from(bytes);
    for (at, mask) in bits {
        image[at] ^= mask;
    }
    let report = open_image(image).and_then(|db| db.check());
    let findings = report.map_or(Vec::new(), |report| report.findings);
    findings.iter().filter_map(|found| found.address).collect()
}

/// The bit of a page that is flipped while the groups are formed: byte offset in the file, and mask.
fn tried(page: usize) -> (usize, u8) {
    (page * PAGE_BYTES + PAGE_BYTES / 2, 1)
}

/// Forms groups of pages that may be flipped together; pages in no group are flipped alone.
pub(super) fn companies(bytes: &[u8]) -> Vec<Company> {
    let pages = HEAD_BYTES / PAGE_BYTES..bytes.len() / PAGE_BYTES;
    let alone = pages.map(|page| (page, told(bytes, [tried(page)])));
    let mut left: Company = alone.filter(|(_, told)| !told.is_empty()).collect();
    let mut companies = Vec::new();
    while !left.is_empty() {
        let mut taken = Addresses::new();
        let (company, mut others): (Company, Company) = left.into_iter().partition(|(_, told)| {
            let fits = taken.is_disjoint(told);
            if fits {
                taken.extend(told);
            }
            fits
        });
        let told = told(bytes, company.iter().map(|(page, _)| tried(*page)));
        let (company, hidden): (Company, Company) = company
            .into_iter()
            .partition(|(_, own)| own.is_subset(&told));
        others.extend(hidden);
        // A page that fits no group is flipped alone.
        if company.is_empty() {
            break;
        }
        if company.len() > 1 {
            companies.push(company);
        }
        left = others;
    }
    companies
}

/// Flips all of `bits` in one file, one bit in each page of a group; returns for each bit whether the check reports it.
pub(super) fn flip_all(bytes: &[u8], company: &Company, bits: &[(usize, u8)]) -> Vec<bool> {
    let told = told(bytes, bits.iter().copied());
    let own = company.iter().map(|(_, own)| own.is_subset(&told));
    own.collect()
}
