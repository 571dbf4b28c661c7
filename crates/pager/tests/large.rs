//! Tests of the second file under power failures: commits must be complete on both disks, whichever of the disks
//! loses writes.
//!
//! To run more seeds: `TIDALITE_LARGE_SEEDS=100 cargo test -p tidalite-pager --test suite large:: -- --nocapture`.

use std::io;
use std::sync::{Arc, Mutex};
use tidalite_base::TxnId;
use tidalite_disk::storage::Growth;
use tidalite_pager::seeded::{Bug, enable};
use tidalite_pager::{
    Durability, Extent, LockMemory, Options, PageRead, PageWrite, Pager, Storage,
};
use tidalite_testkit::rng::{Rng, mix};
use tidalite_testkit::{Op, Replay, SimDisk};

const SLOTS: usize = 12;
const SEEDS: u64 = 10;
const COMMITS: u64 = 30;

/// Event on either of the two disks, in the order in which the events happened.
#[derive(Clone, Copy, Debug)]
enum Event {
    Op(usize),
    /// The commit with this number is acknowledged as durable.
    Durable(u64),
}

type Clock = Arc<Mutex<Vec<Event>>>;

/// A simulated disk that records its calls in a sequence shared with the other disk.
struct Clocked {
    disk: SimDisk,
    side: usize,
    clock: Clock,
}

impl Clocked {
    fn tick(&self) {
        let mut clock = self.clock.lock().expect("nobody panics here");
        clock.push(Event::Op(self.side));
    }
}

impl Storage for Clocked {
    fn read_at(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.disk.read_at(at, bytes)
    }
    fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.disk.write_at(at, bytes).map(|()| self.tick())
    }
    fn sync(&self) -> io::Result<()> {
        self.disk.sync().map(|()| self.tick())
    }
    fn sync_all(&self) -> io::Result<()> {
        self.disk.sync_all().map(|()| self.tick())
    }
    fn len(&self) -> io::Result<u64> {
        self.disk.len()
    }
    fn grow(&self, len: u64, how: Growth) -> io::Result<()> {
        let before = self.disk.len()?;
        self.disk.grow(len, how)?;
        if len > before {
            self.tick();
        }
        Ok(())
    }
    fn cut(&self, len: u64) -> io::Result<()> {
        let before = self.disk.len()?;
        self.disk.cut(len)?;
        if len < before {
            self.tick();
        }
        Ok(())
    }
    fn punch(&self, at: u64, len: u64) -> io::Result<bool> {
        let punched = self.disk.punch(at, len)?;
        self.tick();
        Ok(punched)
    }
}

fn options() -> Options {
    Options {
        page_size: 512,
        growth_bytes_min: 16 << 10,
        growth_bytes_max: 64 << 10,
        shrink_bytes: 64 << 10,
        large_values_min: 1024,
        ..Options::default()
    }
}

/// One value of the test: its address, its length, and the seed of its bytes. An empty slot has zero pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Slot {
    addr: u64,
    pages: u64,
    birth: u64,
    seed: u64,
}

impl Slot {
    fn extent(&self) -> Extent {
        Extent {
            addr: self.addr,
            pages: self.pages,
            birth: TxnId(self.birth),
        }
    }

    fn content(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.pages as usize * 512];
        Rng::new(self.seed).fill(&mut bytes);
        bytes
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Content {
    id: u64,
    slots: [Slot; SLOTS],
}

impl Content {
    fn encode(&self) -> Vec<u8> {
        let words = self
            .slots
            .iter()
            .flat_map(|s| [s.addr, s.pages, s.birth, s.seed]);
        let all = [self.id].into_iter().chain(words);
        all.flat_map(u64::to_le_bytes).collect()
    }

    fn decode(app: &[u8]) -> Self {
        let mut words = app
            .chunks_exact(8)
            .map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes")));
        let mut next = || words.next().unwrap_or_default();
        let id = next();
        let slots = [(); SLOTS].map(|()| Slot {
            addr: next(),
            pages: next(),
            birth: next(),
            seed: next(),
        });
        Self { id, slots }
    }

    /// Returns an error unless all values are present.
    fn verify(&self, reader: &impl PageRead) -> Result<(), String> {
        for slot in self.slots.iter().filter(|slot| slot.pages > 0) {
            let bytes = reader.bytes(slot.addr, slot.pages as usize * 512);
            if *bytes.map_err(|error| error.to_string())? != slot.content()[..] {
                return Err(format!("commit {}: {slot:?} holds something else", self.id));
            }
        }
        Ok(())
    }
}

fn problems(pager: &Pager) -> Vec<String> {
    let mut check = pager.begin_check().expect("a check");
    let content = Content::decode(check.snapshot().app());
    for slot in content.slots.iter().filter(|slot| slot.pages > 0) {
        check.claim(slot.addr, slot.pages, "a value");
    }
    check.finish().problems
}

/// Makes one commit that removes some values and adds some.
fn commit(pager: &Pager, rng: &mut Rng, durability: Durability) -> Result<Content, String> {
    let text = |error: tidalite_pager::Error| error.to_string();
    let mut txn = pager.begin_write().map_err(text)?;
    let mut content = Content::decode(txn.app());
    content.id += 1;
    for _ in 0..rng.index(3) + 1 {
        let slot = &mut content.slots[rng.index(SLOTS)];
        if slot.pages > 0 {
            txn.free_extent(&slot.extent());
        }
        *slot = Slot::default();
        if rng.one_in(5) {
            continue;
        }
        // Some values are too small for the second file.
        let pages = rng.below(40) + 1;
        let extent = txn.alloc_value(pages, pages * 512).map_err(text)?;
        assert_eq!(extent.addr >= 1 << 62, pages >= 2, "where it belongs");
        *slot = Slot {
            addr: extent.addr,
            pages,
            birth: extent.birth.0,
            seed: rng.below(u64::MAX - 1) + 1,
        };
        txn.write_extent(slot.addr, &slot.content()).map_err(text)?;
    }
    txn.commit(&content.encode(), durability).map_err(text)?;
    Ok(content)
}

struct Run {
    disks: [Arc<Clocked>; 2],
    clock: Clock,
    history: Vec<Content>,
}

fn open(disks: [Arc<dyn Storage>; 2]) -> Result<Pager, String> {
    let [first, large] = disks;
    let opened = Pager::open_storages(first, Some(large), &LockMemory::new(), &options());
    opened.map_err(|error| error.to_string())
}

fn record(seed: u64) -> Result<Run, String> {
    let clock = Clock::default();
    let disks = [0, 1].map(|side| {
        Arc::new(Clocked {
            disk: SimDisk::new(),
            side,
            clock: Arc::clone(&clock),
        })
    });
    let mut rng = Rng::new(seed);
    let mut history = vec![Content::default()];
    let storages = || disks.clone().map(|disk| disk as Arc<dyn Storage>);
    let mut pager = open(storages())?;
    clock.lock().expect("the clock").push(Event::Durable(0));
    let mut readers = Vec::new();
    for _ in 0..COMMITS {
        let durability = *rng.pick(&[
            Durability::Durable,
            Durability::Durable,
            Durability::OneFlush,
            Durability::Lazy,
            Durability::None,
        ]);
        let content = commit(&pager, &mut rng, durability)?;
        history.truncate(content.id as usize);
        history.push(content.clone());
        if matches!(durability, Durability::Durable | Durability::OneFlush) {
            let mut clock = clock.lock().expect("the clock");
            clock.push(Event::Durable(content.id));
        }
        if rng.one_in(3) {
            readers.push((content, pager.begin_read().map_err(|e| e.to_string())?));
        }
        if rng.one_in(3) && !readers.is_empty() {
            readers.swap_remove(rng.index(readers.len()));
        }
        for (content, reader) in &readers {
            content.verify(reader)?;
        }
        let found = problems(&pager);
        if !found.is_empty() {
            return Err(format!("check after {}: {found:?}", history.len() - 1));
        }
        if rng.one_in(8) {
            // Makes all commits durable and closes the handle, so that no lazy commits are left.
            readers.clear();
            pager.sync().map_err(|error| error.to_string())?;
            let id = history.len() as u64 - 1;
            clock.lock().expect("the clock").push(Event::Durable(id));
            drop(pager);
            pager = open(storages())?;
        }
    }
    drop((readers, pager));
    Ok(Run {
        disks,
        clock,
        history,
    })
}

/// Simulates a power failure after every operation of either disk. Returns the number of disk states examined.
fn examine(seed: u64) -> Result<u64, String> {
    let run = record(seed)?;
    let recordings = run.disks.clone().map(|disk| disk.disk.recording());
    let mut replays = [Replay::new(&recordings[0]), Replay::new(&recordings[1])];
    let mut at = [0, 0];
    let (mut durable, mut states) = (None, 0);
    let mut rng = Rng::new(mix(seed));
    let events = run.clock.lock().expect("the clock").clone();
    for (number, event) in events.iter().enumerate() {
        match *event {
            Event::Durable(id) => durable = Some(id),
            Event::Op(side) => {
                let op: &Op = &recordings[side].ops[at[side]];
                replays[side].step(op);
                at[side] += 1;
            }
        }
        let Some(durable) = durable else {
            continue;
        };
        states += 1;
        let images = [0, 1].map(|side| replays[side].power_cut(&mut rng));
        let disks = images.map(|image| Arc::new(SimDisk::from_image(image)) as Arc<dyn Storage>);
        let judged = judge(disks, durable, &run.history, &mut rng);
        judged.map_err(|problem| format!("seed {seed}, after event {number}: {problem}"))?;
    }
    Ok(states)
}

fn judge(
    disks: [Arc<dyn Storage>; 2],
    durable: u64,
    history: &[Content],
    rng: &mut Rng,
) -> Result<(), String> {
    let pager = open(disks)?;
    let reader = pager.begin_read().map_err(|error| error.to_string())?;
    let found = Content::decode(reader.app());
    if found.id < durable {
        return Err(format!(
            "commit {} found, {durable} was acknowledged",
            found.id
        ));
    }
    if history.get(found.id as usize) != Some(&found) {
        return Err(format!("commit {} was never made so", found.id));
    }
    found.verify(&reader)?;
    let problems_now = problems(&pager);
    if !problems_now.is_empty() {
        return Err(format!("check: {problems_now:?}"));
    }
    let next = commit(&pager, rng, Durability::Durable)?;
    found.verify(&reader)?;
    next.verify(&pager.begin_read().map_err(|error| error.to_string())?)?;
    let problems_now = problems(&pager);
    if problems_now.is_empty() {
        Ok(())
    } else {
        Err(format!("check after the next commit: {problems_now:?}"))
    }
}

#[test]
fn a_power_cut_of_either_disk_leaves_a_promised_state() {
    tidalite_testkit::watch();
    let seeds = std::env::var("TIDALITE_LARGE_SEEDS");
    let seeds = seeds
        .ok()
        .and_then(|seeds| seeds.parse().ok())
        .unwrap_or(SEEDS);
    let mut states = 0;
    for seed in 0..seeds {
        states += examine(seed).unwrap_or_else(|problem| panic!("{problem}"));
    }
    println!("{states} crash states of two disks");
    assert!(states > seeds * 100, "{states} is too few");
}

#[test]
fn a_second_file_that_is_not_synced_is_noticed() {
    tidalite_testkit::watch();
    enable(Some(Bug::SkipLargeSync));
    let found = (0..SEEDS).find_map(|seed| examine(seed).err());
    enable(None);
    let found = found.expect("the bug is found");
    println!("{found}");
}
