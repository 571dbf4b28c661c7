//! Salvage of series: first from their records, skipping damage, then leaf by leaf.

use super::report::Saved;
use super::rescue::Rescue;
use super::tables::values_of;
use crate::catalog::annotations::annotation_of;
use crate::catalog::entries::SeriesInfo;
use crate::catalog::roots::owner;
use crate::catalog::texts;
use crate::maintenance::check::{Finding, Place};
use crate::types::column::{Column, ColumnType};
use crate::types::error::Result;
use crate::types::error::kind::ErrorKind;
use crate::types::merge_policy::MergePolicy;
use crate::types::name::SeriesName;
use crate::types::schema::{Schema, Unit};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use tidalite_base::SeriesId;
use tidalite_codec::{ColumnType as WordType, RowsRef};
use tidalite_pager::Ptr;
use tidalite_series::{OrphanLeaf, SeriesTree};

/// Maximum number of names that are tried for a series; after that many its creation fails.
const NAMES_TRIED: usize = 100;

/// Spans of time that newer leaves cover; they are disjoint and include both ends.
#[derive(Default)]
struct Covered(BTreeMap<i64, i64>);

impl Covered {
    /// Ranges of indices of the rows that no newer leaf covers.
    fn rest(&self, rows: RowsRef<'_>) -> Vec<std::ops::Range<usize>> {
        let times = rows.times();
        let mut rest = Vec::new();
        let mut at = 0;
        while at < times.len() {
            let before = self.0.range(..=times[at]).next_back();
            if let Some((_, &end)) = before.filter(|(_, end)| **end >= times[at]) {
                at += times[at..].partition_point(|&t| t <= end);
                continue;
            }
            let next = self.0.range(times[at]..).next().map(|(&start, _)| start);
            let end = next.map_or(times.len(), |next| {
                at + times[at..].partition_point(|&t| t < next)
            });
            rest.push(at..end);
            at = end;
        }
        rest
    }

    fn add(&mut self, begin: i64, end: i64) {
        let (mut begin, mut end) = (begin, end);
        let touching: Vec<i64> = self
            .0
            .range(..=end)
            .rev()
            .take_while(|(_, last)| **last >= begin)
            .map(|(first, _)| *first)
            .collect();
        for first in touching {
            if let Some(last) = self.0.remove(&first) {
                end = end.max(last);
            }
            begin = begin.min(first);
        }
        self.0.insert(begin, end);
    }
}

impl Rescue<'_, '_> {
    /// Saves every series, under its name or under a name generated from its id.
    pub(super) fn series(&mut self) -> Result<()> {
        let infos = self.read_infos()?;
        let records = self.records()?;
        let ids: BTreeSet<SeriesId> = infos
            .keys()
            .chain(records.keys())
            .chain(self.found.series_leaves.keys())
            .copied()
            .collect();
        let mut made = Vec::new();
        for id in ids {
            let record = records.get(&id);
            let schema = match infos.get(&id) {
                Some(info) => info.schema.clone(),
                None => self.schema_of(id, record),
            };
            let Some((new, place)) = self.create(id, infos.get(&id), &schema)? else {
                continue;
            };
            self.ids.insert(id, (new, place));
            self.columns.insert(id, schema.columns.len());
            made.push((id, schema));
        }
        self.infos = infos;
        self.texts(&made)?;
        for (id, schema) in made {
            if let (Some(info), Some(&(new, _))) = (self.infos.get(&id), self.ids.get(&id)) {
                self.merges.push((new, info.merge));
            }
            let record = records.get(&id);
            let tree = record.filter(|(_, by_header)| self.roots.is_some() && !by_header);
            self.leaves(id, &schema, tree.map(|(tree, _)| tree))?;
        }
        Ok(())
    }

    /// Saves the merge policies and annotations of the series. Policies are set after all rows are written, because
    /// until then salvage itself chooses between two rows with the same time.
    pub(super) fn notes(&mut self) -> Result<()> {
        for (new, merge) in std::mem::take(&mut self.merges) {
            self.tx.series_by_id(new)?.set_merge(merge)?;
        }
        let tree = self.roots.as_ref().map(|roots| roots.annotations);
        let mut saved = Vec::new();
        let lost = values_of(
            self.raw,
            &self.found,
            owner::ANNOTATIONS,
            tree.as_ref(),
            &mut |key, value, _| {
                saved.extend(annotation_of(key, value).ok());
                Ok(())
            },
        )?;
        self.lose_catalog("annotations", lost);
        for (id, key, text) in saved {
            if let Some(&(new, _)) = self.ids.get(&id) {
                self.tx.series_by_id(new)?.annotate(&key, &text)?;
            }
        }
        Ok(())
    }

    /// Saves the texts of all rows; the rows that refer to them follow later. Texts whose column is not of a text type
    /// are dropped.
    fn texts(&mut self, made: &[(SeriesId, Schema)]) -> Result<()> {
        let tree = self.roots.as_ref().map(|roots| roots.texts);
        let (tx, ids) = (&mut self.tx, &self.ids);
        let lost = values_of(
            self.raw,
            &self.found,
            owner::TEXTS,
            tree.as_ref(),
            &mut |key, value, _| {
                let new = |(id, column): texts::Column| {
                    let at = made.binary_search_by_key(&id, |(id, _)| *id).ok()?;
                    let column = made[at].1.columns.get(column)?;
                    let &(new, _) = ids.get(&id)?;
                    column.ty.is_text().then_some(new)
                };
                texts::take_over(&mut tx.pages, &mut tx.roots.texts, (key, value), new)?;
                Ok(())
            },
        )?;
        self.lose_catalog("texts", lost);
        Ok(())
    }

    /// The words of a text column, with `null` for each text that is lost.
    fn text_words(&mut self, column: texts::Column, null: u64, words: &[u64]) -> Result<Vec<u64>> {
        let (pages, tree) = (&self.tx.pages, &self.tx.roots.texts);
        let mut lost = 0;
        let mut kept = Vec::with_capacity(words.len());
        for &word in words {
            let there = word == null || {
                let text = self.text_cache.text(pages, tree, column, word);
                match text {
                    Err(error) if error.kind() == ErrorKind::Damaged => false,
                    other => other.map(|_| true)?,
                }
            };
            lost += u64::from(!there);
            kept.push(if there { word } else { null });
        }
        if lost > 0 {
            self.lose_file(format!(
                "{lost} texts of column {} of {} (in the new file)",
                column.1, column.0
            ));
        }
        Ok(kept)
    }

    fn read_infos(&mut self) -> Result<HashMap<SeriesId, SeriesInfo>> {
        let tree = self.roots.as_ref().map(|roots| roots.series);
        let mut infos = HashMap::new();
        let lost = values_of(
            self.raw,
            &self.found,
            owner::SERIES,
            tree.as_ref(),
            &mut |key, value, _| {
                if let Ok(key) = <[u8; 8]>::try_from(key) {
                    let id = SeriesId(u64::from_be_bytes(key));
                    if let Ok(info) = SeriesInfo::decode_exact(id, value) {
                        infos.insert(id, info);
                    }
                }
                Ok(())
            },
        )?;
        self.infos_are_whole = self.roots.is_some() && lost.is_empty();
        self.lose_catalog("catalog of series", lost);
        Ok(infos)
    }

    fn records(&mut self) -> Result<HashMap<SeriesId, (SeriesTree, bool)>> {
        let tree = self.roots.as_ref().map(|roots| roots.records);
        let mut records = HashMap::new();
        let lost = values_of(
            self.raw,
            &self.found,
            owner::RECORDS,
            tree.as_ref(),
            &mut |key, value, by_header| {
                if let Ok(key) = <[u8; 8]>::try_from(key) {
                    let id = SeriesId(u64::from_be_bytes(key));
                    if let Ok(tree) = SeriesTree::decode(id, value) {
                        records.insert(id, (tree, by_header));
                    }
                }
                Ok(())
            },
        )?;
        self.lose_catalog("series records", lost);
        Ok(records)
    }

    /// A schema for a series whose own schema is lost: types from the series' record or leaves, and generated column
    /// names.
    fn schema_of(&self, id: SeriesId, record: Option<&(SeriesTree, bool)>) -> Schema {
        let types: Vec<WordType> = match record {
            Some((tree, _)) => tree.types().to_vec(),
            None => self.types_of(id),
        };
        let point = Schema::point();
        if types == point.word_types() {
            return point;
        }
        let columns = types.into_iter().enumerate();
        let columns = columns.map(|(c, ty)| column_of(format!("column-{c}"), ty));
        Schema {
            unit: Unit::default(),
            columns: columns.collect(),
        }
    }

    /// The types of the leaf with the most columns: leaves with fewer columns were written before columns were added.
    fn types_of(&self, id: SeriesId) -> Vec<WordType> {
        let leaves = self.found.series_leaves.get(&id).into_iter().flatten();
        let types = leaves.filter_map(|leaf| tidalite_series::leaf_types(self.raw, leaf).ok());
        types.max_by_key(Vec::len).unwrap_or_default()
    }

    /// Creates the series in the new file; if a series there has the same name, the id is appended to the name.
    pub(super) fn create(
        &mut self,
        id: SeriesId,
        info: Option<&SeriesInfo>,
        schema: &Schema,
    ) -> Result<Option<(SeriesId, usize)>> {
        let lost_name = || SeriesName::new(format!("series-{}", id.0), []);
        let made: Result<SeriesId> = match info {
            Some(SeriesInfo {
                name: Some(name), ..
            }) => {
                let mut name = name.clone();
                for attempt in 1.. {
                    let taken = crate::catalog::entries::find(
                        &self.tx.roots,
                        &self.tx.pages,
                        crate::catalog::entries::SeriesKey::Name(&name),
                    )?;
                    if taken.is_none() || attempt > NAMES_TRIED {
                        break;
                    }
                    name = SeriesName::new(
                        format!("{}-{}-{attempt}", name.metric(), id.0),
                        name.tags().to_vec(),
                    )?;
                }
                self.tx
                    .series_with(&name.to_string(), schema)
                    .map(|made| made.id())
            }
            Some(SeriesInfo {
                guid: Some(guid), ..
            }) => self.tx.series_of_guid(*guid, schema).map(|made| made.id()),
            _ => lost_name().and_then(|name| {
                let made = self.tx.series_with(&name.to_string(), schema)?;
                Ok(made.id())
            }),
        };
        match made {
            Ok(new) => {
                let label = self.tx.series_by_id(new)?.info().label();
                self.running.at(&format!("series {label}"));
                self.report.series.push(Saved {
                    name: label,
                    ..Saved::default()
                });
                Ok(Some((new, self.report.series.len() - 1)))
            }
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::Schema | ErrorKind::InvalidName | ErrorKind::Limit
                ) =>
            {
                self.lose_file(format!("{id}: {error}"));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn leaves(&mut self, id: SeriesId, schema: &Schema, tree: Option<&SeriesTree>) -> Result<()> {
        let columns = schema.columns.len();
        let mut lost: Vec<(i64, i64)> = Vec::new();
        let mut reached = BTreeSet::new();
        if let Some(tree) = tree {
            let found = tree.reachable_leaves(self.raw)?;
            for (link, corrupt) in found.lost {
                self.lose_rows(id, schema, (link.begin, link.end), corrupt);
                lost.push((link.begin, link.end));
            }
            for link in found.leaves {
                reached.insert(link.ptr.addr);
                match tidalite_series::leaf_rows(self.raw, &link.ptr) {
                    Ok((rows, gone)) => {
                        self.put(id, rows.view(), false)?;
                        for span in gone {
                            let problem = "a vector of a leaf is damaged";
                            self.lose_rows(id, schema, span, problem);
                            lost.push(span);
                        }
                    }
                    Err(tidalite_pager::Error::Corrupt(corrupt)) => {
                        self.lose_rows(id, schema, (link.begin, link.end), corrupt);
                        lost.push((link.begin, link.end));
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            if lost.is_empty() {
                return Ok(());
            }
        } else {
            lost.push((i64::MIN, i64::MAX));
        }
        let mut orphans: Vec<OrphanLeaf> = self
            .found
            .series_leaves
            .get(&id)
            .cloned()
            .unwrap_or_default();
        orphans.retain(|leaf| leaf.columns <= columns && !reached.contains(&leaf.ptr.addr));
        orphans.sort_by_key(|leaf| std::cmp::Reverse(leaf.ptr.birth));
        let mut covered = Covered::default();
        for leaf in orphans {
            for span in self.orphan_leaf(id, &leaf.ptr, &lost, &mut covered)? {
                self.lose_rows(id, schema, span, "a vector of a leaf is damaged");
            }
            if self.roots.is_none() {
                let spans = self.spans.entry(id).or_default();
                spans.push((leaf.begin, leaf.end, leaf.ptr.birth.0));
            }
        }
        Ok(())
    }

    /// Saves the rows of a leaf found by its header, as far as rows are lost there and no newer leaf covers them.
    /// Returns the spans of the leaf's own damage.
    fn orphan_leaf(
        &mut self,
        id: SeriesId,
        ptr: &Ptr,
        lost: &[(i64, i64)],
        covered: &mut Covered,
    ) -> Result<Vec<(i64, i64)>> {
        let (rows, gone) = match tidalite_series::leaf_rows(self.raw, ptr) {
            Ok(found) => found,
            Err(tidalite_pager::Error::Corrupt(_)) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let view = rows.view();
        for range in covered.rest(view) {
            let rest = view.slice(range);
            for &(from, to) in lost {
                self.put(id, rest.between(from, to), true)?;
            }
        }
        // An intact leaf covers its whole span: older leaves add nothing there.
        if gone.is_empty()
            && let (Some(&begin), Some(&end)) = (view.times().first(), view.times().last())
        {
            covered.add(begin, end);
        }
        Ok(gone)
    }

    pub(super) fn put(&mut self, id: SeriesId, rows: RowsRef<'_>, by_header: bool) -> Result<()> {
        let Some(&(new, place)) = self.ids.get(&id) else {
            return Ok(());
        };
        let columns = self.columns.get(&id).copied().unwrap_or_default();
        if rows.is_empty() || columns < rows.column_count() {
            return Ok(());
        }
        let schema = self.tx.series_by_id(new)?.info().schema.clone();
        let own = schema.columns.iter().enumerate().take(rows.column_count());
        let mut told: Vec<Vec<u64>> = Vec::new();
        for (c, column) in own {
            told.push(if column.ty.is_text() {
                // Lost texts become null, or empty if the column has no nulls.
                self.text_words((new, c), column.words().fill(), rows.column(c))?
            } else {
                Vec::new()
            });
        }
        let mut series = self.tx.series_by_id(new)?;
        // The leaf lacks columns that were added after its rows were written; fill them.
        let types = series.info().schema.word_types();
        let added = types.iter().skip(rows.column_count());
        let added: Vec<Vec<u64>> = added.map(|ty| vec![ty.fill(); rows.len()]).collect();
        let words = told.iter().enumerate().map(|(c, told)| match &told[..] {
            [] => rows.column(c),
            told => told,
        });
        let mut words: Vec<&[u64]> = words.collect();
        words.extend(added.iter().map(Vec::as_slice));
        if series.info().merge == MergePolicy::KeepAll || !rows.is_sorted_unique() {
            // If several rows have the same time, those saved later replace the earlier ones.
            series.set_merge(MergePolicy::KeepAll)?;
            series.replace_times(RowsRef::new(rows.times(), &words))?;
        } else {
            series.append_rows(rows.times(), &words)?;
        }
        let saved = &mut self.report.series[place];
        saved.rows += rows.len() as u64;
        if by_header {
            saved.rows_by_headers += rows.len() as u64;
        }
        let bytes = (rows.len() * (rows.column_count() + 1) * 8) as u64;
        Ok(self.running.moved(bytes)?)
    }

    pub(super) fn lose_rows(
        &mut self,
        id: SeriesId,
        schema: &Schema,
        span: (i64, i64),
        problem: impl ToString,
    ) {
        let name = self
            .ids
            .get(&id)
            .map(|&(_, place)| self.report.series[place].name.clone());
        let place = Place::Series {
            id,
            name: name.unwrap_or_else(|| id.to_string()),
            column: None,
            span: Some(span),
            unit: schema.unit,
        };
        self.report.lose(Finding::new(place, problem));
    }
}

/// Makes a column for words if only their type is known.
fn column_of(name: String, ty: WordType) -> Column {
    let own = match ty.base() {
        WordType::I64 => ColumnType::I64,
        WordType::U64 => ColumnType::U64,
        WordType::F32 => ColumnType::F32,
        _ => ColumnType::F64,
    };
    Column {
        name,
        ty: own,
        nullable: ty.null().is_some(),
    }
}

/// Makes a schema for rows if only the number of columns is known.
pub(super) fn made_up_schema(columns: usize) -> Schema {
    if columns == Schema::point().columns.len() {
        return Schema::point();
    }
    let names: Vec<String> = (0..columns).map(|c| format!("column-{c}")).collect();
    let columns = names.iter().map(|name| (name.as_str(), ColumnType::F64));
    Schema::new(Unit::default(), columns)
}
