//! Imports and queries two years of data of a wind farm, if the machine has the data (`TIDALITE_TEST_DATA`).

use crate::support::Folder;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

#[test]
fn a_wind_farm_is_imported_whole() {
    let file = std::env::var_os("TIDALITE_TEST_DATA")
        .map(|root| Path::new(&root).join("lahauteborne/la-haute-borne-data-2014-2015.csv.gz"))
        .filter(|file| file.exists());
    let Some(file) = file else {
        eprintln!("skipped: no real data here");
        return;
    };
    let folder = Folder::new("a_wind_farm_is_imported_whole");
    let path = file.to_str().unwrap();
    let words = [
        "import",
        "hb.tdl",
        path,
        "--tag",
        "Wind_turbine_name=turbine",
        "--prefix",
        "hb.",
    ];
    let out = folder.run(&words).ok();
    assert!(out.starts_with("420,480 rows"), "{out}");
    folder.say("check hb.tdl").ok();

    // If several rows have the same time, the last one is kept, as in the database.
    let mut text = String::new();
    let file = std::fs::File::open(file).unwrap();
    flate2::read::GzDecoder::new(file)
        .read_to_string(&mut text)
        .unwrap();
    let mut power: BTreeMap<&str, BTreeMap<i64, f64>> = BTreeMap::new();
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let time: jiff::Timestamp = fields[1].parse().unwrap();
        if let Ok(value) = fields[3].parse() {
            power
                .entry(fields[0])
                .or_default()
                .insert(time.as_second(), value);
        }
    }
    let out = folder
        .say("aggregate hb.tdl hb.P_avg --fn count,sum,min,max -f csv")
        .ok();
    assert_eq!(out.lines().count(), power.len() + 1, "{out}");
    for (line, values) in out.lines().skip(1).zip(power.values()) {
        let found: Vec<f64> = line
            .rsplit(',')
            .take(4)
            .map(|field| field.parse().unwrap())
            .collect();
        let (sum, magnitude) = values.values().fold((0.0, 0.0), |(sum, all), value| {
            (sum + value, all + value.abs())
        });
        let low = values.values().copied().fold(f64::INFINITY, f64::min);
        let high = values.values().copied().fold(f64::NEG_INFINITY, f64::max);
        assert_eq!(
            [found[3], found[1], found[0]],
            [values.len() as f64, low, high],
            "{line}"
        );
        // The plain sum that this test computes is less exact than the sum that the program prints.
        assert!((found[2] - sum).abs() <= magnitude * 1e-11, "{line}: {sum}");
    }
}
