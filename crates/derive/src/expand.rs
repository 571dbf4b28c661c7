//! Generates the implementation of `Record` from the definition of the struct.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Fields, Ident, LitInt, LitStr, Result, Type};

/// A field of the struct that becomes a column.
struct Column<'a> {
    field: &'a Ident,
    ty: &'a Type,
    name: String,
    scale: Option<u8>,
}

/// The options that `#[record(...)]` gives for a field.
#[derive(Default)]
struct Options {
    time: bool,
    name: Option<String>,
    scale: Option<u8>,
}

pub(crate) fn record(input: &DeriveInput) -> Result<TokenStream> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(&input.ident, "a record is a struct"));
    };
    let Fields::Named(fields) = &data.fields else {
        let problem = "a record has named fields: their names are those of the columns";
        return Err(Error::new_spanned(&input.ident, problem));
    };
    let unit = unit(input)?;
    let mut time: Option<(&Ident, &Type)> = None;
    let mut columns: Vec<Column<'_>> = Vec::new();
    for field in &fields.named {
        let Some(ident) = &field.ident else { continue };
        let options = options(field)?;
        let plain = ident.to_string();
        let plain = plain.strip_prefix("r#").unwrap_or(&plain);
        if options.time || (plain == "time" && options.name.is_none()) {
            if options.name.is_some() || options.scale.is_some() {
                return Err(Error::new_spanned(
                    ident,
                    "the time has no name and no scale",
                ));
            }
            if time.replace((ident, &field.ty)).is_some() {
                return Err(Error::new_spanned(ident, "a record has one time"));
            }
            continue;
        }
        let name = options.name.unwrap_or_else(|| plain.to_owned());
        if columns.iter().any(|earlier| earlier.name == name) {
            return Err(Error::new_spanned(
                ident,
                format!("column {name} is there twice"),
            ));
        }
        columns.push(Column {
            field: ident,
            ty: &field.ty,
            name,
            scale: options.scale,
        });
    }
    let Some((time, time_type)) = time else {
        let problem = "no field is the time: call one `time` or mark it with #[record(time)]";
        return Err(Error::new_spanned(&input.ident, problem));
    };
    if columns.is_empty() {
        return Err(Error::new_spanned(
            &input.ident,
            "a record has a column besides the time",
        ));
    }
    let described = columns.iter().map(|column| {
        let (name, ty) = (&column.name, column.ty);
        match column.scale {
            None => quote!(::tidalite::record::column_of::<#ty>(#name)),
            Some(scale) => quote!(::tidalite::record::decimal_of::<#ty>(#name, #scale)),
        }
    });
    let names: Vec<&Ident> = columns.iter().map(|column| column.field).collect();
    let ident = &input.ident;
    let (generics, arguments, bounds) = input.generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #generics ::tidalite::Record for #ident #arguments #bounds {
            const ANY_UNIT: bool = <#time_type as ::tidalite::record::RecordTime>::ANY_UNIT;

            fn schema() -> ::tidalite::Schema {
                ::tidalite::Schema {
                    unit: #unit,
                    columns: ::std::vec![#(#described),*],
                }
            }

            #[inline]
            fn time(&self) -> ::tidalite::Result<i64> {
                ::tidalite::record::RecordTime::steps(&self.#time, #unit)
            }

            #[inline]
            fn time_in(&self, unit: ::tidalite::Unit) -> ::tidalite::Result<i64> {
                ::tidalite::record::RecordTime::steps(&self.#time, unit)
            }

            #[inline]
            fn write(&self, row: &mut ::tidalite::record::RowWriter<'_>) -> ::tidalite::Result<()> {
                #(row.put(&self.#names)?;)*
                ::std::result::Result::Ok(())
            }

            #[inline]
            fn read(row: &mut ::tidalite::record::RowReader<'_>) -> ::tidalite::Result<Self> {
                ::std::result::Result::Ok(Self {
                    #time: <#time_type as ::tidalite::record::RecordTime>::of_steps(row.time(), row.unit())?,
                    #(#names: row.take()?,)*
                })
            }
        }
    })
}

fn unit(input: &DeriveInput) -> Result<TokenStream> {
    let mut unit = quote!(::tidalite::Unit::Nanos);
    for attribute in input.attrs.iter().filter(|a| a.path().is_ident("record")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("unit") {
                return Err(
                    meta.error("on a struct: unit = \"ns\", \"us\", \"ms\", \"s\" or \"ticks\"")
                );
            }
            let text: LitStr = meta.value()?.parse()?;
            unit = match text.value().as_str() {
                "ns" => quote!(::tidalite::Unit::Nanos),
                "us" => quote!(::tidalite::Unit::Micros),
                "ms" => quote!(::tidalite::Unit::Millis),
                "s" => quote!(::tidalite::Unit::Seconds),
                "ticks" => quote!(::tidalite::Unit::Ticks),
                _ => return Err(Error::new_spanned(&text, "ns, us, ms, s or ticks")),
            };
            Ok(())
        })?;
    }
    Ok(unit)
}

fn options(field: &syn::Field) -> Result<Options> {
    let mut options = Options::default();
    for attribute in field.attrs.iter().filter(|a| a.path().is_ident("record")) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("time") {
                options.time = true;
            } else if meta.path.is_ident("name") {
                let text: LitStr = meta.value()?.parse()?;
                options.name = Some(text.value());
            } else if meta.path.is_ident("scale") {
                let digits: LitInt = meta.value()?.parse()?;
                let scale: u8 = digits.base10_parse()?;
                if scale > 18 {
                    return Err(Error::new_spanned(&digits, "0 to 18 digits"));
                }
                options.scale = Some(scale);
            } else {
                return Err(meta.error("on a field: time, name = \"...\" or scale = digits"));
            }
            Ok(())
        })?;
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        let input: DeriveInput = syn::parse_str(text).unwrap();
        record(&input).unwrap_err().to_string()
    }

    #[test]
    fn derive_errors_point_at_the_offending_item() {
        for (text, told) in [
            ("enum E { A }", "a struct"),
            ("struct S(i64, f64);", "named fields"),
            ("struct S { a: f64 }", "no field is the time"),
            ("struct S { time: i64 }", "a column besides"),
            (
                "struct S { time: i64, #[record(time)] at: i64, x: f64 }",
                "one time",
            ),
            (
                "struct S { time: i64, a: f64, #[record(name = \"a\")] b: f64 }",
                "twice",
            ),
            (
                "struct S { time: i64, #[record(scale = 19)] a: i64 }",
                "0 to 18",
            ),
            (
                "struct S { time: i64, #[record(scales = 1)] a: i64 }",
                "on a field",
            ),
            (
                "#[record(unit = \"h\")] struct S { time: i64, a: i64 }",
                "ticks",
            ),
            (
                "#[record(units = 1)] struct S { time: i64, a: i64 }",
                "on a struct",
            ),
        ] {
            let found = problem(text);
            assert!(found.contains(told), "{text}: {found}");
        }
    }

    #[test]
    fn a_record_implements_the_trait() {
        let text = "struct S { #[record(time)] at: i64, #[record(name = \"x.y\")] x: Option<f64> }";
        let input: DeriveInput = syn::parse_str(text).unwrap();
        let tokens = record(&input).unwrap().to_string();
        assert!(tokens.contains("\"x.y\"") && tokens.contains("Record for S"));
    }
}
