//! The index of series by metric and tags: a set of series ids for each metric, each tag key, and each tag with its
//! value (`tidalite_index`), in the tree `Roots::tags`.
//!
//! ```text
//! keys     keys of the sets
//! update   series created, renamed and removed
//! select   the series that a pattern selects
//! listing  metrics, tag keys and values with the numbers of their series
//! ```
//!
//! Invariant: the sets hold exactly the ids of the series in the catalog, each in the sets of its name. Within a write
//! transaction this holds after `update::store`; until then changes wait in `WriteTxn::tags`.

pub(crate) mod keys;
pub(crate) mod listing;
pub(crate) mod select;
pub(crate) mod update;

#[cfg(test)]
mod tests {
    use crate::storage::MemoryStorage;
    use crate::{Database, Options, SeriesName, SeriesPattern, Steps};
    use std::sync::Arc;
    use tidalite_base::SeriesId;

    fn empty(page_size: usize) -> Database {
        let options = Options::new().page_size(page_size);
        options
            .open_storage(Arc::new(MemoryStorage::new()))
            .unwrap()
    }

    /// Ids that lie in several containers of a set, also of different high words.
    #[test]
    fn sets_of_several_containers_answer_patterns() {
        let db = empty(4096);
        let mut names = Vec::new();
        for first in [0, 65_000, 1 << 33] {
            let mut txn = db.begin_write().unwrap();
            txn.roots.next_series = first;
            for number in 0..1500 {
                let name = format!(
                    r#"m{}{{host="h{number}",rack="r{}",from="{first}"}}"#,
                    number % 2,
                    number % 7
                );
                let id = txn.series(&name).unwrap().id();
                assert_eq!(id, SeriesId(first + number));
                names.push((id, SeriesName::parse(&name).unwrap()));
            }
            txn.commit().unwrap();
        }
        let snap = db.begin_read().unwrap();
        for text in [
            "m1",
            r#"{rack="r3"}"#,
            r#"m0{rack="r3"}"#,
            r#"{host="h1"*}"#,
            r#"m0{host="h1"*,rack!="r2"}"#,
            r#"{rack in ("r1","r2"),from!="0"}"#,
            r#"m1{host=~"h.*7",rack=~"r[0-4]"}"#,
            r#"{from!="65000",none=""}"#,
        ] {
            let pattern = SeriesPattern::parse(text).unwrap();
            let selected = names.iter().filter(|(_, name)| pattern.matches(name));
            let found: Vec<_> = snap
                .list(text)
                .unwrap()
                .iter()
                .map(|info| info.id)
                .collect();
            assert_eq!(
                found,
                selected.map(|(id, _)| *id).collect::<Vec<_>>(),
                "{text}"
            );
            assert!(!found.is_empty(), "{text}");
        }
        assert_eq!(snap.tag_values("rack", "r3", 9).unwrap()[0].series, 3 * 214);
        assert!(db.check().unwrap().is_clean());
    }

    /// A zero takes two bytes in a key of the index, so that the key does not fit a small page.
    #[test]
    fn names_of_zeros_have_long_keys() {
        let db = empty(512);
        let value = "\0".repeat(150);
        let name = SeriesName::new("m", [("k".to_owned(), value.clone())]).unwrap();
        let mut txn = db.begin_write().unwrap();
        txn.series(&name.to_string()).unwrap();
        txn.series("m{k=\"\0\"}").unwrap();
        txn.commit().unwrap();
        let snap = db.begin_read().unwrap();
        assert_eq!(snap.list(&name.to_string()).unwrap().len(), 1);
        let values = snap.tag_values("k", "\0\0", 9).unwrap();
        assert_eq!(values.len(), 1);
        assert_eq!(values[0].text, value);
        assert!(db.check().unwrap().is_clean());
    }

    #[test]
    fn a_transaction_that_only_renames_has_savepoints() {
        let db = empty(512);
        let mut txn = db.begin_write().unwrap();
        let id = txn.series(r#"m{k="a"}"#).unwrap().id();
        txn.commit().unwrap();
        let mut txn = db.begin_write().unwrap();
        txn.rename_series(id, r#"m{k="b"}"#).unwrap();
        let savepoint = txn.savepoint().unwrap();
        txn.rename_series(id, r#"m{k="c"}"#).unwrap();
        txn.rollback_to(&savepoint).unwrap();
        txn.commit().unwrap();
        let snap = db.begin_read().unwrap();
        let values = snap.tag_values("k", "", 9).unwrap();
        assert_eq!(values.len(), 1);
        assert_eq!(values[0].text, "b");
        assert!(db.check().unwrap().is_clean());
    }

    /// More changes than a transaction collects, before and after a savepoint that is undone.
    #[test]
    fn changes_stored_after_a_savepoint_are_undone() {
        let db = empty(4096);
        let mut txn = db.begin_write().unwrap();
        let create = |txn: &mut crate::WriteTxn, from: u64, to: u64| {
            for number in from..to {
                txn.series(&format!(r#"m{{a="{number}",b="{}"}}"#, number % 9))
                    .unwrap();
            }
        };
        create(&mut txn, 0, 100);
        let savepoint = txn.savepoint().unwrap();
        create(&mut txn, 100, 15_000);
        assert!(txn.tags.len() < 50_000, "changes are stored");
        txn.rollback_to(&savepoint).unwrap();
        create(&mut txn, 100, 200);
        txn.commit().unwrap();
        let snap = db.begin_read().unwrap();
        assert_eq!(snap.cardinality().unwrap().tags[0].values, 200);
        assert!(db.check().unwrap().is_clean());
    }

    /// A damaged id must not end the program.
    #[test]
    fn an_id_that_no_set_can_have_is_damage() {
        let db = empty(4096);
        let mut txn = db.begin_write().unwrap();
        let id = txn.series("m").unwrap().id();
        super::update::add(&mut txn.tags, SeriesId(1 << 50), None);
        let error = txn.savepoint().unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Damaged, "{error}");
        drop(txn);
        assert_eq!(id, SeriesId(0));
    }

    #[test]
    fn newest_rows_of_many_series_are_read_by_several_threads() {
        let db = Options::new()
            .scan_threads(3)
            .open_storage(Arc::new(MemoryStorage::new()))
            .unwrap();
        for time in 0..3 {
            let mut txn = db.begin_write().unwrap();
            for number in 0..700 {
                let mut series = txn.series(&format!(r#"m{{a="{number}"}}"#)).unwrap();
                if number % 5 >= time {
                    series.insert(Steps(time), (number + time) as f64).unwrap();
                }
            }
            txn.commit().unwrap();
        }
        let snap = db.begin_read().unwrap();
        let chosen = snap.select("m").unwrap();
        let before = chosen.latest().unwrap();
        let expected: Vec<_> = chosen
            .series()
            .unwrap()
            .iter()
            .map(|own| own.latest().unwrap())
            .collect();
        assert_eq!((before.len(), &before), (700, &expected));
        assert_eq!(
            snap.select("m").unwrap().latest().unwrap(),
            expected,
            "series that are open"
        );
    }
}
