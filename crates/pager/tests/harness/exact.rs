//! A model of a run. It knows the content and the pins of each commit by the number of the commit, the commits
//! acknowledged with each durability, and the commits with a meta record, which may be found later. The model judges
//! a file that a process has left:
//!
//! 1. The commit found is the newest acknowledged commit that had to survive, or a later commit with a meta record. A
//!    commit that failed before it had a meta record, or a commit with `Durability::None`, is never found.
//! 2. The content of the commit is as in the model, byte by byte. So are its pins, and each pin shows the pinned
//!    commit.
//! 3. The check of the file finds no problem.

use crate::toy::{
    Content, SLOTS, app, apply, changes, describe, id_of, options, problems, read, root_of,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use tidalite_pager::{Durability, LockMemory, Pager, Storage};
use tidalite_testkit::SimDisk;
use tidalite_testkit::rng::Rng;

/// Offset in the lock area of the word that marks the file as poisoned; see `crates/disk/src/lock/layout.rs`.
const POISON_AT: usize = 128;

pub type Judged<T = ()> = Result<T, String>;

/// The content and the pins after a commit.
#[derive(Clone)]
pub struct Version {
    pub content: Content,
    /// The pinned commits by the name of the pin.
    pub pins: BTreeMap<String, u64>,
    /// Whether the commit has a meta record or may have one, so that it may be found.
    pub recorded: bool,
    /// Whether the commit has succeeded, so that later commits build on it.
    pub whole: bool,
}

/// All commits of a run, and the newest acknowledged commit of each kind. Number 0 stands for the empty file.
#[derive(Clone)]
pub struct Exact {
    pub versions: BTreeMap<u64, Version>,
    /// Number of the newest commit that must survive a power failure.
    pub durable: u64,
    /// Number of the newest commit that must survive the death of the process.
    pub lazy: u64,
    /// Number of the newest commit that this process must see.
    pub shown: u64,
}

impl Exact {
    pub fn empty() -> Self {
        let empty = Version {
            content: vec![0; SLOTS],
            pins: BTreeMap::new(),
            recorded: true,
            whole: true,
        };
        Self {
            versions: BTreeMap::from([(0, empty)]),
            durable: 0,
            lazy: 0,
            shown: 0,
        }
    }

    /// Returns the number of the next commit.
    pub fn next(&self) -> u64 {
        self.versions.keys().last().map_or(1, |last| last + 1)
    }

    /// Returns the number of the newest commit that has succeeded. The next commit builds on it.
    pub fn newest(&self) -> u64 {
        let mut whole = self.versions.iter().filter(|(_, version)| version.whole);
        whole.next_back().map_or(0, |(id, _)| *id)
    }

    pub fn version(&mut self, id: u64) -> &mut Version {
        self.versions.get_mut(&id).expect("a commit of this run")
    }

    /// Must be called when everything is made durable. The newest commit gets a meta record then, even if it had
    /// `Durability::None`.
    pub fn may_be_recorded(&mut self) {
        let newest = self.newest();
        self.version(newest).recorded = true;
    }

    pub fn acknowledge(&mut self, id: u64, durability: Durability) {
        self.shown = self.shown.max(id);
        match durability {
            Durability::Durable | Durability::OneFlush => self.durable = self.durable.max(id),
            Durability::Lazy => self.lazy = self.lazy.max(id),
            Durability::None => {}
        }
    }

    /// Must be called after the process has ended: commits visible only to the process are lost, and the run
    /// continues from the commit `found`.
    pub fn goes_on_from(&mut self, found: u64) {
        for (id, version) in &mut self.versions {
            version.whole = version.whole && *id <= found || *id == found;
            version.recorded &= *id <= found;
        }
        self.shown = found;
        self.lazy = self.lazy.min(found);
    }

    /// Returns the number of the commit that survives the death of the process.
    pub fn after_kill(&self, area: &[u8]) -> u64 {
        match is_poisoned(area) {
            true => self.durable,
            false => self.durable.max(self.lazy),
        }
    }

    /// Returns whether commit `id` may be found, if commits older than `from` must not be found.
    pub fn allows(&self, id: u64, from: u64) -> bool {
        let version = self.versions.get(&id);
        id == from || id > from && version.is_some_and(|version| version.recorded)
    }

    /// Returns the number of the commit that an open file shows, after all of its content and pins have been
    /// compared.
    pub fn shown_by(&self, pager: &Pager) -> Judged<u64> {
        let words = |error: tidalite_pager::Error| error.to_string();
        let reader = pager.begin_read().map_err(words)?;
        let id = id_of(reader.app());
        let version = self
            .versions
            .get(&id)
            .ok_or(format!("commit {id} was never begun"))?;
        let found = read(&reader, &root_of(reader.app()), &mut |_, _| {});
        if found.map_err(|error| format!("content of commit {id}: {error}"))? != version.content {
            return Err(format!("not the content of commit {id}"));
        }
        let pins = reader.pins().map_err(words)?;
        let names: Vec<&String> = pins.iter().map(|pin| &pin.name).collect();
        let mut expected: Vec<(&String, &u64)> = version.pins.iter().collect();
        expected.sort_by_key(|(_, id)| **id);
        if !names
            .iter()
            .eq(&expected.iter().map(|(name, _)| *name).collect::<Vec<_>>())
        {
            return Err(format!(
                "pins of commit {id} are {names:?}, not {expected:?}"
            ));
        }
        for (name, pinned) in expected {
            let reader = pager.begin_read_at(name).map_err(words)?;
            let reader = reader.ok_or(format!("pin {name} is gone"))?;
            let shown = id_of(reader.app());
            let found = read(&reader, &root_of(reader.app()), &mut |_, _| {});
            let found = found.map_err(|error| format!("what {name} pins: {error}"))?;
            if shown != *pinned || found != self.versions[pinned].content {
                return Err(format!(
                    "{name} shows commit {shown}, not {pinned}, or not all of it"
                ));
            }
        }
        Ok(id)
    }

    /// Judges an open file, in which commits older than `from` must not be found. Returns the number of the commit
    /// found.
    pub fn judge(&self, pager: &Pager, from: u64) -> Judged<u64> {
        let id = self.shown_by(pager)?;
        if !self.allows(id, from) {
            let later = self.versions.range(from + 1..);
            let later = later.filter(|(_, version)| version.recorded);
            let later: Vec<&u64> = later.map(|(id, _)| id).collect();
            return Err(format!(
                "found commit {id}, promised was {from}, or one of {later:?}"
            ));
        }
        describe(problems(pager))?;
        Ok(id)
    }

    /// Opens the file that a process has left, and judges it. Then makes one more durable commit, which must be found
    /// again. `killed`: whether only the process has died, so that no write is lost.
    pub fn look(&self, image: Vec<u8>, area: &[u8], from: u64, killed: bool) -> Judged<u64> {
        let words = |error: tidalite_pager::Error| error.to_string();
        let disk = Arc::new(SimDisk::from_image(image));
        let memory = memory_of(area);
        let open = || {
            let storage = Arc::clone(&disk) as Arc<dyn Storage>;
            let opened = Pager::open_storage_with(storage, &memory, &options());
            opened.map_err(|error| format!("open: {error}"))
        };
        let pager = open()?;
        if let Some(dropped) = pager.recovery().dropped_unrecorded.filter(|_| killed) {
            return Err(format!("{dropped} was dropped, although nothing was lost"));
        }
        let found = self.judge(&pager, from)?;
        let mut next = self.clone();
        next.goes_on_from(found);
        let (id, version) = (next.next(), next.versions[&found].clone());
        let changes = changes(&mut Rng::new(id), id);
        let mut txn = pager.begin_write().map_err(words)?;
        let root = root_of(txn.app());
        let root = apply(&mut txn, &root, &changes).map_err(words)?;
        let done = txn.commit(&app(&root, id), Durability::Durable);
        done.map_err(words)?;
        next.versions.insert(id, version.with(&changes));
        drop(pager);
        next.judge(&open()?, id)?;
        Ok(found)
    }
}

impl Version {
    /// Returns this version with additional changes, which are not committed yet.
    pub fn with(mut self, changes: &[(usize, u64)]) -> Self {
        for &(slot, version) in changes {
            self.content[slot] = version;
        }
        (self.recorded, self.whole) = (false, false);
        self
    }
}

/// Returns whether the lock area marks the file as poisoned.
pub fn is_poisoned(area: &[u8]) -> bool {
    area[POISON_AT..POISON_AT + 8] != [0; 8]
}

/// Returns the lock area left by a killed process. `area` is empty after a power failure.
pub fn memory_of(area: &[u8]) -> LockMemory {
    let mut image = LockMemory::new().image();
    image[..area.len()].copy_from_slice(area);
    LockMemory::from_image(&image)
}
