//! Listing and counting the messages that match a filter.

use crate::topics::filter::Filter;
use crate::topics::found::SearchOptions;
use crate::topics::key::BEHIND;
use crate::topics::parts::Part;
use crate::topics::read::{FoundMessage, TopicsReader};
use crate::topics::search::TopicSearch;
use crate::topics::steps::first_target;
use tidalite_pager::{PageRead, Result};

/// A page of a list of messages.
#[derive(Clone, Debug)]
pub struct TopicList {
    /// The messages.
    pub messages: Vec<FoundMessage<'static>>,
    /// Position at which the next page begins; `None` at the end.
    pub next: Option<Vec<u8>>,
}

/// A count of messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicCount {
    /// Number of messages.
    pub messages: u64,
    /// Position at which the count continues; `None` at the end.
    pub next: Option<Vec<u8>>,
}

/// A search for one filter, from its beginning or from a token. A shared subscription finds nothing.
pub(super) fn search(filter: &Filter, token: Option<&[u8]>, rows_max: u64) -> Result<TopicSearch> {
    let options = SearchOptions {
        rows_max,
        ..SearchOptions::default()
    };
    let filters = vec![filter.clone()];
    match token {
        Some(token) => TopicSearch::resume(filters, options, token),
        None => Ok(TopicSearch::new(filters, options)),
    }
}

impl<R: PageRead> TopicsReader<R> {
    /// Lists at most `limit` messages whose topics match a filter and that have not expired at the time `now`, from the
    /// position `token` of an earlier page. A page may have fewer messages even if more exist.
    ///
    /// # Errors
    /// `InvalidInput` for a token of another filter; a damaged or unreadable page.
    ///
    /// # Cost
    /// As much as a page of a [`TopicSearch`].
    pub fn list(
        &self,
        filter: &Filter,
        now: i64,
        token: Option<&[u8]>,
        limit: u64,
    ) -> Result<TopicList> {
        let mut search = search(filter, token, SearchOptions::default().rows_max)?;
        let mut messages = Vec::new();
        search.run(self, Some(now), limit, &mut |key, _, _, value| {
            messages.push(FoundMessage::owned(key, value)?);
            Ok(())
        })?;
        let next = (!search.is_done()).then(|| search.token());
        Ok(TopicList { messages, next })
    }

    /// Counts the messages whose topics match a filter and that have not expired at the time `now`, from the position
    /// `token` of an earlier count. Reads at most `rows_max` rows.
    ///
    /// # Errors
    /// As for `list`.
    ///
    /// # Cost
    /// Two descents if no message of the table can expire and the filter is `#` or a topic followed by `/#`.
    pub fn count(
        &self,
        filter: &Filter,
        now: i64,
        token: Option<&[u8]>,
        rows_max: u64,
    ) -> Result<TopicCount> {
        let may_count = token.is_none() && !filter.is_shared();
        if may_count
            && self.part(Part::Expiry)?.is_empty()
            && let Some(messages) = self.count_range(filter)?
        {
            let next = None;
            return Ok(TopicCount { messages, next });
        }
        let mut search = search(filter, token, rows_max)?;
        let counted = search.run(self, Some(now), u64::MAX, &mut |_, _, _, _| Ok(()))?;
        Ok(TopicCount {
            messages: counted.delivered,
            next: (!search.is_done()).then(|| search.token()),
        })
    }

    /// Number of messages that match a filter whose matches form one range; `None` for any other filter.
    fn count_range(&self, filter: &Filter) -> Result<Option<u64>> {
        let messages = self.part(Part::Messages)?;
        let rank = |key: &[u8]| messages.rank(&self.r, key);
        let Some(end) = filter.range_end() else {
            return Ok(None);
        };
        let Some(end) = end else {
            if !filter.hides_dollar_topics() {
                return Ok(Some(messages.len()));
            }
            let hidden = rank(&[b'$' + 1])?.saturating_sub(rank(b"$")?);
            return Ok(Some(messages.len().saturating_sub(hidden)));
        };
        let topic = first_target(filter);
        let mut below = topic.clone();
        below.push(0);
        debug_assert!(end.last() == Some(&BEHIND), "the end of a range");
        // The topic itself and its descendants are counted separately.
        let own = u64::from(!topic.is_empty() && messages.contains(&self.r, &topic)?);
        let descendants = rank(&end)?.saturating_sub(rank(&below)?);
        Ok(Some(own.saturating_add(descendants)))
    }
}
