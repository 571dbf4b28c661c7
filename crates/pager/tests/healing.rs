//! Tests in which a sync fails while damaged blocks are repaired at opening. Unsynced writes of a killed process may
//! be lost with it, so no commit that builds on them may be acknowledged.

use std::sync::Arc;
use tidalite_pager::{
    Durability, Error, LockMemory, OpenMode, Options, PageRead, PageWrite, Pager, Storage,
};
use tidalite_testkit::rng::Rng;
use tidalite_testkit::{Fault, FaultKind, Replay, SimDisk};

const PAGES: u64 = 6;
/// Byte offsets of the blocks that the test damages: all meta blocks, and one superblock.
const BLOCKS: [usize; 5] = [4096, 8192, 16384, 20480, 0];

fn open(disk: &Arc<SimDisk>, memory: &LockMemory) -> Result<Pager, Error> {
    let options = Options {
        mode: OpenMode::CreateOrOpen,
        page_size: 512,
        ..Options::default()
    };
    Pager::open_storage_with(Arc::clone(disk) as Arc<dyn Storage>, memory, &options)
}

fn commit(pager: &Pager, fill: u8, durability: Durability) {
    let mut txn = pager.begin_write().expect("the writer lock");
    let extent = txn.alloc_extent(PAGES).expect("room");
    let bytes = vec![fill; PAGES as usize * 512];
    txn.write_extent(extent.addr, &bytes).expect("written");
    let mut app = extent.addr.to_le_bytes().to_vec();
    app.push(fill);
    txn.commit(&app, durability).expect("committed");
}

/// Returns the contents of the database, or an error text if they are incomplete.
fn content(pager: &Pager) -> Result<u8, String> {
    let snapshot = pager.begin_read().map_err(|error| error.to_string())?;
    let Some((at, fill)) = snapshot.app().split_first_chunk::<8>() else {
        return Ok(0);
    };
    let bytes = snapshot.bytes(u64::from_le_bytes(*at), PAGES as usize * 512);
    let bytes = bytes.map_err(|error| error.to_string())?;
    match bytes.iter().all(|byte| *byte == fill[0]) {
        true => Ok(fill[0]),
        false => Err(format!("content {} is not there", fill[0])),
    }
}

/// Makes a lazy commit, kills its process, damages a block, and makes a sync fail while the block is repaired. Then
/// opens the file again, without a reboot in between, and makes a durable commit, which a power failure must not
/// undo.
fn run(damaged: usize) -> Result<u8, String> {
    let disk = Arc::new(SimDisk::new());
    let memory = LockMemory::new();
    let pager = open(&disk, &memory).expect("created");
    commit(&pager, 1, Durability::Durable);
    commit(&pager, 2, Durability::Durable);
    commit(&pager, 3, Durability::Lazy);
    disk.kill();
    memory.kill_all();
    let area = memory.image();
    drop(pager);
    disk.set_fault(None);
    // The damage is a disk write of its own, so that it reaches the medium like the synced meta record.
    let mut block = disk.image()[damaged..damaged + 4096].to_vec();
    block[40] ^= 1;
    disk.write_at(damaged as u64, &block).expect("written");

    let memory = LockMemory::from_image(&area);
    disk.set_fault(Some(Fault {
        at_call: 1,
        forever: false,
        kind: FaultKind::SyncFails,
    }));
    let failed = open(&disk, &memory);
    assert!(failed.is_err() && disk.fault_hit(), "healing was to fail");
    disk.set_fault(None);

    let pager = open(&disk, &LockMemory::from_image(&memory.image()));
    let pager = pager.map_err(|error| error.to_string())?;
    let found = content(&pager)?;
    let mut txn = pager.begin_write().expect("the writer lock");
    let app = txn.app().to_vec();
    txn.set_user_data(b"on top").expect("few bytes");
    txn.commit(&app, Durability::Durable).expect("committed");
    let replay = Replay::at_end(&disk.recording());
    for seed in 0..40 {
        let image = replay.power_cut(&mut Rng::new(seed));
        let disk = Arc::new(SimDisk::from_image(image));
        let pager = open(&disk, &LockMemory::new()).map_err(|error| error.to_string())?;
        let after = content(&pager)?;
        let on_top = pager.begin_read().map_err(|error| error.to_string())?;
        if after != found || on_top.user_data() != b"on top" {
            return Err(format!("content {after}, acknowledged was {found}"));
        }
    }
    Ok(found)
}

#[test]
fn a_failed_sync_while_healing_voids_lazy_commits() {
    tidalite_testkit::watch();
    for damaged in BLOCKS {
        let found = run(damaged).unwrap_or_else(|problem| panic!("block at {damaged}: {problem}"));
        assert_eq!(found, 2, "what was lazy may not be on the medium");
    }
}
