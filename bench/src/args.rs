//! The command line.

use std::path::PathBuf;

use crate::harlinn;

/// What `--help` prints.
pub(crate) const HELP: &str = "\
Benchmarks of Tidalite against its peers, both in one run on one machine.

usage: cargo run --release --manifest-path bench/Cargo.toml -- SUITE [options]

suites:
  harlinn        the five programs of \"An Ultrafast Light Timeseries Storage Engine\",
                 against a port of that engine on LMDB

options:
  --points N     points of a case (default 10000000; the published figures: 100000000)
  --rounds R     rounds, of which the median is taken (default 3)
  --only LIST    cases, with commas: 01,03r (default: all)
  --dir DIR      where the files go, one at a time (default: the system's temporary directory)
  --json FILE    also write a JSON object per line
";

/// What was asked for.
pub(crate) struct Args {
    pub(crate) harlinn: harlinn::Options,
    pub(crate) json: Option<PathBuf>,
}

/// Reads the arguments; `None` when it was help that was asked for.
pub(crate) fn parse(args: impl IntoIterator<Item = String>) -> Result<Option<Args>, String> {
    let mut args = args.into_iter();
    match args.next().as_deref() {
        None | Some("--help" | "-h" | "help") => return Ok(None),
        Some("harlinn") => {}
        Some(other) => return Err(format!("there is no suite {other}")),
    }
    let (points, rounds, only) = (10_000_000, 3, Vec::new());
    let mut harlinn = harlinn::Options {
        points,
        rounds,
        only,
        dir: std::env::temp_dir(),
    };
    let mut json = None;
    while let Some(option) = args.next() {
        if matches!(option.as_str(), "--help" | "-h") {
            return Ok(None);
        }
        let value = args
            .next()
            .ok_or_else(|| format!("{option} wants a value"))?;
        match option.as_str() {
            "--points" => harlinn.points = number(&option, &value)?,
            "--rounds" => harlinn.rounds = number(&option, &value)? as usize,
            "--only" => harlinn.only = value.split(',').map(|c| c.trim().to_owned()).collect(),
            "--dir" => harlinn.dir = value.into(),
            "--json" => json = Some(value.into()),
            _ => return Err(format!("there is no option {option}")),
        }
    }
    Ok(Some(Args { harlinn, json }))
}

/// A positive whole number; underscores and commas may group it.
fn number(option: &str, value: &str) -> Result<u64, String> {
    let digits: String = value.chars().filter(|c| !matches!(c, '_' | ',')).collect();
    match digits.parse() {
        Ok(n) if n > 0 => Ok(n),
        _ => Err(format!("{option} wants a positive number, not {value}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Option<Args>, String> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn reads_what_help_describes() {
        let line = "harlinn --points 1_000_000 --rounds 5 --only 01,03r --dir /x --json y";
        let args = parsed(line).unwrap().unwrap();
        assert_eq!((args.harlinn.points, args.harlinn.rounds), (1_000_000, 5));
        assert_eq!(args.harlinn.only, ["01", "03r"]);
        assert_eq!(
            (args.harlinn.dir, args.json),
            ("/x".into(), Some("y".into()))
        );
    }

    #[test]
    fn says_what_is_wrong() {
        assert!(parsed("").unwrap().is_none());
        assert!(parsed("harlinn --help").unwrap().is_none());
        for bad in [
            "other",
            "harlinn --points",
            "harlinn --points 0",
            "harlinn --fast 1",
        ] {
            assert!(parsed(bad).is_err(), "{bad}");
        }
    }
}
