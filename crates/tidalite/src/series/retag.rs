//! Changing the tags of many series at once.

use crate::catalog::entries::{self, SeriesKey};
use crate::txn::write::WriteTxn;
use crate::types::error::cause::Cause;
use crate::types::error::{Error, Result};
use crate::types::name::SeriesName;
use crate::types::pattern::SeriesPattern;
use std::collections::BTreeSet;
use tidalite_base::SeriesId;

/// The tags of a name as pairs of key and value.
type Tags = Vec<(String, String)>;

impl WriteTxn {
    /// Gives all series that a pattern selects this value of a tag, in place of the value that they have; with `None`
    /// the tag is dropped. Returns the number of series whose name changes. Series without a name are not changed.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tidalite::Options;
    /// # use tidalite::storage::MemoryStorage;
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// tx.series(r#"load{host="a"}"#)?;
    /// tx.series(r#"load{host="b",rack="7"}"#)?;
    /// assert_eq!(tx.set_tag("load", "site", Some("north"))?, 2);
    /// assert_eq!(tx.rename_tag("", "rack", "shelf")?, 1);
    /// assert_eq!(tx.set_tag("load", "host", None)?, 2);
    /// tx.commit()?;
    /// let snap = db.begin_read()?;
    /// assert!(snap.series(r#"load{shelf="7",site="north"}"#)?.is_some());
    /// # Ok::<(), tidalite::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidName` for an invalid pattern, tag or name, and if two series would have the same name: nothing has
    /// changed then. An error of the file while series are renamed breaks the transaction.
    pub fn set_tag(&mut self, pattern: &str, key: &str, value: Option<&str>) -> Result<u64> {
        self.retag(pattern, &|name| {
            let others = name.tags().iter().filter(|(own, _)| own != key).cloned();
            let own = value.map(|value| (key.to_owned(), value.to_owned()));
            Ok(Some(others.chain(own).collect()))
        })
    }

    /// Gives the tag `from` of all series that a pattern selects the key `to`. Returns the number of series whose name
    /// changes; series without the tag stay as they are.
    ///
    /// # Errors
    /// As for [`set_tag`](Self::set_tag), also if a series has both tags.
    pub fn rename_tag(&mut self, pattern: &str, from: &str, to: &str) -> Result<u64> {
        self.retag(pattern, &|name| {
            if name.tag(from).is_none() || from == to {
                return Ok(None);
            }
            if name.tag(to).is_some() {
                return Err(problem(name, format!("it has the tag {to} already")));
            }
            let renamed = name.tags().iter().map(|(own, value)| {
                let key = if own == from { to } else { own };
                (key.to_owned(), value.clone())
            });
            Ok(Some(renamed.collect()))
        })
    }

    /// Renames the series that a pattern selects to the tags that `tags` gives; `None` keeps a name. All new names are
    /// checked before the first series is renamed.
    fn retag(
        &mut self,
        pattern: &str,
        tags: &dyn Fn(&SeriesName) -> Result<Option<Tags>>,
    ) -> Result<u64> {
        let pattern = SeriesPattern::parse(pattern)?;
        self.changing(Self::store_tags)?;
        let mut renamed: Vec<(SeriesId, SeriesName)> = Vec::new();
        let mut taken = BTreeSet::new();
        let read = |id| entries::info(&self.roots, &self.pages, id);
        for info in entries::list(&self.roots, &self.pages, &pattern, read)? {
            let Some(old) = &info.name else { continue };
            let Some(tags) = tags(old)? else { continue };
            let name = SeriesName::new(old.metric(), tags)?;
            if name == *old {
                continue;
            }
            self.check_name_fits(&name)?;
            self.expect_no_container(Some(old))?;
            self.expect_no_container(Some(&name))?;
            let other = entries::find(&self.roots, &self.pages, SeriesKey::Name(&name))?;
            if other.is_some() || !taken.insert(name.to_string()) {
                return Err(problem(
                    &name,
                    format!("{old} would get it, but another series has it or would get it too"),
                ));
            }
            renamed.push((info.id, name));
        }
        self.changing(|txn| {
            for (id, name) in &renamed {
                let (roots, pages, tags) = (&mut txn.roots, &mut txn.pages, &mut txn.tags);
                let info = entries::rename(roots, pages, tags, *id, name)?;
                txn.open.renamed(info);
            }
            Ok(renamed.len() as u64)
        })
    }
}

fn problem(name: &SeriesName, problem: String) -> Error {
    Error::from(Cause::Name {
        name: name.to_string(),
        problem,
    })
}
