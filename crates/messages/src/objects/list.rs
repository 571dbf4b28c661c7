//! Lists objects: by prefix, with a delimiter, in pages, with filters.

use crate::objects::keys::name_of;
use crate::objects::manifest::ObjectInfo;
use crate::objects::parts::{Part, part, row_bytes};
use crate::objects::read::BucketReader;
use std::ops::Range;
use tidalite_base::after_prefix;
use tidalite_pager::{PageRead, Result};
use tidalite_time::Timestamp;

/// Maximum number of objects and prefixes on one page of a list.
pub const OBJECTS_LISTED_MAX: usize = 10_000;

/// Maximum number of manifests that are read for one page of a list. If few objects match the filter, a page may have
/// fewer entries than requested, or none, and still have a token for the next page.
pub const OBJECTS_EXAMINED_MAX: usize = 100_000;

/// The position at which a list continues. The bytes can be sent to a client and back; any bytes are a valid token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListToken(pub Vec<u8>);

/// Properties that objects must have to be listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectFilter {
    /// The content type. If it ends in `*`, only its beginning is compared.
    pub content_type: Option<String>,
    /// Range of sizes in bytes.
    pub size: Option<Range<u64>>,
    /// Range of times at which the contents were put.
    pub modified: Option<Range<Timestamp>>,
    /// Whether the object is protected.
    pub protected: Option<bool>,
}

impl ObjectFilter {
    /// Whether an object has the properties.
    #[must_use]
    pub fn matches(&self, info: &ObjectInfo) -> bool {
        let found = &info.attributes.content_type;
        let type_matches = |wanted: &String| match wanted.strip_suffix('*') {
            Some(beginning) => found.starts_with(beginning),
            None => found == wanted,
        };
        self.content_type.as_ref().is_none_or(type_matches)
            && self
                .size
                .as_ref()
                .is_none_or(|sizes| sizes.contains(&info.size))
            && self
                .modified
                .as_ref()
                .is_none_or(|times| times.contains(&info.modified))
            && self
                .protected
                .is_none_or(|wanted| wanted == info.attributes.protected)
    }
}

/// A query that lists objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListQuery {
    /// Beginning of the names.
    pub prefix: String,
    /// Groups names. If a name contains this text after `prefix`, its beginning up to the end of that text is listed
    /// instead of the object; each beginning is listed once. Has no effect if it is empty.
    pub delimiter: Option<String>,
    /// Properties that the objects must have. A beginning is listed if at least one object with this beginning has the
    /// properties.
    pub filter: ObjectFilter,
    /// Position at which to continue; `None` for the first page.
    pub after: Option<ListToken>,
    /// Maximum number of objects and beginnings, from 1 to [`OBJECTS_LISTED_MAX`]; numbers outside this range are
    /// clamped to it.
    pub limit: usize,
}

impl Default for ListQuery {
    fn default() -> Self {
        Self {
            prefix: String::new(),
            delimiter: None,
            filter: ObjectFilter::default(),
            after: None,
            limit: OBJECTS_LISTED_MAX,
        }
    }
}

/// One page of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListPage {
    /// The objects, in order of their names.
    pub objects: Vec<ObjectInfo>,
    /// The beginnings of names up to the delimiter, in order.
    pub prefixes: Vec<String>,
    /// Position of the next page; `None` if there are no more objects.
    pub next: Option<ListToken>,
}

impl<R: PageRead> BucketReader<R> {
    /// Lists objects in order of their names, compared byte by byte. Objects that have expired at `now` are omitted.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    ///
    /// # Cost
    /// One descent, and another one for each beginning that is listed, however many objects it stands for. Reads the
    /// manifests of the other names with the prefix, at most [`OBJECTS_EXAMINED_MAX`].
    pub fn list(&self, query: &ListQuery, now: i64) -> Result<ListPage> {
        let mut page = ListPage::default();
        let prefix = query.prefix.as_bytes();
        let after = query.after.as_ref().map_or(&[][..], |token| &token.0);
        let delimiter = query.delimiter.as_deref().filter(|text| !text.is_empty());
        let limit = query.limit.clamp(1, OBJECTS_LISTED_MAX);
        let table = part(&self.root, &self.r, Part::Objects)?;
        let mut rows = table.cursor(&self.r)?;
        let mut there = rows.seek_ge(prefix.max(after))?;
        let mut examined = 0;
        while there && rows.key().starts_with(prefix) {
            if page.objects.len() + page.prefixes.len() >= limit || examined >= OBJECTS_EXAMINED_MAX
            {
                page.next = Some(ListToken(rows.key().to_vec()));
                break;
            }
            examined += 1;
            let info = ObjectInfo::decode(rows.key(), &row_bytes(&rows.value()?)?)?;
            if info.has_expired(Timestamp(now)) || !query.filter.matches(&info) {
                there = rows.next()?;
                continue;
            }
            let name = name_of(rows.key())?;
            let behind = name.get(query.prefix.len()..).unwrap_or_default();
            let grouped = delimiter.and_then(|text| Some(behind.find(text)? + text.len()));
            let Some(end) = grouped else {
                page.objects.push(info);
                there = rows.next()?;
                continue;
            };
            let group = name[..query.prefix.len() + end].to_owned();
            there = match after_prefix(group.as_bytes()) {
                Some(next) => rows.seek_ge(&next)?,
                None => false,
            };
            page.prefixes.push(group);
        }
        Ok(page)
    }
}
