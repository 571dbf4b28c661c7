//! The quickstart in a clone of the repository: its commands run as printed, and its answers are recomputed from the
//! CSV file without the library.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should say where"
)]

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

const BY_CARGO: &str = "cargo run --release -q --";

/// Measurements by name and airport: the hour and the value of each, in the order of the file.
type Measured = BTreeMap<(String, String), Vec<(String, f64)>>;

/// The path of this crate at run time. Another clone that shares the target directory may have built the test.
fn crate_root() -> PathBuf {
    let now = std::env::var_os("CARGO_MANIFEST_DIR");
    now.map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from)
}

fn clone_root() -> PathBuf {
    crate_root().join("../..")
}

/// The sample data, parsed by splitting lines at commas: there are no quotes in it.
fn sample() -> Measured {
    let path = crate_root().join("sample/nyc-weather-2013.csv.gz");
    let mut text = String::new();
    let file = std::fs::File::open(path).unwrap();
    flate2::read::GzDecoder::new(file)
        .read_to_string(&mut text)
        .unwrap();
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let mut measured = Measured::new();
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        for (name, field) in names.iter().zip(&fields).skip(2) {
            if *field != "NA" {
                let series = ((*name).to_owned(), fields[0].to_owned());
                let point = (fields[1].to_owned(), field.parse().unwrap());
                measured.entry(series).or_default().push(point);
            }
        }
    }
    measured
}

/// A command that quickstart has printed, and the output below it.
struct Step {
    command: String,
    answer: String,
}

fn steps(output: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in output.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step {
                command: command.to_owned(),
                answer: String::new(),
            });
        } else if let Some(step) = steps.last_mut() {
            step.answer += line;
            step.answer.push('\n');
        }
    }
    steps
}

/// Runs a printed command in a shell, in the clone of the repository.
fn paste(command: &str) -> String {
    let rest = command
        .strip_prefix(BY_CARGO)
        .unwrap_or_else(|| panic!("not for a clone: {command}"));
    let line = format!("'{}'{rest}", env!("CARGO_BIN_EXE_tidalite"));
    let output = Command::new("sh")
        .arg("-c")
        .arg(line)
        .current_dir(clone_root())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{command}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// The printed answer as rows of fields, without the header.
fn rows(answer: &str) -> Vec<Vec<String>> {
    let lines = answer.lines().take_while(|line| !line.is_empty()).skip(1);
    lines
        .map(|line| {
            line.split_whitespace()
                .map(|field| field.replace(',', ""))
                .collect()
        })
        .collect()
}

fn close(text: &str, expected: f64) {
    let value: f64 = text.parse().unwrap();
    // Means are printed with six digits.
    assert!(
        (value - expected).abs() <= expected.abs() * 5e-6,
        "{value} is not {expected}"
    );
}

#[test]
fn the_quickstart_keeps_its_word() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("the quickstart");
    let _ = std::fs::remove_dir_all(&folder);
    let began = Instant::now();
    let quickstart = |points: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_tidalite"))
            .args(["quickstart", "--points", points, "--dir"])
            .arg(&folder)
            .current_dir(clone_root())
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    };
    let output = quickstart("200000");
    println!("{output}\n{:?}", began.elapsed());
    for told in [
        "quickstart.tdl",
        "the CSV file, gzipped",
        "200,000 generated points",
        "points/s",
        "What now",
    ] {
        assert!(output.contains(told), "{told}");
    }
    let steps = steps(&output);
    let kinds: Vec<&str> = steps
        .iter()
        .map(|step| {
            step.command[BY_CARGO.len()..]
                .split_whitespace()
                .next()
                .unwrap()
        })
        .collect();
    assert_eq!(
        kinds,
        [
            "import",
            "series",
            "aggregate",
            "window",
            "scan",
            "latest",
            "plot",
            "plot",
            "window",
            "stat",
            "check"
        ]
    );
    for step in &steps[1..=6] {
        let answer = paste(&step.command);
        assert!(
            step.answer.starts_with(&answer),
            "{}:\n{answer}\nis not\n{}",
            step.command,
            step.answer
        );
    }

    let sample = sample();
    how_many(&sample, &steps[1].answer);
    how_hot(&sample, &steps[2].answer);
    heat_wave(&sample, &steps[3].answer);
    strange_wind(&sample, &steps[4].answer);
    last_of_laguardia(&sample, &steps[5].answer);
    assert!(
        steps[6]
            .answer
            .chars()
            .any(|c| ('\u{2801}'..='\u{28ff}').contains(&c))
    );

    // The other printed commands run too, including the import by hand into the database with the weather.
    paste(&steps[0].command);
    for step in &steps[7..] {
        paste(&step.command);
    }
    assert!(folder.join("pressure.svg").exists());
    assert!(!folder.join("quickstart-generated.tdl").exists());
    // A second run replaces the file that the first run has made.
    quickstart("1000");
    std::fs::remove_dir_all(&folder).unwrap();
}

fn points<'a>(sample: &'a Measured, name: &str, airport: &str) -> &'a [(String, f64)] {
    &sample[&(name.to_owned(), airport.to_owned())]
}

fn how_many(sample: &Measured, answer: &str) {
    let rows = rows(answer);
    assert_eq!(rows.len(), 3);
    for (row, airport) in rows.iter().zip(["EWR", "JFK", "LGA"]) {
        let temps = points(sample, "temp", airport);
        assert_eq!(row[0], format!("weather.temp{{origin=\"{airport}\"}}"));
        assert_eq!(row[1], temps.len().to_string());
        assert_eq!([&row[2], &row[3]], [&temps[0].0, &temps[temps.len() - 1].0]);
    }
}

fn how_hot(sample: &Measured, answer: &str) {
    let rows = rows(answer);
    assert_eq!(rows.len(), 3);
    for (row, airport) in rows.iter().zip(["EWR", "JFK", "LGA"]) {
        let temps = points(sample, "temp", airport);
        // Of several equal values, the first one counts.
        let coldest = temps.iter().fold(
            &temps[0],
            |best, this| if this.1 < best.1 { this } else { best },
        );
        let hottest = temps.iter().fold(
            &temps[0],
            |best, this| if this.1 > best.1 { this } else { best },
        );
        assert_eq!((row[1].parse(), &row[2]), (Ok(coldest.1), &coldest.0));
        close(
            &row[3],
            temps.iter().map(|point| point.1).sum::<f64>() / temps.len() as f64,
        );
        assert_eq!((row[4].parse(), &row[5]), (Ok(hottest.1), &hottest.0));
    }
}

fn heat_wave(sample: &Measured, answer: &str) {
    let rows = rows(answer);
    assert_eq!(rows.len(), 7);
    for (row, day) in rows.iter().zip(14..) {
        assert_eq!(row[0], format!("2013-07-{day}T00:00:00-04:00"));
        // In summer a day in New York lasts from 4:00 to 4:00 UTC.
        let from = format!("2013-07-{day}T04:00:00Z");
        let to = format!("2013-07-{}T04:00:00Z", day + 1);
        let temps: Vec<f64> = points(sample, "temp", "JFK")
            .iter()
            .filter(|(hour, _)| *hour >= from && *hour < to)
            .map(|point| point.1)
            .collect();
        assert_eq!(
            row[1].parse(),
            Ok(temps.iter().copied().fold(f64::INFINITY, f64::min))
        );
        close(&row[2], temps.iter().sum::<f64>() / temps.len() as f64);
        assert_eq!(
            row[3].parse(),
            Ok(temps.iter().copied().fold(f64::NEG_INFINITY, f64::max))
        );
    }
}

fn strange_wind(sample: &Measured, answer: &str) {
    let expected: Vec<(String, f64)> = points(sample, "wind_speed", "EWR")
        .iter()
        .filter(|(hour, _)| {
            hour.as_str() >= "2013-02-12T06:00:00Z" && hour.as_str() < "2013-02-12T11:00:00Z"
        })
        .cloned()
        .collect();
    assert!(expected.iter().any(|(_, speed)| *speed > 1048.0));
    let found: Vec<(String, f64)> = rows(answer)
        .into_iter()
        .map(|row| (row[0].clone(), row[1].parse().unwrap()))
        .collect();
    assert_eq!(found, expected);
}

fn last_of_laguardia(sample: &Measured, answer: &str) {
    let expected: Vec<(String, String, f64)> = sample
        .iter()
        .filter(|((_, airport), _)| airport == "LGA")
        .map(|((name, _), points)| {
            let (hour, value) = points[points.len() - 1].clone();
            (format!("weather.{name}{{origin=\"LGA\"}}"), hour, value)
        })
        .collect();
    let found: Vec<(String, String, f64)> = rows(answer)
        .into_iter()
        .map(|row| (row[0].clone(), row[1].clone(), row[2].parse().unwrap()))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn a_file_that_is_not_its_own_is_not_touched() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("not its own");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("quickstart.tdl");
    let run = |words: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_tidalite"))
            .args(words)
            .current_dir(&folder)
            .output()
            .unwrap()
    };
    std::fs::write(folder.join("mine.csv"), "time,mine\n2014-06-01,1\n").unwrap();
    assert!(
        run(&["import", "quickstart.tdl", "mine.csv"])
            .status
            .success()
    );
    let before = std::fs::read(&file).unwrap();
    let output = run(&["quickstart"]);
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("`mine`") && told.contains("--dir"), "{told}");
    assert_eq!(std::fs::read(&file).unwrap(), before);
    std::fs::remove_dir_all(&folder).unwrap();
}
