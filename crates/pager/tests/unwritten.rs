//! Tests of the pages of commits with `Durability::None`, which are only in memory: with each kind of reader, before
//! each kind of commit, on a full disk, and after the file is closed without a sync.

use crate::toy::{self, Content};
use std::path::PathBuf;
use std::sync::Arc;
use tidalite_pager::{DiskError, Durability, Error, Options, PageRead, Pager, Snapshot};
use tidalite_testkit::rng::Rng;
use tidalite_testkit::{Fault, FaultKind, SimDisk};

/// Place of the database: a simulated disk, or a file, mapped or not.
enum Place {
    Disk(Arc<SimDisk>),
    File(PathBuf),
}

impl Place {
    fn open(&self, options: &Options) -> Pager {
        match self {
            Self::Disk(disk) => Pager::open_storage(disk.clone(), options).unwrap(),
            Self::File(path) => Pager::open(path, options).unwrap(),
        }
    }

    /// Makes the disk full after this many calls.
    fn fill(&self, at_call: u64) {
        if let Self::Disk(disk) = self {
            disk.set_fault(Some(Fault {
                at_call,
                forever: true,
                kind: FaultKind::DiskFull,
            }));
        }
    }

    fn empty(&self) {
        if let Self::Disk(disk) = self {
            disk.set_fault(None);
        }
    }
}

fn content<R: PageRead>(reader: &R, app: &[u8]) -> Result<Content, Error> {
    toy::read(reader, &toy::root_of(app), &mut |_, _| ())
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    Commit(Durability),
    Pin,
    Sync,
}

fn what(rng: &mut Rng) -> What {
    match rng.below(24) {
        0 | 1 => What::Commit(Durability::Durable),
        2 | 3 => What::Commit(Durability::OneFlush),
        4 | 5 => What::Commit(Durability::Lazy),
        6 => What::Pin,
        7 => What::Sync,
        _ => What::Commit(Durability::None),
    }
}

/// Makes one transaction. Its uncommitted changes are read, and sometimes the changes are rolled back and made again.
fn step(
    pager: &Pager,
    rng: &mut Rng,
    id: u64,
    what: What,
    model: &mut Content,
) -> Result<(), Error> {
    if what == What::Sync {
        return pager.sync().map(|_| ());
    }
    let changes = toy::changes(rng, id);
    let mut next = model.clone();
    changes
        .iter()
        .for_each(|&(slot, version)| next[slot] = version);
    let mut txn = pager.begin_write()?;
    let before = txn.app().to_vec();
    assert_eq!(content(&txn, &before)?, *model, "before {id}");
    let savepoint = txn.savepoint()?;
    let mut root = toy::apply(&mut txn, &toy::root_of(&before), &changes)?;
    if rng.one_in(4) {
        let reader = txn.reader()?;
        assert_eq!(content(&reader, &toy::app(&root, id))?, next, "within {id}");
        txn.rollback_to(&savepoint)?;
        assert_eq!(content(&txn, &before)?, *model, "taken back {id}");
        root = toy::apply(&mut txn, &toy::root_of(&before), &changes)?;
    }
    let durability = match what {
        What::Commit(durability) => durability,
        _ => {
            txn.pin("pin")?;
            Durability::None
        }
    };
    txn.commit(&toy::app(&root, id), durability)?;
    *model = next;
    Ok(())
}

fn expect_content(snapshot: &Snapshot, model: &Content, what: &str) -> bool {
    match content(snapshot, snapshot.app()) {
        Ok(found) => assert_eq!(&found, model, "{what}"),
        Err(Error::Evicted { .. }) if snapshot.is_evictable() => return false,
        Err(error) => panic!("{what}: {error}"),
    }
    true
}

fn run(place: &Place, seed: u64, map: bool) {
    let mut rng = Rng::new(seed);
    let rng = &mut rng;
    let options = Options {
        map,
        dirty_bytes_max: toy::PAGE << rng.below(9),
        unwritten_bytes_max: *rng.pick(&[0, toy::PAGE * 60, 64 << 20, 64 << 20]),
        ..toy::options()
    };
    let mut pager = place.open(&options);
    let mut model: Content = vec![0; toy::SLOTS];
    let (mut readers, mut pinned) = (Vec::new(), None);
    // Commits that may be found when the file is opened again: the newest durable commit, and later commits with a
    // meta record.
    let mut found_next = vec![model.clone()];
    for id in 1..150 {
        let at = format!("seed {seed}, step {id}");
        let what = what(rng);
        if rng.one_in(6) {
            place.fill(rng.below(12));
        }
        let done = step(&pager, rng, id, what, &mut model);
        place.empty();
        match done {
            Ok(()) => match what {
                What::Commit(Durability::None) => {}
                What::Commit(Durability::Lazy) => found_next.push(model.clone()),
                _ => found_next = vec![model.clone()],
            },
            Err(Error::Disk(DiskError::DiskFull { .. })) => {}
            Err(error) => {
                // A meta record could not be written, so the handle must be poisoned.
                assert!(toy::is_disk_error(&error), "{at}: {error}");
                assert!(pager.begin_write().is_err(), "{at}: {error}");
                return;
            }
        }
        if what == What::Pin && pager.pins().unwrap().len() == 1 {
            let snapshot = pager.begin_read_at("pin").unwrap().unwrap();
            if toy::id_of(snapshot.app()) == id {
                pinned = Some(model.clone());
            }
        }
        let reader = if rng.one_in(3) {
            pager.begin_read_evictable().unwrap()
        } else {
            pager.begin_read().unwrap()
        };
        assert!(expect_content(&reader, &model, &at) || reader.is_evictable());
        if rng.one_in(5) {
            readers.push((reader, model.clone()));
        }
        if rng.one_in(8) && !readers.is_empty() {
            readers.swap_remove(rng.index(readers.len()));
        }
        if id % 7 == 0 {
            readers.retain(|(reader, model)| expect_content(reader, model, &at));
            if let Some(model) = &pinned {
                let snapshot = pager.begin_read_at("pin").unwrap().unwrap();
                expect_content(&snapshot, model, &at);
            }
        }
        if id % 30 == 0 {
            assert_eq!(toy::problems(&pager).unwrap(), [""; 0], "{at}");
        }
        if rng.one_in(50) {
            readers.clear();
            drop(pager);
            pager = place.open(&options);
            let snapshot = pager.begin_read().unwrap();
            model = content(&snapshot, snapshot.app()).unwrap();
            assert!(found_next.contains(&model), "{at}: after closing");
            found_next = vec![model.clone()];
        }
    }
    let mut image = Vec::new();
    let copied = pager.copy_image(&mut image, &mut |_, _, _| Ok(()));
    copied.unwrap();
    let copy = Arc::new(SimDisk::from_image(image));
    let copy = Pager::open_storage(copy, &options).unwrap();
    let snapshot = copy.begin_read().unwrap();
    expect_content(&snapshot, &model, "the copy");
    for (reader, model) in &readers {
        expect_content(reader, model, "at the end");
    }
}

#[test]
fn readers_see_unwritten_pages() {
    tidalite_testkit::watch();
    for seed in 0..20 {
        run(&Place::Disk(Arc::new(SimDisk::new())), seed, false);
    }
}

#[test]
fn readers_of_a_file_see_unwritten_pages() {
    tidalite_testkit::watch();
    for seed in 0..6 {
        let name = format!("tidalite-unwritten-{}-{seed}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        run(&Place::File(folder.join("a.tdl")), seed, seed % 2 == 0);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
