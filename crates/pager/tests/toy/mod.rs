//! A simple data structure for crash tests. It has a root page, branch pages, and leaves that are pages or extents.
//! The content of a leaf is computed from its slot and version, so any other content reveals a bug.

#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![allow(unreachable_pub, reason = "shared by several test programs")]
#![allow(dead_code, reason = "each test uses its part of it")]

use std::sync::Arc;
use tidalite_base::Corrupt;
use tidalite_pager::{
    Check, DiskError, Error, Extent, Header, Kind, LockMemory, Options, PageRead, PageWrite, Pager,
    Ptr, Result, Storage, Unrecorded, Verifier, seal_block,
};
use tidalite_testkit::rng::Rng;

pub const PAGE: usize = 512;
const FAN: usize = 12;
pub const SLOTS: usize = FAN * FAN;
const ENTRIES_AT: usize = 64;

/// The version of each slot. Version 0 means an empty slot.
pub type Content = Vec<u64>;

pub fn options() -> Options {
    Options {
        page_size: PAGE,
        growth_bytes_min: 16 << 10,
        growth_bytes_max: 32 << 10,
        // This number is so small that files are truncated and holes are punched all the time.
        shrink_bytes: 8 << 10,
        reserve_bytes: 8 << 10,
        dirty_bytes_max: 64 * PAGE,
        // This number is so small that a few commits fill the redo log.
        log_bytes: 24 << 10,
        roots: Some(|app| vec![root_of(app)]),
        verifier: Some(Verifier::new(verify)),
        ..Options::default()
    }
}

fn is_extent(slot: usize) -> bool {
    slot % FAN >= 9
}

fn fill(bytes: &mut [u8], slot: usize, version: u64) {
    let mut rng = Rng::new(version << 10 | slot as u64);
    rng.fill(bytes);
    bytes[..8].copy_from_slice(&version.to_le_bytes());
}

fn entry(bytes: &[u8], i: usize) -> Ptr {
    Ptr::decode(bytes, ENTRIES_AT + i * 32)
}

/// Returns the app area of a commit: the pointer to the root and the number of the commit.
pub fn app(root: &Ptr, id: u64) -> Vec<u8> {
    let mut bytes = vec![0; 40];
    root.encode(&mut bytes, 0);
    bytes[32..].copy_from_slice(&id.to_le_bytes());
    bytes
}

pub fn id_of(app: &[u8]) -> u64 {
    app.get(32..40)
        .map_or(0, |bytes| u64::from_le_bytes(bytes.try_into().unwrap()))
}

pub fn root_of(app: &[u8]) -> Ptr {
    if app.len() == 40 {
        Ptr::decode(app, 0)
    } else {
        Ptr::NULL
    }
}

/// Applies changes, given as (slot, version), and seals the changed pages. Returns the pointer to the new root.
pub fn apply<W: PageWrite>(w: &mut W, root: &Ptr, changes: &[(usize, u64)]) -> Result<Ptr> {
    let mut root = if root.is_null() {
        w.new_page(Kind::KvBranch, 1)?
    } else {
        w.shadow(root)?
    };
    let mut touched = Vec::new();
    for &(slot, version) in changes {
        let branch = entry(&w.page(&root)?, slot / FAN);
        let branch = if branch.is_null() {
            w.new_page(Kind::KvBranch, 2)?
        } else {
            w.shadow(&branch)?
        };
        branch.encode(w.page_mut(&root)?, ENTRIES_AT + slot / FAN * 32);
        touched.push(slot / FAN);
        let leaf = entry(&w.page(&branch)?, slot % FAN);
        let leaf = if is_extent(slot) {
            set_extent(w, &leaf, slot, version)?
        } else {
            set_page(w, &leaf, slot, version)?
        };
        leaf.encode(w.page_mut(&branch)?, ENTRIES_AT + slot % FAN * 32);
    }
    touched.sort_unstable();
    touched.dedup();
    for i in touched {
        let branch = entry(&w.page(&root)?, i);
        let branch = w.seal_page(&branch)?;
        branch.encode(w.page_mut(&root)?, ENTRIES_AT + i * 32);
    }
    root = w.seal_page(&root)?;
    Ok(root)
}

fn set_page<W: PageWrite>(w: &mut W, old: &Ptr, slot: usize, version: u64) -> Result<Ptr> {
    if version == 0 {
        if !old.is_null() {
            w.free_page(old);
        }
        return Ok(Ptr::NULL);
    }
    if old.is_null() && version.is_multiple_of(2) {
        let mut bytes = [0; PAGE];
        fill(&mut bytes[32..], slot, version);
        return w.add_page(Kind::KvLeaf, slot as u64, &bytes);
    }
    let leaf = if old.is_null() {
        w.new_page(Kind::KvLeaf, slot as u64)?
    } else {
        w.shadow(old)?
    };
    fill(&mut w.page_mut(&leaf)?[32..], slot, version);
    w.seal_page(&leaf)
}

fn set_extent<W: PageWrite>(w: &mut W, old: &Ptr, slot: usize, version: u64) -> Result<Ptr> {
    if !old.is_null() {
        w.free_extent(&Extent {
            addr: old.addr,
            pages: u64::from(old.len).div_ceil(PAGE as u64),
            birth: old.birth,
        });
    }
    if version == 0 {
        return Ok(Ptr::NULL);
    }
    let len = 100 + (version * 131 % 1500) as usize;
    let extent = w.alloc_extent(8)?;
    let extent = w.trim_extent(&extent, (len as u64).div_ceil(PAGE as u64));
    let mut bytes = vec![0; len];
    fill(&mut bytes[32..], slot, version);
    let header = Header {
        kind: Kind::RunBlock,
        flags: 0,
        owner: slot as u64,
        address: extent.addr,
        birth: w.txn(),
    };
    let ptr = seal_block(&mut bytes, &header);
    w.write_extent(extent.addr, &bytes)?;
    Ok(ptr)
}

/// Reads all slots and compares each byte. Calls `claim` with every range in use, as (address, bytes). Returns the
/// version of each slot.
pub fn read<R: PageRead>(r: &R, root: &Ptr, claim: &mut dyn FnMut(u64, u64)) -> Result<Content> {
    let mut content = vec![0; SLOTS];
    if root.is_null() {
        return Ok(content);
    }
    let root_page = r.page(root)?.to_vec();
    claim(root.addr, PAGE as u64);
    for i in 0..FAN {
        let branch = entry(&root_page, i);
        if branch.is_null() {
            continue;
        }
        let branch_page = r.page(&branch)?.to_vec();
        claim(branch.addr, PAGE as u64);
        for j in 0..FAN {
            let leaf = entry(&branch_page, j);
            let slot = i * FAN + j;
            if leaf.is_null() {
                continue;
            }
            let bytes = if is_extent(slot) {
                claim(leaf.addr, u64::from(leaf.len));
                r.block(&leaf)?
            } else {
                claim(leaf.addr, PAGE as u64);
                r.page(&leaf)?
            };
            let version = u64::from_le_bytes(bytes[32..40].try_into().unwrap());
            let mut expected = vec![0; bytes.len() - 32];
            fill(&mut expected, slot, version);
            if bytes[32..] != expected {
                let what = format!("content of slot {slot}");
                let expected = format!("that of version {version}");
                return Err(Corrupt::new(what, leaf.addr, "another", expected).into());
            }
            content[slot] = version;
        }
    }
    Ok(content)
}

/// Reads all pages that are newer than the durable meta record.
fn verify(state: &Unrecorded<'_>) -> Result<()> {
    let young = |ptr: &Ptr| ptr.birth > state.since();
    let root = root_of(state.app());
    if !young(&root) {
        return Ok(());
    }
    let root_page = state.page(&root)?;
    for i in (0..FAN).filter(|i| young(&entry(&root_page, *i))) {
        let branch_page = state.page(&entry(&root_page, i))?;
        for j in 0..FAN {
            let leaf = entry(&branch_page, j);
            if !young(&leaf) {
                continue;
            }
            if is_extent(j) {
                state.block(&leaf)?;
            } else {
                state.page(&leaf)?;
            }
        }
    }
    Ok(())
}

/// Returns the slots, with their versions, that have data at or beyond this address. Storing the slots again moves
/// the data.
pub fn beyond<R: PageRead>(r: &R, root: &Ptr, boundary: u64) -> Result<Vec<(usize, u64)>> {
    let mut found = Vec::new();
    if root.is_null() {
        return Ok(found);
    }
    let root_page = r.page(root)?.to_vec();
    for i in 0..FAN {
        let branch = entry(&root_page, i);
        if branch.is_null() {
            continue;
        }
        let branch_page = r.page(&branch)?.to_vec();
        for slot in i * FAN..(i + 1) * FAN {
            let leaf = entry(&branch_page, slot % FAN);
            if leaf.is_null() || branch.addr.max(leaf.addr) < boundary {
                continue;
            }
            let bytes = if is_extent(slot) {
                r.block(&leaf)?
            } else {
                r.page(&leaf)?
            };
            let version = u64::from_le_bytes(bytes[32..40].try_into().unwrap());
            found.push((slot, version));
        }
    }
    Ok(found)
}

/// Returns the problems found by a full check.
pub fn problems(pager: &Pager) -> Result<Vec<String>> {
    let mut check: Check = pager.begin_check()?;
    let root = root_of(check.snapshot().app());
    let mut claims = Vec::new();
    let walked = read(check.snapshot(), &root, &mut |addr, bytes| {
        claims.push((addr, bytes.div_ceil(PAGE as u64)));
    });
    for (addr, pages) in claims {
        check.claim(addr, pages, "toy");
    }
    if let Err(error) = walked {
        check.problem(error);
    }
    Ok(check.finish().problems)
}

/// Returns the problems found by a check through a read-only handle, which writes nothing. A crash must leave no
/// problems.
pub fn problems_read_only(storage: Arc<dyn Storage>, memory: &LockMemory) -> Result<Vec<String>> {
    let options = Options {
        read_only: true,
        ..options()
    };
    let pager = Pager::open_storage_with(storage, memory, &options)?;
    if let Some(lost) = pager.recovery().lost {
        return Ok(vec![lost.to_string()]);
    }
    problems(&pager)
}

/// Returns a random set of changes: usually of few slots, sometimes of most slots.
pub fn changes(rng: &mut Rng, id: u64) -> Vec<(usize, u64)> {
    let count = match rng.below(12) {
        0 => 60 + rng.index(60),
        1..3 => 5 + rng.index(15),
        _ => 1 + rng.index(3),
    };
    let version = |rng: &mut Rng| if rng.one_in(6) { 0 } else { id };
    (0..count)
        .map(|_| (rng.index(SLOTS), version(rng)))
        .collect()
}

/// Turns the problems found by a check into an error text.
pub fn describe(result: Result<Vec<String>>) -> std::result::Result<(), String> {
    match result {
        Ok(problems) if problems.is_empty() => Ok(()),
        Ok(problems) => Err(format!("check: {problems:?}")),
        Err(error) => Err(format!("check: {error}")),
    }
}

/// Returns whether a disk fault may cause this error.
pub fn is_disk_error(error: &Error) -> bool {
    matches!(
        error,
        Error::Disk(DiskError::Io { .. })
            | Error::Disk(DiskError::DiskFull { .. })
            | Error::Poisoned { .. }
    )
}
