//! Benchmarks of Tidalite against its peers, both in one run on one machine.
//!
//! ```text
//! args         the command line
//! harlinn      the suite: five programs of the article, ours against the LMDB engine
//! lmdb_engine  the peer: the article's engine, ported
//! report       medians, spreads, the table, the JSON lines
//! os           memory touched beforehand, page cache dropped, free space
//! ```

mod args;
mod harlinn;
mod lmdb_engine;
mod os;
mod report;

use std::error::Error;
use std::fs::File;
use std::io::Write as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = match args::parse(std::env::args().skip(1)) {
        Ok(Some(args)) => args,
        Ok(None) => {
            print!("{}", args::HELP);
            return ExitCode::SUCCESS;
        }
        Err(what) => {
            eprintln!("error: {what}\n\n{}", args::HELP);
            return ExitCode::from(2);
        }
    };
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &args::Args) -> Result<(), Box<dyn Error>> {
    os::keep_heap();
    warn(&args.harlinn);
    let mut json = args.json.as_ref().map(File::create).transpose()?;
    let mut lines = Vec::new();
    harlinn::run(&args.harlinn, |new| {
        if let Some(json) = &mut json {
            for line in &new {
                writeln!(json, "{}", line.json())?;
            }
        }
        lines.extend(new);
        Ok(())
    })?;
    let (processor, memory) = (os::processor(), os::memory_total() >> 30);
    let (points, rounds) = (args.harlinn.points, args.harlinn.rounds);
    println!("{processor}, {memory} GiB; {points} points a case, median of {rounds} rounds");
    println!("ratio > 1: ours is better; spread = (max - min) / median of ours, of theirs\n");
    print!("{}", report::table(&lines));
    Ok(())
}

/// Says what would make the figures worthless.
fn warn(options: &harlinn::Options) {
    if cfg!(debug_assertions) {
        eprintln!("warning: not built with --release: the figures mean nothing");
    }
    if options.rounds < 3 || options.points < 10_000_000 {
        eprintln!("note: a trial run; figures to keep take 3 rounds of 10000000 points at least");
    }
    let load = os::load();
    if load > 0.5 {
        eprintln!("warning: the machine is not idle (load {load}); a durable commit suffers most");
    }
}
