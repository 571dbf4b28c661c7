//! `#[derive(Record)]`: a plain struct as a row of a series. Use it through `tidalite`, which exports it beside the
//! trait.
//!
//! ```text
//! struct   #[record(unit = "us")]       unit of the time: ns (default), us, ms, s, ticks;
//!                                       a `Timestamp` is converted to and from the unit of the series
//! field    #[record(time)]              this field is the time; not needed for a field called `time`
//!          #[record(name = "gas.CO2")]  the column's name, if it differs from the field's name
//!          #[record(scale = 2)]         for an i64 or Decimal: a decimal column with two fractional digits
//! ```
//!
//! The type of a field determines its column through the trait `tidalite::record::Field`; `Option` makes the column
//! nullable.

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
