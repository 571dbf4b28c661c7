//! Prints records of hash tables as lines of text or as JSON.
//!
//! ```text
//! pump-7  hall 3              key and value, separated by a tab
//! 12  pump-7  hall 3          with the number of the record
//! 13  pump-7  (removed)       the record of a removal
//! ```

use super::place::Forms;
use crate::commands::key_forms::{json_of, text_of};
use crate::exit::Outcome;
use crate::terminal::Terminal;
use tidalite::hash_table::HashRecord;

/// The parts of a record that a line of text contains. JSON contains all parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parts {
    Value,
    KeyAndValue,
    NumberAndValue,
    All,
}

/// Prints records.
pub(super) struct Lines {
    pub forms: Forms,
    pub json: bool,
    pub parts: Parts,
}

impl Lines {
    /// Prints one record.
    pub(super) fn record(
        &self,
        record: &HashRecord<Vec<u8>, Vec<u8>>,
        terminal: &mut Terminal<'_>,
    ) -> Outcome {
        let Forms { key, value } = self.forms;
        let key_text = text_of(key, &record.key)?;
        let value_text = record.value.as_deref().map(|bytes| text_of(value, bytes));
        let value_text = value_text.transpose()?;
        let number = record.number;
        if self.json {
            let key = json_of(key, key_text);
            let line = match value_text.map(|text| json_of(value, text)) {
                Some(value) => serde_json::json!({"record": number, "key": key, "value": value}),
                None => serde_json::json!({"record": number, "key": key, "removed": true}),
            };
            return Ok(writeln!(terminal.out, "{line}")?);
        }
        let value = value_text.unwrap_or_else(|| "(removed)".to_owned());
        match self.parts {
            Parts::Value => writeln!(terminal.out, "{value}")?,
            Parts::KeyAndValue => writeln!(terminal.out, "{key_text}\t{value}")?,
            Parts::NumberAndValue => writeln!(terminal.out, "{number}\t{value}")?,
            Parts::All => writeln!(terminal.out, "{number}\t{key_text}\t{value}")?,
        }
        Ok(())
    }
}
