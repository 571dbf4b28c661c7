//! Filters that the user has typed.

use crate::exit::{Failure, Outcome};
use tidalite::topics::Filter;

/// Parses a filter.
pub(super) fn filter(text: &str) -> Outcome<Filter> {
    let filter = Filter::parse(text).map_err(|error| {
        Failure::usage(error)
            .hint("write levels with / between them; + is any one level, # at the end all others")
    })?;
    match filter.is_shared() {
        true => Err(Failure::usage(format!(
            "{text} is a shared subscription, which gets no retained messages"
        ))
        .hint("write the filter behind the group alone")),
        false => Ok(filter),
    }
}

/// Parses filters.
pub(super) fn filters(texts: &[String]) -> Outcome<Vec<Filter>> {
    texts.iter().map(|text| filter(text)).collect()
}
