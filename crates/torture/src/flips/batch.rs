//! Bits of many pages, flipped in one file: one check tells of each.
//!
//! A check of a damaged file goes through the whole of it, and goes on behind a block that leads nowhere. So where the flip of a bit in a page is told with
//! addresses, and another page's with others, both may be flipped in one file, and both must be told.
//!
//! 1. Which pages those are is tried with one bit of each, alone and then together (`companies`): who is not told in a company, since what leads
//!    there is in it, goes to another one.
//! 2. A bit counts as reported here when all addresses are told that its page has alone, none of which is told of the others. If not, the bit is flipped
//!    again alone, and that counts.

use super::image::{HEAD_BYTES, PAGE_BYTES, open_image};
use std::collections::BTreeSet;

type Addresses = BTreeSet<u64>;

/// Pages that may be flipped together, each with the addresses under which it is told.
pub(super) type Company = Vec<(usize, Addresses)>;

/// The addresses that a check tells when these bits (bytes and masks) are flipped; none when the file is not opened.
fn told(bytes: &[u8], bits: impl IntoIterator<Item = (usize, u8)>) -> Addresses {
    let mut image = Box::<[u8]>::from(bytes);
    for (at, mask) in bits {
        image[at] ^= mask;
    }
    let report = open_image(image).and_then(|db| db.check());
    let findings = report.map_or(Vec::new(), |report| report.findings);
    findings.iter().filter_map(|found| found.address).collect()
}

/// The bit of a page that is tried.
fn tried(page: usize) -> (usize, u8) {
    (page * PAGE_BYTES + PAGE_BYTES / 2, 1)
}

/// All pages that may be flipped in company, and in which; the others are flipped alone.
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
        // A page with which nobody goes is flipped alone.
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

/// Flips these bits in one file, one of each page of a company, and answers which of them are told.
pub(super) fn flip_all(bytes: &[u8], company: &Company, bits: &[(usize, u8)]) -> Vec<bool> {
    let told = told(bytes, bits.iter().copied());
    let own = company.iter().map(|(_, own)| own.is_subset(&told));
    own.collect()
}
