//! The width of a bin.

use crate::functions::args;
use arrow::datatypes::{DataType, IntervalMonthDayNano, IntervalUnit};
use datafusion::arrow::compute::kernels::cast_utils::parse_interval_month_day_nano;
use datafusion::common::{Result, ScalarValue, plan_err};

pub(super) const NANOS_PER_DAY: i128 = 86_400 * args::NANOS_PER_SECOND as i128;

/// The length of a bin in local time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    /// Days and parts of days.
    Nanos(i128),
    /// Months of the calendar.
    Months(i64),
}

impl Width {
    /// Reads an interval, a duration or a text like `15 minutes`; `None` for null.
    pub(super) fn new(function: &str, width: &ScalarValue) -> Result<Option<Self>> {
        if width.is_null() {
            return Ok(None);
        }
        let interval = if let Some(text) = args::text(width) {
            match parse_interval_month_day_nano(text) {
                // Without a unit the parser would assume months, which is never intended.
                Ok(interval) if text.contains(char::is_alphabetic) => interval,
                _ => {
                    return plan_err!(
                        "{function}: the width is '{text}', expected an interval like '15 minutes'"
                    );
                }
            }
        } else {
            let month_day_nano = DataType::Interval(IntervalUnit::MonthDayNano);
            match width.cast_to(&month_day_nano) {
                Ok(ScalarValue::IntervalMonthDayNano(Some(interval))) => interval,
                _ => return plan_err!("{function}: the width is {width}, expected an interval"),
            }
        };
        let nanos = i128::from(interval.days) * NANOS_PER_DAY + i128::from(interval.nanoseconds);
        match (interval.months, nanos) {
            (0, 1..) => Ok(Some(Self::Nanos(nanos))),
            (1.., 0) => Ok(Some(Self::Months(interval.months.into()))),
            (0, _) => plan_err!("{function}: the width is {width}, expected more than zero"),
            _ => plan_err!(
                "{function}: the width is {width}, expected either months and years or days and parts of days"
            ),
        }
    }

    /// Whether the bins consist of whole days or months.
    pub(super) fn is_calendar(self) -> bool {
        match self {
            Self::Nanos(nanos) => nanos % NANOS_PER_DAY == 0,
            Self::Months(_) => true,
        }
    }

    /// The width as an interval; `None` if it has too many nanoseconds.
    pub(super) fn interval(self) -> Option<IntervalMonthDayNano> {
        Some(match self {
            Self::Nanos(nanos) => IntervalMonthDayNano::new(0, 0, i64::try_from(nanos).ok()?),
            Self::Months(months) => IntervalMonthDayNano::new(i32::try_from(months).ok()?, 0, 0),
        })
    }
}
