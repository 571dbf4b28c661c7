//! Tests with files that are damaged on purpose and whose checksums are all corrected. They must not cause a panic or
//! a hang; impossible values must cause typed errors.

use crate::toy::{self, app, apply, changes, id_of, options, problems, read, root_of};
use std::sync::Arc;
use tidalite_base::{TxnId, checksum, get_u64, put_u64};
use tidalite_pager::{
    Durability, Error, Header, Kind, LockMemory, MemoryStorage, Options, Pager, Ptr, Storage,
    seal_block,
};
use tidalite_testkit::rng::Rng;

const BLOCK: usize = 4096;
/// Offsets of fields in meta records and free-space pages, as sections 3 and 4 of docs/format.md state.
const FREE_ROOT_AT: usize = 72;
const ROOT_LIST_AT: usize = 48;
const ROOT_DIRECTORY_AT: usize = 128;
const DIRECTORY_BITMAP_AT: usize = 64;

fn prepared() -> Vec<u8> {
    let storage = Arc::new(tidalite_testkit::SimDisk::new());
    let pager = Pager::open_storage(storage.clone(), &options()).unwrap();
    let mut rng = Rng::new(11);
    for id in 1..=60 {
        let mut txn = pager.begin_write().unwrap();
        let old = root_of(txn.app());
        let root = apply(&mut txn, &old, &changes(&mut rng, id)).unwrap();
        txn.commit(&app(&root, id), Durability::Durable).unwrap();
    }
    // A commit that changes most slots makes the meta record rewrite the free-space structure.
    let mut txn = pager.begin_write().unwrap();
    let old = root_of(txn.app());
    let many: Vec<_> = (0..toy::SLOTS).map(|slot| (slot, 61)).collect();
    let root = apply(&mut txn, &old, &many).unwrap();
    let info = txn.commit(&app(&root, 61), Durability::Durable).unwrap();
    assert!(info.space_pages_written > 0);
    storage.image()
}

/// Corrects the checksum of the block at `at`.
fn reseal(image: &mut [u8], at: usize, len: usize) -> Ptr {
    let header = Header::decode(&image[at..]);
    seal_block(&mut image[at..at + len], &header)
}

fn spoil(rng: &mut Rng, bytes: &mut [u8], from: usize) {
    for _ in 0..1 + rng.below(3) {
        let at = from + rng.index(bytes.len() - from - 8);
        match rng.below(4) {
            0 => bytes[at] ^= 1 << rng.below(8),
            1 => put_u64(bytes, at, rng.u64() >> rng.below(64)),
            2 => put_u64(
                bytes,
                at & !7,
                get_u64(bytes, at & !7)
                    .wrapping_add(rng.below(9))
                    .wrapping_sub(4),
            ),
            _ => put_u64(
                bytes,
                at & !7,
                *rng.pick(&[0, 1, u64::MAX, 1 << 62, 1 << 40]),
            ),
        }
    }
}

/// Damages one field of the newest meta record or of the free-space structure, and corrects the checksums.
fn damage(rng: &mut Rng, image: &mut [u8]) {
    let birth = |image: &[u8], block: usize| Header::decode(&image[block * BLOCK..]).birth;
    let pair = if birth(image, 1) > birth(image, 2) {
        1
    } else {
        2
    };
    let mut meta = image[pair * BLOCK..(pair + 1) * BLOCK].to_vec();
    let root = Ptr::decode(&meta, FREE_ROOT_AT);
    let page = toy::PAGE;
    // The path from the root of the free-space structure down: each pointer with its position.
    let mut way = vec![(root, 0, FREE_ROOT_AT)];
    let depth = rng.below(4);
    if depth > 0 && !root.is_null() {
        let mut at = if rng.one_in(3) {
            ROOT_LIST_AT
        } else {
            ROOT_DIRECTORY_AT
        };
        for _ in 1..depth {
            let (parent, ..) = way[way.len() - 1];
            let parent_at = parent.addr as usize;
            let child = Ptr::decode(&image[parent_at..parent_at + page], at);
            if child.is_null() || at == 32 {
                break;
            }
            way.push((child, parent_at, at));
            at = if child.kind == Kind::FreeDirectory {
                DIRECTORY_BITMAP_AT
            } else {
                32
            };
        }
        let (last, ..) = way[way.len() - 1];
        let last_at = last.addr as usize;
        spoil(rng, &mut image[last_at..last_at + page], 32);
        for i in (0..way.len()).rev() {
            let (ptr, parent_at, at) = way[i];
            let sealed = reseal(image, ptr.addr as usize, page);
            let target = if i == 0 {
                &mut meta[..]
            } else {
                &mut image[parent_at..parent_at + page]
            };
            sealed.encode(target, at);
        }
    } else {
        // The UUID is left as it is, since otherwise this would be the meta record of another file.
        let from = *rng.pick(&[48, 64, 72, 104, 2048]);
        let to = (from + 64).min(BLOCK);
        spoil(rng, &mut meta[..to], from);
        if rng.one_in(4) {
            let birth = TxnId(*rng.pick(&[0, 1, u64::MAX, u64::MAX - 1, 1 << 61]));
            let header = Header {
                birth,
                ..Header::decode(&meta)
            };
            header.encode(&mut meta);
        }
    }
    for block in [pair, pair + 3] {
        let header = Header {
            address: (block * BLOCK) as u64,
            ..Header::decode(&meta)
        };
        let _ = seal_block(&mut meta, &header);
        image[block * BLOCK..(block + 1) * BLOCK].copy_from_slice(&meta);
    }
}

/// Runs all operations on a damaged file. They may only succeed or return typed errors.
fn use_it(image: Vec<u8>, rng: &mut Rng) -> Result<(), Error> {
    let options = Options {
        page_size: toy::PAGE,
        ..options()
    };
    let pager = Pager::open_storage(Arc::new(MemoryStorage::from_image(image)), &options)?;
    problems(&pager)?;
    let reader = pager.begin_read().unwrap();
    if reader.app().len() == 40 {
        drop(read(&reader, &root_of(reader.app()), &mut |_, _| {}));
    }
    for id in 100..106 {
        let mut txn = pager.begin_write()?;
        let old = if txn.app().len() == 40 {
            root_of(txn.app())
        } else {
            Ptr::NULL
        };
        let root = apply(&mut txn, &old, &changes(rng, id))?;
        txn.commit(&app(&root, id), Durability::Durable)?;
    }
    problems(&pager)?;
    Ok(())
}

#[test]
fn a_hostile_file_never_brings_a_panic() {
    let image = prepared();
    let (mut refused, mut used) = (0, 0);
    for seed in 0..3000 {
        let mut rng = Rng::new(seed);
        let mut image = image.clone();
        damage(&mut rng, &mut image);
        let done =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| use_it(image, &mut rng)));
        match done {
            Ok(Ok(())) => used += 1,
            Ok(Err(_)) => refused += 1,
            Err(_) => panic!("seed {seed}"),
        }
    }
    println!("{refused} refused, {used} usable");
    assert!(refused > 300 && used > 300, "{refused} {used}");
}

/// A process that may write the lock file can forge any meta record with valid checksums. Opening must at worst
/// return a typed error, and the durable commit must stay.
#[test]
fn a_hostile_unsynced_meta_does_no_harm_to_the_durable_commit() {
    const UNSYNCED_META_AT: usize = 4096;
    const UNSYNCED_META_BYTES: usize = 4096;
    let storage = Arc::new(MemoryStorage::new());
    let memory = LockMemory::new();
    let open = |storage: &Arc<MemoryStorage>, memory: &LockMemory| {
        let storage = Arc::clone(storage) as Arc<dyn Storage>;
        Pager::open_storage_with(storage, memory, &options())
    };
    let pager = open(&storage, &memory).unwrap();
    for (id, durability) in [(1, Durability::Durable), (2, Durability::Lazy)] {
        let mut txn = pager.begin_write().unwrap();
        let changes: Vec<_> = (0..30).map(|slot| (slot * 4, id)).collect();
        let root = root_of(txn.app());
        let root = apply(&mut txn, &root, &changes).unwrap();
        txn.commit(&app(&root, id), durability).unwrap();
    }
    let mut image = vec![0; storage.len().unwrap() as usize];
    storage.read_at(0, &mut image).unwrap();
    let area = memory.image();
    drop(pager);
    let mut rng = Rng::new(24);
    let (mut dropped, mut believed) = (0, 0);
    for round in 0..4000 {
        let mut area = area.clone();
        let record = &mut area[UNSYNCED_META_AT..UNSYNCED_META_AT + UNSYNCED_META_BYTES];
        for _ in 0..=rng.below(2) {
            // Changes pointers and counts, the app area, or the lists of free space, but not the fields that name the
            // base record.
            let at = *rng.pick(&[56, 384, 1920, 2048]) + 8 * rng.index(20);
            let value = match rng.below(4) {
                0 => rng.u64(),
                1 => rng.below(1 << 20),
                2 => 1 << rng.below(64),
                _ => u64::from_le_bytes(record[at..at + 8].try_into().unwrap()) + 512,
            };
            put_u64(record, at, value);
        }
        let sum = checksum(&record[8..]);
        put_u64(record, 0, sum);
        let storage = Arc::new(MemoryStorage::from_image(image.clone()));
        let pager = open(&storage, &LockMemory::from_image(&area)).unwrap();
        if pager.recovery().dropped_unrecorded.is_some() {
            dropped += 1;
        } else {
            believed += 1;
            continue;
        }
        let reader = pager.begin_read().unwrap();
        assert_eq!(id_of(reader.app()), 1, "round {round}");
        read(&reader, &root_of(reader.app()), &mut |_, _| {}).unwrap();
    }
    println!(
        "{dropped} were dropped, {believed} not: what was changed did not matter, or is no record"
    );
    assert!(dropped > 500);
}
