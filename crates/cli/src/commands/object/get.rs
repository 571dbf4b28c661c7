//! `object get`: writes an object, or a part of it, to a file or to standard output.

use super::place::{bucket, info};
use crate::args::{ByteRange, ObjectGetArgs};
use crate::exit::{Failure, Outcome};
use crate::export::Target;
use crate::progress::Progress;
use crate::terminal::Terminal;
use std::io::Write;
use tidalite::objects::ObjectInfo;

/// Offset of the first byte, and number of bytes to read.
fn span(range: Option<ByteRange>, info: &ObjectInfo) -> Outcome<(u64, u64)> {
    let size = info.size;
    let (first, end) = match range {
        None => return Ok((0, size)),
        Some(ByteRange::From(first, None)) => (first, size),
        Some(ByteRange::From(first, Some(last))) => (first, last.saturating_add(1).min(size)),
        Some(ByteRange::Last(len)) => (size.saturating_sub(len), size),
    };
    match first < end {
        true => Ok((first, end - first)),
        false => Err(
            Failure::not_found(format!("{} has no byte in this range", info.name))
                .hint(format!("its size is {size} bytes")),
        ),
    }
}

/// Runs the command `tidalite object get`.
pub(super) fn run(args: &ObjectGetArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    let (_db, snap) = place.open()?;
    let bucket = bucket(&place, &snap)?;
    let info = info(&place, &bucket, &args.name)?;
    let (first, len) = span(args.range, &info)?;
    let output = args
        .output
        .as_deref()
        .filter(|path| path.as_os_str() != "-");
    let write = |out: &mut dyn Write| -> Outcome {
        let mut cursor = bucket.cursor(&info).map_err(|error| place.fail(&error))?;
        cursor.seek(first);
        let bar = Progress::new(args.quiet || output.is_none(), false);
        let mut left = len;
        let done = loop {
            match cursor.next_slice(left) {
                Ok(Some(slice)) => {
                    out.write_all(slice)?;
                    left -= slice.len() as u64;
                    bar.show_bytes(len - left, len, "writing");
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(place.fail(&error.into())),
            }
        };
        bar.clear();
        done
    };
    match output {
        None => {
            write(&mut *terminal.out)?;
            Ok(terminal.out.flush()?)
        }
        Some(path) => {
            let mut target = Target::unchanged(path, args.replace)?;
            write(&mut target)?;
            target.finish()
        }
    }
}
