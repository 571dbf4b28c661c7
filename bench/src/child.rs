//! Results of a child process: the child writes a line for each sample and for each answer, and the parent adds these
//! to its contest.

use crate::contest::Contest;
use crate::engine::{Kind, Result};
use crate::meter::{Sample, Spread};
use crate::os;

/// The unit of a case, and whether less is better.
pub(crate) type Unit = (&'static str, bool);

/// Writes a sample to standard output.
pub(crate) fn tell(case: &str, unit: &str, sample: &Sample) {
    let (latency, written) = (sample.latency, sample.written);
    let numbers = [
        sample.value,
        latency.p50,
        latency.p99,
        latency.p999,
        latency.max,
        sample.cpu_seconds,
        written.handed as f64,
        written.calls as f64,
        written.dirtied as f64,
        written.disk as f64,
        sample.syncs as f64,
        sample.file_bytes as f64,
    ];
    let text: Vec<String> = numbers.iter().map(f64::to_string).collect();
    println!("sample {case} {unit} {}", text.join(" "));
}

/// Writes an answer, which must be the same for every engine, to standard output.
pub(crate) fn answer(case: &str, answer: u64) {
    println!("answer {case} {answer}");
}

/// Parses a line from the child process of an engine. Samples must be in one of the `units`.
pub(crate) fn take(line: &str, kind: Kind, units: &[Unit], contest: &mut Contest) -> Result<()> {
    let unreadable = || format!("{}: cannot read {line}", kind.name);
    let words: Vec<&str> = line.split_whitespace().collect();
    if let ["answer", case, answer] = words.as_slice() {
        return contest.check(case, 0, kind, answer.parse()?);
    }
    let ["sample", case, unit, numbers @ ..] = words.as_slice() else {
        return Err(unreadable().into());
    };
    let known = units.iter().find(|(known, _)| known == unit);
    let (unit, less_is_better) = known.ok_or_else(unreadable)?;
    let numbers: Vec<f64> = numbers
        .iter()
        .map(|n| n.parse())
        .collect::<std::result::Result<_, _>>()?;
    let [
        value,
        p50,
        p99,
        p999,
        max,
        cpu,
        handed,
        calls,
        dirtied,
        disk,
        syncs,
        file,
    ] = numbers.as_slice()
    else {
        return Err(unreadable().into());
    };
    let sample = Sample {
        value: *value,
        latency: Spread {
            p50: *p50,
            p99: *p99,
            p999: *p999,
            max: *max,
        },
        cpu_seconds: *cpu,
        written: os::Written {
            handed: *handed as u64,
            calls: *calls as u64,
            dirtied: *dirtied as u64,
            disk: *disk as u64,
        },
        syncs: *syncs as u64,
        file_bytes: *file as u64,
    };
    contest.add(case, unit, *less_is_better, kind, sample);
    Ok(())
}
