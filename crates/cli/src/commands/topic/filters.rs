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

/// Parses filters; with `include_dollar` their wildcards also match topics that begin with `$`.
pub(super) fn filters(texts: &[String], include_dollar: bool) -> Outcome<Vec<Filter>> {
    let texts = texts.iter();
    let parsed = texts.map(|text| match include_dollar {
        true => filter(text).map(Filter::with_dollar_topics),
        false => filter(text),
    });
    parsed.collect()
}
