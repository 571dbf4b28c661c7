//! The most frequent or heaviest items, in bounded memory: the Space-Saving algorithm.
//!
//! A. Metwally, D. Agrawal, A. El Abbadi: *Efficient Computation of Frequent and Top-k Elements in Data Streams*, ICDT
//! 2005. Merging as in M. Cafaro, M. Pulimeno, P. Tempesta: *A parallel space saving algorithm for frequent items and
//! the Hurwitz zeta distribution*, Information Sciences 329 (2016).
//!
//! ```text
//! item ──> has a counter? ──yes──> add the weight
//!              └─no──> room? ──yes──> a new counter
//!                        └─no──> it takes over the smallest counter, whose weight becomes the error
//! ```
//!
//! Invariants
//! 1. `heap` contains the number of each counter once, the smallest counter at the root; `Counter::at` is the counter's
//!    position in the heap. `places` maps each item to the number of its counter.
//! 2. An item with a counter satisfies `weight - error <= true weight <= weight`. An item without a counter weighs at
//!    most as much as the smallest counter, or nothing while counters are unused.
//! 3. The sum of all counters is at most `total` (exactly `total` before the first merge): the smallest counter, and
//!    every error, is therefore at most `total / capacity`.
//!
//! Invariant 3 survives a merge of `a` and `b` with smallest counters `m` and `n` (0 while counters are unused): an
//! item of both gets the sum of its counters, an item of `a` alone its own counter plus `n`, an item of `b` alone its
//! own counter plus `m`. Each of these is at least `m + n`. The amounts added to items of one side alone do not exceed
//! the counters dropped as the smallest, so the remaining counters sum to at most the sum of both totals.

use crate::series::figures::Figures;
use crate::series::query::Query;
use crate::series::vectors::Vector;
use crate::types::column::{Column, ColumnType};
use crate::types::error::cause::Cause;
use crate::types::error::{Error, Result};
use crate::types::into_column::IntoColumn;
use crate::types::value::Value;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// A frequent or heavy item, with bounds of its weight.
#[derive(Clone, Debug, PartialEq)]
pub struct Frequent<T> {
    /// The frequent item: a number, a text, or whatever was added.
    pub item: T,
    /// Upper bound of the item's weight; for counted items, of the number of occurrences.
    pub weight: f64,
    /// Maximum amount by which `weight` exceeds the true weight.
    pub error: f64,
}

impl<T> Frequent<T> {
    /// Lower bound of the item's weight.
    #[must_use]
    pub fn at_least(&self) -> f64 {
        self.weight - self.error
    }
}

/// Frequent items of a stream of any length, in the memory of `capacity` counters (the Space-Saving algorithm).
///
/// For any stream of total weight `W`, in any order: no reported weight is too small, none is too large by more than `W
/// / capacity`, and every item heavier than that is reported. All weights are exact while there are no more items than
/// counters. Weights are floats: counts up to 2^53 add up exactly, other weights with float rounding.
///
/// ```
/// use tidalite::functions::SpaceSaving;
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
    /// Position of this counter in the heap.
    at: usize,
}

impl<T: Clone + Eq + Hash> SpaceSaving<T> {
    /// Creates an empty summary with this many counters, or with one if `capacity` is 0. Memory is allocated as items
    /// arrive.
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

    /// Maximum number of counters.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Total weight of all items added.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.total
    }

    /// Maximum weight that an item without a counter can have; no reported weight is too large by more than this.
    #[must_use]
    pub fn error_max(&self) -> f64 {
        match self.heap.first() {
            Some(&smallest) if self.counters.len() == self.capacity => {
                self.counters[smallest].weight
            }
            _ => 0.0,
        }
    }

    /// Adds an item with a weight; to count occurrences, add each with weight 1. A weight that is not above 0, or not
    /// finite, is ignored.
    ///
    /// # Errors
    /// `InvalidInput` if the total weight would not be finite; the summary is then unchanged.
    ///
    /// # Cost
    /// A hash lookup, and heap operations that take the logarithm of the capacity.
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

    /// Merges a summary of other items into this one, such as one of another series or from another thread. The smaller
    /// of the two capacities is kept.
    ///
    /// # Errors
    /// `InvalidInput` if the total weight would not be finite; the summary is then unchanged.
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

    /// The `k` heaviest items, the heaviest first; of items with equal weights, the one with the smaller error first.
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

    /// The items that weigh more than this fraction (0 to 1) of the total, the heaviest first. No such item is missing
    /// if the fraction is at least `1 / capacity`; an item whose [`at_least`](Frequent::at_least) is not above the
    /// fraction may be reported wrongly.
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
        // Moves the new counter up the heap until its parent is not larger.
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

    /// Moves a counter that has grown down the heap until no child is smaller.
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
        false => Err(Error::from(Cause::WeightSum { total, weight })),
    }
}

/// A value as it is counted: the word of a number, or the bytes of a text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Word(u64),
    Text(Vec<u8>),
}

impl<F: Figures> Query<'_, F> {
    /// The most frequent values of a column, with their numbers of occurrences. The values may be numbers or texts.
    /// `capacity` is the number of values tracked at a time ([`SpaceSaving`], with its guarantees); the result is exact
    /// while the column has no more distinct values. Nulls are skipped; all NaN are one value, and so are the two
    /// zeros.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use tidalite::{ColumnType, Options, Schema, Steps, Unit, Value};
    /// use tidalite::storage::MemoryStorage;
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// let events = Schema::new(Unit::Seconds, [("message", ColumnType::String)]);
    /// let mut log = tx.series_with("events", &events)?;
    /// for (time, message) in [(1, "started"), (2, "timeout"), (3, "timeout")] {
    ///     log.insert_values(Steps(time), &[message.into()])?;
    /// }
    /// let log = log.view()?;
    /// let most = log.query(..).frequent_items("message", 100)?;
    /// assert_eq!((&most[0].item, most[0].weight), (&Value::from("timeout"), 2.0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Schema` if the column does not exist; a damaged or unreadable block.
    ///
    /// # Cost
    /// Reads all rows; uses the memory of `capacity` values.
    pub fn frequent_items(
        &self,
        column: impl IntoColumn,
        capacity: usize,
    ) -> Result<Vec<Frequent<Value>>> {
        self.weighed(self.column(column)?, None, capacity)
    }

    /// The values of a column that are heaviest, like [`frequent_items`](Self::frequent_items), but each row counts
    /// with its value in the column `weight` instead of 1: for example, to find the clients that sent most bytes. Rows
    /// in which the weight is null, not finite, or not above 0 do not count.
    ///
    /// # Errors
    /// As for `frequent_items`; `Schema` if the weights are texts; `InvalidInput` if they add up to more than a float
    /// can represent.
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
        let mut failed = Ok(());
        self.clone().columns(wanted).for_each_vector(|vector| {
            if failed.is_ok() {
                failed = self.count_vector(vector, (column, own), by, &mut seen);
            }
        })?;
        failed?;
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

    fn count_vector(
        &self,
        vector: &Vector<'_>,
        (column, own): (usize, &Column),
        by: Option<(usize, &Column)>,
        seen: &mut SpaceSaving<Key>,
    ) -> Result<()> {
        // The weights of texts are first summed by word, so that each distinct text of the vector is looked up once.
        let mut words: BTreeMap<u64, f64> = BTreeMap::new();
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
        for (word, weight) in words {
            seen.add(Key::Text(self.series.text(column, word)?), weight)?;
        }
        Ok(())
    }
}

/// The word under which a value is counted: all NaN have one word, and so have the two zeros.
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
