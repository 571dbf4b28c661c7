//! Which items come often, or weigh most, in bounded memory: the Space-Saving algorithm.
//!
//! A. Metwally, D. Agrawal, A. El Abbadi: *Efficient Computation of Frequent and Top-k Elements in Data Streams*, ICDT 2005. Merging as in
//! M. Cafaro, M. Pulimeno, P. Tempesta: *A parallel space saving algorithm for frequent items and the Hurwitz zeta distribution*,
//! Information Sciences 329 (2016).
//!
//! ```text
//! item ──> has a counter? ──yes──> it grows by the weight
//!              └─no──> room? ──yes──> a counter of its own
//!                        └─no──> the smallest counter becomes its: what that had counted is the error
//! ```
//!
//! Invariants
//! 1. `heap` has each counter once, by its number, the smallest at the root; `Counter::at` is where. `places` has the number of each item's.
//! 2. Of an item with a counter, `weight - error <= true weight <= weight`. One without weighs no more than the smallest counter, or nothing
//!    while there is room.
//! 3. All counters together are at most `total` (exactly, before anything was merged in): so the smallest is at most `total / capacity`, and so
//!    is every error.
//!
//! Why 3 survives a merge of `a` and `b`, whose smallest counters are `m` and `n` (0 where there is room): an item of both has the sum of its
//! counters, one of `a` alone its own and `n`, one of `b` alone its own and `m`. Each is at least `m + n`. What the items of one alone got in addition
//! is no more than what is cut off with as many of the smallest, so those that stay add up to no more than both totals.

use crate::series::range::Range;
use crate::types::column::{Column, ColumnType};
use crate::types::error::{Error, Result};
use crate::types::into_column::IntoColumn;
use crate::types::value::Value;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// An item that comes often, or weighs much.
#[derive(Clone, Debug, PartialEq)]
pub struct Frequent<T> {
    /// What it is.
    pub item: T,
    /// How much it weighs at most: of things that are counted, how often it came.
    pub weight: f64,
    /// By how much `weight` may be too large.
    pub error: f64,
}

impl<T> Frequent<T> {
    /// How much it weighs at least.
    #[must_use]
    pub fn at_least(&self) -> f64 {
        self.weight - self.error
    }
}

/// Items that come often, of a stream of any length, in the memory of `capacity` counters (the Space-Saving algorithm).
///
/// Whatever the stream and its order, of a total weight `W`: no weight that is told is too small, none is too large by more than
/// `W / capacity`, and every item heavier than that is there. While there are no more items than counters, all is exact. Weights are floats:
/// counts up to 2^53 add up exactly, other weights as floats do.
///
/// ```
/// use tidalite::SpaceSaving;
/// let mut seen = SpaceSaving::new(10);
/// for code in [7, 7, 3, 7, 5, 7, 3] {
///     seen.add(code, 1.0)?;
/// }
/// let most = seen.top(2);
/// assert_eq!((most[0].item, most[0].weight), (7, 4.0));
/// assert_eq!(seen.heavier_than(0.25).len(), 2); // more than a quarter of all: 7 and 3
/// # Ok::<(), tidalite::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct SpaceSaving<T> {
    capacity: usize,
    total: f64,
    counters: Vec<Counter<T>>,
    heap: Vec<usize>,
    places: HashMap<T, usize>,
}

#[derive(Clone, Debug)]
struct Counter<T> {
    item: T,
    weight: f64,
    error: f64,
    /// Its place in the heap.
    at: usize,
}

impl<T: Clone + Eq + Hash> SpaceSaving<T> {
    /// With so many counters, one at least. Memory is taken as items come.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity: capacity.max(1),
            total: 0.0,
            counters: Vec::new(),
            heap: Vec::new(),
            places: HashMap::new(),
        }
    }

    /// How many counters it may have.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The weight of all items that came.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.total
    }

    /// What an item weighs at most that is not told of; no error is larger.
    #[must_use]
    pub fn error_max(&self) -> f64 {
        match self.heap.first() {
            Some(&smallest) if self.counters.len() == self.capacity => {
                self.counters[smallest].weight
            }
            _ => 0.0,
        }
    }

    /// An item came, with a weight; 1 for each time counts them. A weight that is not above 0, or not finite, is none.
    ///
    /// # Errors
    /// `WeightSum` when all weights together are no longer finite: nothing has changed.
    ///
    /// # Cost
    /// A hash, and the logarithm of the capacity.
    pub fn add(&mut self, item: T, weight: f64) -> Result<()> {
        if !(weight > 0.0 && weight.is_finite()) {
            return Ok(());
        }
        self.total = finite_sum(self.total, weight)?;
        if let Some(&counter) = self.places.get(&item) {
            self.counters[counter].weight += weight;
            self.sink(self.counters[counter].at);
        } else if self.counters.len() < self.capacity {
            self.push(item, weight, 0.0);
        } else {
            let smallest = self.heap[0];
            let counter = &mut self.counters[smallest];
            counter.error = counter.weight;
            counter.weight += weight;
            let gone = std::mem::replace(&mut counter.item, item.clone());
            self.places.remove(&gone);
            self.places.insert(item, smallest);
            self.sink(0);
        }
        Ok(())
    }

    /// Takes in what another one has seen, of rows beside these: of other series, or in another thread. The smaller capacity of the two stays.
    ///
    /// # Errors
    /// `WeightSum` when all weights together are no longer finite: nothing has changed.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        let total = finite_sum(self.total, other.total)?;
        let (own_floor, other_floor) = (self.error_max(), other.error_max());
        let mut all = Vec::with_capacity(self.counters.len() + other.counters.len());
        for own in &self.counters {
            let (weight, error) = match other.places.get(&own.item) {
                Some(&same) => (other.counters[same].weight, other.counters[same].error),
                None => (other_floor, other_floor),
            };
            all.push((own.item.clone(), own.weight + weight, own.error + error));
        }
        for one in &other.counters {
            if !self.places.contains_key(&one.item) {
                let (weight, error) = (one.weight + own_floor, one.error + own_floor);
                all.push((one.item.clone(), weight, error));
            }
        }
        all.sort_by(|a, b| b.1.total_cmp(&a.1)); // stable
        let mut merged = Self::new(self.capacity.min(other.capacity));
        merged.total = total;
        all.truncate(merged.capacity);
        for (item, weight, error) in all {
            merged.push(item, weight, error);
        }
        *self = merged;
        Ok(())
    }

    /// The `k` heaviest items, the heaviest first; of equal ones the one with the smaller error.
    #[must_use]
    pub fn top(&self, k: usize) -> Vec<Frequent<T>> {
        let told = |counter: &Counter<T>| Frequent {
            item: counter.item.clone(),
            weight: counter.weight,
            error: counter.error,
        };
        let mut all: Vec<Frequent<T>> = self.counters.iter().map(told).collect();
        let order = |a: &Frequent<T>, b: &Frequent<T>| {
            let by_weight = b.weight.total_cmp(&a.weight);
            by_weight.then(a.error.total_cmp(&b.error))
        };
        all.sort_by(order); // stable
        all.truncate(k);
        all
    }

    /// The items that weigh more than this portion (0 to 1) of all, the heaviest first. None that does is missing while the portion is not below
    /// `1 / capacity`; one whose [`at_least`](Frequent::at_least) is no more than the portion may not.
    #[must_use]
    pub fn heavier_than(&self, portion: f64) -> Vec<Frequent<T>> {
        let mut all = self.top(self.counters.len());
        all.retain(|one| one.weight > portion * self.total);
        all
    }

    fn push(&mut self, item: T, weight: f64, error: f64) {
        let counter = self.counters.len();
        self.places.insert(item.clone(), counter);
        self.counters.push(Counter {
            item,
            weight,
            error,
            at: counter,
        });
        self.heap.push(counter);
        // Up to where what is above is no larger.
        let mut at = counter;
        while at > 0 && self.weight_at((at - 1) / 2) > weight {
            self.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
    }

    fn weight_at(&self, at: usize) -> f64 {
        self.counters[self.heap[at]].weight
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.counters[self.heap[a]].at = a;
        self.counters[self.heap[b]].at = b;
    }

    /// A counter has grown: down to where what is below is no smaller.
    fn sink(&mut self, mut at: usize) {
        loop {
            let below = [2 * at + 1, 2 * at + 2];
            let below = below.into_iter().filter(|&child| child < self.heap.len());
            let least = below.min_by(|&a, &b| self.weight_at(a).total_cmp(&self.weight_at(b)));
            match least {
                Some(child) if self.weight_at(child) < self.weight_at(at) => {
                    self.swap(at, child);
                    at = child;
                }
                _ => return,
            }
        }
    }
}

fn finite_sum(total: f64, weight: f64) -> Result<f64> {
    let sum = total + weight;
    match sum.is_finite() {
        true => Ok(sum),
        false => Err(Error::WeightSum { total, weight }),
    }
}

/// What values are told apart by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Word(u64),
    Text(Vec<u8>),
}

impl Range<'_> {
    /// The values of a column that come most often, with how often: of numbers, words or texts. `capacity` is how many are looked after at a time
    /// ([`SpaceSaving`], with what that promises); all is exact while there are no more values than that. Nulls are passed over; all NaN are one
    /// value, and so are the two zeros.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use tidalite::{ColumnType, MemoryStorage, Options, Schema, Unit, Value};
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// let events = Schema::new(Unit::Seconds, [("message", ColumnType::String)]);
    /// let mut log = tx.series_with("events", &events)?;
    /// for (time, message) in [(1, "started"), (2, "timeout"), (3, "timeout")] {
    ///     log.insert_values(time, &[message.into()])?;
    /// }
    /// let log = log.view()?;
    /// let most = log.all().frequent_items(0, 100)?;
    /// assert_eq!((&most[0].item, most[0].weight), (&Value::from("timeout"), 2.0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Schema` for a column that is not there; a damaged or unreadable block.
    ///
    /// # Cost
    /// Reads all rows; the memory of `capacity` values.
    pub fn frequent_items(
        &self,
        column: impl IntoColumn,
        capacity: usize,
    ) -> Result<Vec<Frequent<Value>>> {
        self.weighed(self.column(column)?, None, capacity)
    }

    /// As [`frequent_items`](Self::frequent_items), but each row counts with the value that it has in the column `weight`, not with 1: which
    /// clients sent most bytes. Rows in which that is null, not finite, or not above 0 do not count.
    ///
    /// # Errors
    /// As for `frequent_items`; `Schema` when the weights are texts; `WeightSum` when they add up to more than a float can hold.
    ///
    /// # Cost
    /// As for `frequent_items`.
    pub fn heavy_hitters(
        &self,
        column: impl IntoColumn,
        weight: impl IntoColumn,
        capacity: usize,
    ) -> Result<Vec<Frequent<Value>>> {
        self.weighed(self.column(column)?, Some(self.column(weight)?), capacity)
    }

    fn weighed(
        &self,
        column: usize,
        weight: Option<usize>,
        capacity: usize,
    ) -> Result<Vec<Frequent<Value>>> {
        let columns = &self.series.info().schema.columns;
        let own = &columns[column];
        let by = match weight {
            None => None,
            Some(weight) => {
                if columns[weight].ty.is_text() {
                    return Err(columns[weight].problem("texts have no value to count with"));
                }
                Some((weight, &columns[weight]))
            }
        };
        let mut seen = SpaceSaving::new(capacity);
        let wanted: Vec<usize> = [column].into_iter().chain(weight).collect();
        let mut scan = self.series.view().scan(self.from, self.to, &wanted);
        // Of texts, those of a vector are summed up by their words first, so that each is looked up once.
        let mut words: BTreeMap<u64, f64> = BTreeMap::new();
        while let Some(vector) = scan.next()? {
            let weights = by.map(|(weight, column)| (vector.words(weight), column));
            for (row, &word) in vector.words(column).iter().enumerate() {
                let weight = match weights {
                    None => Some(1.0),
                    Some((words, column)) => column.f64(words[row]),
                };
                let counts = |weight: &f64| *weight > 0.0 && weight.is_finite();
                let Some(weight) = weight.filter(counts).filter(|_| !own.is_null(word)) else {
                    continue;
                };
                if own.ty.is_text() {
                    let sum = words.entry(word).or_default();
                    *sum = finite_sum(*sum, weight)?;
                } else {
                    seen.add(Key::Word(one_word(own, word)), weight)?;
                }
            }
            for (word, weight) in std::mem::take(&mut words) {
                seen.add(Key::Text(self.series.text(column, word)?), weight)?;
            }
        }
        let value = |one: Frequent<Key>| {
            let item = match one.item {
                Key::Word(word) => own.value(word),
                Key::Text(text) => own.of_text(text)?,
            };
            let (weight, error) = (one.weight, one.error);
            Ok(Frequent {
                item,
                weight,
                error,
            })
        };
        seen.top(capacity.max(1)).into_iter().map(value).collect()
    }
}

/// One word for the values of a column that count as one.
fn one_word(column: &Column, word: u64) -> u64 {
    if !matches!(column.ty, ColumnType::F64 | ColumnType::F32) {
        return word;
    }
    let value = f64::from_bits(word);
    if value.is_nan() {
        f64::NAN.to_bits()
    } else if value == 0.0 {
        0
    } else {
        word
    }
}
