//! Conversions between [`Timestamp`] and the times of `jiff` and `chrono`, with the features `jiff` and `chrono`.

#[cfg(feature = "chrono")]
mod of_chrono {
    use crate::types::error::{Error, Result};
    use crate::types::time::{Timestamp, out_of_range};
    use chrono::{DateTime, TimeZone, Utc};

    impl<Z: TimeZone> TryFrom<DateTime<Z>> for Timestamp {
        type Error = Error;

        /// # Errors
        /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for a time before 1677 or after 2262.
        fn try_from(time: DateTime<Z>) -> Result<Self> {
            time.timestamp_nanos_opt()
                .map(Self)
                .ok_or_else(|| out_of_range(&time))
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
    use crate::types::error::{Error, Result};
    use crate::types::time::{Timestamp, out_of_range};

    impl TryFrom<jiff::Timestamp> for Timestamp {
        type Error = Error;

        /// # Errors
        /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for a time before 1677 or after 2262.
        fn try_from(time: jiff::Timestamp) -> Result<Self> {
            i64::try_from(time.as_nanosecond())
                .map(Self)
                .map_err(|_| out_of_range(&time))
        }
    }

    impl TryFrom<&jiff::Zoned> for Timestamp {
        type Error = Error;

        /// # Errors
        /// As for `jiff::Timestamp`.
        fn try_from(time: &jiff::Zoned) -> Result<Self> {
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
