//! The prompt, and the decision whether the input is complete.

use crate::splitter::is_complete;
use reedline::{
    Prompt, PromptEditMode, PromptHistorySearch, PromptHistorySearchStatus, ValidationResult,
    Validator,
};
use std::borrow::Cow;

/// The prompt.
pub(super) struct Asks {
    /// Whether a transaction is open; the prompt then shows a star.
    pub is_in_transaction: bool,
}

impl Prompt for Asks {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed(match self.is_in_transaction {
            true => "tidalite*",
            false => "tidalite",
        })
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _mode: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed("> ")
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("     ...> ")
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        let failing = match search.status {
            PromptHistorySearchStatus::Passing => "",
            PromptHistorySearchStatus::Failing => "not ",
        };
        Cow::Owned(format!("({failing}found: {}) ", search.term))
    }
}

/// Requests further lines until the last statement has its semicolon.
pub(super) struct UntilSemicolon;

impl Validator for UntilSemicolon {
    fn validate(&self, line: &str) -> ValidationResult {
        match is_complete(line) {
            true => ValidationResult::Complete,
            false => ValidationResult::Incomplete,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_shows_an_open_transaction() {
        let left = |is_in_transaction| Asks { is_in_transaction }.render_prompt_left().into_owned();
        assert_eq!([false, true].map(left), ["tidalite", "tidalite*"]);
    }
}
