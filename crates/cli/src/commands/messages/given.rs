//! Payloads from the command line, from files and from standard input.

use crate::args::PayloadArgs;
use crate::bytes::unhex;
use crate::exit::{Failure, Outcome};
use std::io::Read;

/// The failure for an error while reading standard input.
pub(crate) fn reading_failed(error: &std::io::Error) -> Failure {
    Failure::bad_input(format!("reading failed: {error}"))
        .hint("check the command that writes to standard input")
}

/// The bytes of a payload.
pub(crate) fn given(args: &PayloadArgs) -> Outcome<Vec<u8>> {
    match (args.payload.as_deref(), args.payload_file.as_deref()) {
        (_, Some(file)) => {
            std::fs::read(file).map_err(|error| Failure::file("cannot read", file, &error))
        }
        (Some("-"), None) => {
            let mut bytes = Vec::new();
            let read = std::io::stdin().lock().read_to_end(&mut bytes);
            read.map_err(|error| reading_failed(&error))?;
            Ok(bytes)
        }
        (Some(text), None) if args.hex => unhex(text.as_bytes())
            .ok_or_else(|| Failure::usage(format!("`{text}` is not made of pairs of hex digits"))),
        (Some(text), None) => Ok(text.as_bytes().to_vec()),
        (None, None) => Err(Failure::usage("a payload, or --file")
            .hint("type the payload, or - to read it from standard input")),
    }
}
