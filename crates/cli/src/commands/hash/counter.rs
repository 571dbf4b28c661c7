//! Adds a number to the value of a counter.

use super::place::Forms;
use crate::args::KvForm;
use crate::commands::key_forms::{bytes_of, text_of};
use crate::exit::{Failure, Outcome};

/// The sum in stored form and in printed form. A key that does not exist counts as 0. Values that are text must be
/// decimal digits in the range of i64.
pub(super) fn sum(
    forms: Forms,
    key: &str,
    value: Option<&[u8]>,
    (by, subtract): (i128, bool),
) -> Outcome<(Vec<u8>, String)> {
    let form = forms.value;
    let text = match value {
        Some(value) => text_of(form, value)?,
        None => "0".to_owned(),
    };
    let Some(value) = number(form, &text) else {
        return Err(Failure::bad_input(format!(
            "the value of {key} is {text}, which is not a whole number"
        ))
        .hint("set it to a number first; --values i64 and the like read numbers of one length"));
    };
    let sum = match subtract {
        true => value.checked_sub(by),
        false => value.checked_add(by),
    };
    let sum = sum.map(|sum| sum.to_string());
    let sum = sum.filter(|sum| number(form, sum).is_some());
    let stored = sum.and_then(|sum| Some((bytes_of(form, &sum).ok()?, sum)));
    stored.ok_or_else(|| {
        let sign = if subtract { "-" } else { "+" };
        Failure::bad_input(format!(
            "{key} is {text}, and {text} {sign} {by} is out of the range of its type; nothing was changed"
        ))
        .hint("u32, u64, i32 and i64 have their usual ranges; text has the range of i64")
    })
}

fn number(form: KvForm, text: &str) -> Option<i128> {
    match form {
        KvForm::Hex | KvForm::Guid | KvForm::String => None,
        KvForm::Text => text.parse::<i64>().ok().map(i128::from),
        KvForm::U32 | KvForm::U64 | KvForm::I32 | KvForm::I64 => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_stay_within_the_type() {
        let count = |value, text: Option<&str>, by, subtract| {
            let forms = Forms {
                key: KvForm::Text,
                value,
            };
            let stored = text.map(|text| bytes_of(value, text).unwrap());
            let sum = sum(forms, "k", stored.as_deref(), (by, subtract));
            sum.map(|(bytes, text)| {
                assert_eq!(text_of(value, &bytes).unwrap(), text);
                text
            })
            .map_err(|failure| failure.message)
        };
        let counted = |text: &str| Ok(text.to_owned());
        assert_eq!(count(KvForm::I64, None, 5, false), counted("5"));
        assert_eq!(count(KvForm::U64, Some("7"), 7, true), counted("0"));
        assert_eq!(count(KvForm::Text, Some("-3"), 1, true), counted("-4"));
        for (form, value, by, subtract) in [
            (KvForm::U32, "7", 8, true),
            (KvForm::U32, "4294967295", 1, false),
            (KvForm::Text, "9223372036854775807", 1, false),
            (KvForm::I64, "1", i128::MAX, false),
        ] {
            let message = count(form, Some(value), by, subtract).unwrap_err();
            assert!(message.contains("out of the range"), "{message}");
        }
        for (form, value) in [(KvForm::Text, "x"), (KvForm::Hex, "05")] {
            let message = count(form, Some(value), 1, false).unwrap_err();
            assert!(message.contains("not a whole number"), "{message}");
        }
    }
}
