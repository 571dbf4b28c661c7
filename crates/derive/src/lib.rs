//! `#[derive(Record)]`: a plain struct as a row of a series. Use it through `tidalite`, which exports it beside the trait.
//!
//! ```text
//! struct   #[record(unit = "us")]       what the time counts in: ns (if left out), us, ms, s, ticks;
//!                                       a `Timestamp` is converted to and from what the series counts in
//! field    #[record(time)]              this is the time; not needed for a field called `time`
//!          #[record(name = "gas.CO2")]  the column's name, where it is not that of the field
//!          #[record(scale = 2)]         of an i64 or Decimal: a decimal column with two digits behind the point
//! ```
//!
//! The type of a field decides on its column through the trait `tidalite::Field`; `Option` makes it one with nulls.

mod expand;

use proc_macro::TokenStream;

/// Implements `tidalite::Record` for a struct with named fields.
#[proc_macro_derive(Record, attributes(record))]
pub fn record(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    match expand::record(&input) {
        Ok(tokens) => tokens.into(),
        Err(error) => error.to_compile_error().into(),
    }
}
