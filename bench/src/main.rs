//! Benchmarks of Tidalite against its peers, all in one run on one machine.
//!
//! ```text
//! args           the command line
//! os             touches memory beforehand, drops the page cache, measures free space
//! syncs          counts waits on the disk
//! report         medians, spreads, the table and lines of `harlinn`
//! lmdb_engine    a port of a published time series engine on LMDB
//! records        the record types of the published benchmark `harlinn`
//! engine         Tidalite and its peers, with a common interface
//! meter          costs of work: time, CPU, bytes, calls, waits on the disk
//! contest        the participating engines and their order; lines and table
//! child          results of a child process
//! suites         one file or folder for each suite: harlinn (five programs of an article), commit, mdbx, ioarena,
//!                beyond_memory, long_reader, ticks, growth, nested, cpu, akumuli, codec, import,
//!                catalog, raptor, buffered, flespi
//! ```

mod args;
mod child;
mod contest;
mod engine;
mod lmdb_engine;
mod meter;
mod os;
mod records;
mod report;
mod suites;
mod syncs;

use std::fs::File;
use std::io::Write as _;
use std::process::ExitCode;

use args::{Options, Suite};
use contest::Contest;
use engine::Result;
use suites::{
    akumuli, beyond_memory, buffered, catalog, codec, commit, cpu, flespi, growth, harlinn, import,
    ioarena, long_reader, mdbx, nested, raptor, ticks,
};

fn main() -> ExitCode {
    let options = match args::parse(std::env::args().skip(1)) {
        Ok(Some(options)) => options,
        Ok(None) => {
            print!("{}", args::HELP);
            return ExitCode::SUCCESS;
        }
        Err(what) => {
            eprintln!("error: {what}\n\n{}", args::HELP);
            return ExitCode::from(2);
        }
    };
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<()> {
    // A process whose memory is measured: its heap keeps the system's settings.
    match options.suite {
        Suite::BeyondMemoryOne => return beyond_memory::one(options),
        Suite::RaptorOne => return raptor::one(options),
        Suite::FlespiOne => return flespi::one(options),
        _ => {}
    }
    os::keep_heap();
    warn(options);
    let json = options.json.as_ref().map(File::create).transpose()?;
    match options.suite {
        Suite::Harlinn => harlinn(options, json),
        Suite::Akumuli => told(&akumuli::run(options)?, options, json),
        Suite::AkumuliWriter => akumuli::writer(options),
        Suite::Codec => {
            codec::run(options, json)?;
            println!();
            machine(options);
            Ok(())
        }
        Suite::Commit => told(&commit::run(options)?, options, json),
        Suite::Mdbx => told(&mdbx::run(options)?, options, json),
        Suite::Ioarena => told(&ioarena::run(options)?, options, json),
        Suite::LongReader => told(&long_reader::run(options)?, options, json),
        Suite::Growth => told(&growth::run(options)?, options, json),
        Suite::Nested => told(&nested::run(options)?, options, json),
        Suite::Import => imports(options, json),
        Suite::Catalog => catalog(options, json),
        Suite::Buffered => told(&buffered::run(options)?, options, json),
        Suite::Raptor | Suite::RaptorOne => {
            let contest = raptor::run(options)?;
            told(&contest, options, json)?;
            print!("\n{}", raptor::aims(&contest, options));
            Ok(())
        }
        Suite::Flespi | Suite::FlespiOne => {
            let contest = flespi::run(options)?;
            told(&contest, options, json)?;
            print!("\n{}", flespi::aims(&contest, options));
            Ok(())
        }
        Suite::Cpu => told(&cpu::run(options)?, options, json),
        Suite::Ticks => told(&ticks::run(options)?, options, json),
        Suite::BeyondMemory | Suite::BeyondMemoryOne => match beyond_memory::run(options)? {
            Some(contest) => told(&contest, options, json),
            None => Ok(()),
        },
    }
}

/// Prints the results as a table, and writes them as JSON lines.
fn told(contest: &Contest, options: &Options, json: Option<File>) -> Result<()> {
    if let Some(mut json) = json {
        for line in contest.json() {
            writeln!(json, "{line}")?;
        }
    }
    options.all_known()?;
    machine(options);
    println!("ratio > 1: ours is better (its first mode); spread = (max - min) / median\n");
    print!("{}", contest.table());
    Ok(())
}

fn harlinn(options: &Options, mut json: Option<File>) -> Result<()> {
    let mut lines = Vec::new();
    let of_suite = harlinn::Options {
        points: options.points,
        rounds: options.rounds,
        only: options.only.clone(),
        with_peer: contest::takes_part("lmdb", &options.peers)?,
        dir: options.dir.clone(),
    };
    harlinn::run(&of_suite, |new| {
        if let Some(json) = &mut json {
            for line in &new {
                writeln!(json, "{}", line.json())?;
            }
        }
        lines.extend(new);
        Ok(())
    })?;
    machine(options);
    println!("{} points a case", options.points);
    println!("ratio > 1: ours is better; spread = (max - min) / median of ours, of theirs\n");
    print!("{}", report::table(&lines));
    Ok(())
}

/// Writes each line as a JSON object.
fn write_json(lines: &[report::Line], json: Option<File>) -> Result<()> {
    if let Some(mut json) = json {
        for line in lines {
            writeln!(json, "{}", line.json())?;
        }
    }
    Ok(())
}

fn catalog(options: &Options, json: Option<File>) -> Result<()> {
    let lines = catalog::run(options)?;
    write_json(&lines, json)?;
    options.all_known()?;
    machine(options);
    println!(
        "{} series; ratio > 1: ours is better; spread = (max - min) / median\n",
        options.series
    );
    print!("{}", report::table(&lines));
    Ok(())
}

fn imports(options: &Options, json: Option<File>) -> Result<()> {
    let lines = import::run(options)?;
    write_json(&lines, json)?;
    options.all_known()?;
    machine(options);
    println!(
        "{} MiB of CSV; ratio > 1: ours is better; spread = (max - min) / median\n",
        options.mib
    );
    for peer in ["duckdb", "sqlite", ""] {
        let own: Vec<&report::Line> = lines.iter().filter(|line| line.peer == peer).collect();
        if !own.is_empty() {
            println!("{}", report::table(own));
        }
    }
    Ok(())
}

fn machine(options: &Options) {
    let (processor, memory) = (os::processor(), os::memory_total() >> 30);
    println!(
        "{processor}, {memory} GiB; median of {} rounds",
        options.rounds
    );
}

/// Prints warnings about conditions that make the measured figures worthless.
fn warn(options: &Options) {
    if cfg!(debug_assertions) {
        eprintln!("warning: not built with --release: the figures mean nothing");
    }
    let small = match options.suite {
        Suite::Harlinn => options.points < 10_000_000,
        Suite::Commit => options.commits < 2000,
        Suite::Mdbx | Suite::Ioarena | Suite::Buffered => options.pairs < 1_000_000,
        Suite::LongReader => options.commits < 1_000_000,
        Suite::Ticks => options.commits < 10_000,
        Suite::Import => options.mib < 100,
        Suite::Catalog => options.series < 1_000_000,
        Suite::Raptor | Suite::RaptorOne => options.keys < 10_000_000,
        Suite::Flespi | Suite::FlespiOne => {
            options.topics < 1_000_000
                || options.keys < 10_000_000
                || options.seconds < 600
                || options.messages < 1_000_000
                || options.mib < 1024
        }
        Suite::Cpu => options.points < 2_592_000,
        Suite::Codec => false,
        Suite::Akumuli | Suite::AkumuliWriter => options.points < 40_000_000,
        Suite::Growth => options.points < 100_000_000,
        Suite::Nested => options.pairs < 5_000_000,
        Suite::BeyondMemory | Suite::BeyondMemoryOne => options.mib < 8192,
    };
    if options.rounds < 3 || small {
        eprintln!("note: a trial run; figures to keep take 3 rounds of the default size at least");
    }
    let load = os::load();
    if load > 0.5 {
        eprintln!("warning: the machine is not idle (load {load}); a durable commit suffers most");
    }
}
