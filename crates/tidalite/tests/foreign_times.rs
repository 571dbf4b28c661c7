//! Times of other crates are converted to timestamps and back.

#![cfg(all(feature = "jiff", feature = "chrono"))]

use tidalite::{ErrorKind, Timestamp};

const TIMES: [Timestamp; 5] = [
    Timestamp(i64::MIN),
    Timestamp(-1),
    Timestamp(0),
    Timestamp(1_401_581_400_250_000_001),
    Timestamp(i64::MAX),
];

#[test]
fn times_of_jiff_come_back() {
    for t in TIMES {
        let time = jiff::Timestamp::from(t);
        assert_eq!(Timestamp::try_from(time).expect("in range"), t);
        let zoned = time.to_zoned(jiff::tz::TimeZone::fixed(jiff::tz::offset(2)));
        assert_eq!(Timestamp::try_from(&zoned).expect("in range"), t);
        assert_eq!(time.to_string(), t.to_string());
    }
    for far in [jiff::Timestamp::MIN, jiff::Timestamp::MAX] {
        let error = Timestamp::try_from(far).expect_err("beyond the range");
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }
}

#[test]
fn times_of_chrono_come_back() {
    for t in TIMES {
        let time = chrono::DateTime::<chrono::Utc>::from(t);
        assert_eq!(Timestamp::try_from(time).expect("in range"), t);
    }
    let east = chrono::DateTime::parse_from_rfc3339("2014-06-01T02:10:00.25+02:00");
    assert_eq!(
        Timestamp::try_from(east.expect("a time")).expect("in range"),
        Timestamp::parse("2014-06-01T00:10:00.25Z").expect("a time")
    );
    for far in [
        chrono::DateTime::<chrono::Utc>::MIN_UTC,
        chrono::DateTime::<chrono::Utc>::MAX_UTC,
    ] {
        let error = Timestamp::try_from(far).expect_err("beyond the range");
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }
}
