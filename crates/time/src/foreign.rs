//! Conversions between [`Timestamp`] and the times of `jiff` and `chrono`, with the features `jiff` and `chrono`.

#[cfg(feature = "chrono")]
mod of_chrono {
    use crate::error::TimestampError;
    use crate::timestamp::Timestamp;
    use chrono::{DateTime, TimeZone, Utc};

    impl<Z: TimeZone> TryFrom<DateTime<Z>> for Timestamp {
        type Error = TimestampError;

        /// # Errors
        /// For a time before 1677 or after 2262.
        fn try_from(time: DateTime<Z>) -> Result<Self, TimestampError> {
            time.timestamp_nanos_opt()
                .map(Self)
                .ok_or_else(|| TimestampError::out_of_range(&time))
        }
    }

    impl From<Timestamp> for DateTime<Utc> {
        fn from(t: Timestamp) -> Self {
            Self::from_timestamp_nanos(t.0)
        }
    }
}

#[cfg(feature = "jiff")]
mod of_jiff {
    use crate::error::TimestampError;
    use crate::timestamp::Timestamp;

    impl TryFrom<jiff::Timestamp> for Timestamp {
        type Error = TimestampError;

        /// # Errors
        /// For a time before 1677 or after 2262.
        fn try_from(time: jiff::Timestamp) -> Result<Self, TimestampError> {
            i64::try_from(time.as_nanosecond())
                .map(Self)
                .map_err(|_| TimestampError::out_of_range(&time))
        }
    }

    impl TryFrom<&jiff::Zoned> for Timestamp {
        type Error = TimestampError;

        /// # Errors
        /// As for `jiff::Timestamp`.
        fn try_from(time: &jiff::Zoned) -> Result<Self, TimestampError> {
            time.timestamp().try_into()
        }
    }

    impl From<Timestamp> for jiff::Timestamp {
        fn from(t: Timestamp) -> Self {
            // The conversion cannot fail: jiff covers more years than 1677 to 2262.
            Self::from_nanosecond(i128::from(t.0)).expect("jiff covers all timestamps")
        }
    }
}

#[cfg(all(test, feature = "jiff", feature = "chrono"))]
mod tests {
    use crate::timestamp::Timestamp;

    const TIMES: [Timestamp; 5] = [
        Timestamp::MIN,
        Timestamp(-1),
        Timestamp(0),
        Timestamp(1_401_581_400_250_000_001),
        Timestamp::MAX,
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
            assert!(error.to_string().contains("1677 to 2262"), "{error}");
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
            assert!(error.to_string().contains("1677 to 2262"), "{error}");
        }
    }
}
