//! Windows of time: of equal width, or of the calendar.

use crate::types::calendar::{Calendar, CalendarUnit};
use crate::types::error::cause::Cause;
use crate::types::error::{Error, Result};
use crate::types::instant::Steps;
use crate::types::schema::Unit;
use crate::types::zone::Zone;
use std::fmt;
use tidalite_series::WindowGrid;
use tidalite_time::Timestamp;

/// Windows for [aggregates](crate::Query::windows): of equal width ([`hours`](Self::hours) and shorter), or of the
/// calendar ([`days`](Self::days) and longer). Those of the calendar begin at local midnight in a
/// [time zone](Self::in_zone), UTC unless told, so a day has 23 or 25 hours where clocks are set.
///
/// ```
/// # use std::sync::Arc;
/// use tidalite::{Figure, Grid, Options, Zone};
/// use tidalite::storage::MemoryStorage;
/// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
/// let mut tx = db.begin_write()?;
/// let mut meter = tx.series("meter")?;
/// meter.insert("2024-03-30T22:30:00Z", 1.0)?;   // 23:30 in Berlin
/// meter.insert("2024-03-30T23:30:00Z", 2.0)?;   // 0:30 of the next day, which has 23 hours
/// meter.insert("2024-03-31T21:30:00Z", 4.0)?;   // 23:30 of that day, in summer time
/// let meter = meter.view()?;
/// # // The database of zones may be missing here.
/// # let berlin = Zone::named("CET-1CEST,M3.5.0,M10.5.0/3")?;
/// # const _: &str = stringify!(
/// let berlin = Zone::named("Europe/Berlin")?;
/// # );
/// let days = meter.query(..).figures(Figure::Sum).windows(Grid::days(1).in_zone(berlin), "value")?;
/// let sums: Vec<_> = days.iter().map(|day| day.aggregate).collect();
/// assert_eq!(sums, [Some(1.0), Some(6.0)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    width: Width,
    /// The time at which a window begins, if it was given.
    origin: Option<Timestamp>,
    /// The time zone of days and months.
    zone: Zone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Width {
    Nanos(i64),
    /// Units in a window; the default anchor, see [`Calendar`].
    Calendar(CalendarUnit, i64, i64),
}

/// Monday before 1970-01-01, a Thursday.
const MONDAY: i64 = -3;

impl Grid {
    fn new(width: Width) -> Self {
        Self {
            width,
            origin: None,
            zone: Zone::UTC,
        }
    }

    /// Windows of `width` nanoseconds, one of which begins at 1970-01-01.
    #[must_use]
    pub fn nanos(width: i64) -> Self {
        Self::new(Width::Nanos(width))
    }

    /// Windows of this many seconds.
    #[must_use]
    pub fn seconds(n: i64) -> Self {
        Self::nanos(n.saturating_mul(1_000_000_000))
    }

    /// Windows of this many minutes.
    #[must_use]
    pub fn minutes(n: i64) -> Self {
        Self::seconds(n.saturating_mul(60))
    }

    /// Windows of this many hours. They have equal width, whatever clocks do: `hours(24)` begins at another time of day
    /// after a change of the clocks.
    #[must_use]
    pub fn hours(n: i64) -> Self {
        Self::minutes(n.saturating_mul(60))
    }

    /// Windows of this many days; of several days, one begins on 1970-01-01.
    #[must_use]
    pub fn days(n: i64) -> Self {
        Self::new(Width::Calendar(CalendarUnit::Days, n, 0))
    }

    /// Windows of this many weeks, which begin on Monday. An [`origin`](Self::origin) on another weekday makes them
    /// begin on that one.
    #[must_use]
    pub fn weeks(n: i64) -> Self {
        let days = n.saturating_mul(7);
        Self::new(Width::Calendar(CalendarUnit::Days, days, MONDAY))
    }

    /// Windows of this many months; of several months, one begins in January 1970.
    #[must_use]
    pub fn months(n: i64) -> Self {
        Self::new(Width::Calendar(CalendarUnit::Months, n, 0))
    }

    /// Windows of this many quarters, which begin in January, April, July and October.
    #[must_use]
    pub fn quarters(n: i64) -> Self {
        Self::months(n.saturating_mul(3))
    }

    /// Windows of this many years. An [`origin`](Self::origin) in another month makes them begin in that one: fiscal
    /// years.
    #[must_use]
    pub fn years(n: i64) -> Self {
        Self::months(n.saturating_mul(12))
    }

    /// Makes one window begin at this time. Of windows of days it is the local date that counts, of windows of months
    /// the month.
    #[must_use]
    pub fn origin(mut self, origin: Timestamp) -> Self {
        self.origin = Some(origin);
        self
    }

    /// The time zone of days, weeks, months, quarters and years. Windows of hours and shorter ones do not depend on it.
    #[must_use]
    pub fn in_zone(mut self, zone: Zone) -> Self {
        self.zone = zone;
        self
    }

    /// The windows as they are stored in a policy: a line each for width, zone and origin.
    pub(crate) fn text(&self) -> String {
        let width = match self.width {
            Width::Nanos(width) => format!("{width}ns"),
            Width::Calendar(unit, count, anchor) => {
                let unit = match (unit, anchor) {
                    (CalendarUnit::Days, MONDAY) => "wd",
                    (CalendarUnit::Days, _) => "d",
                    (CalendarUnit::Months, _) => "mo",
                };
                format!("{count}{unit}")
            }
        };
        let origin = self.origin.map(|origin| format!("\norigin {}", origin.0));
        let origin = origin.unwrap_or_default();
        format!("window {width}\nzone {}{origin}", self.zone)
    }

    /// Parses the text of [`text`](Self::text).
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let parse = || {
            let mut lines = text.lines();
            let width = lines.next()?.strip_prefix("window ")?;
            let zone = lines.next()?.strip_prefix("zone ")?;
            let end = width.find(|c: char| c.is_ascii_alphabetic())?;
            let count = width[..end].parse().ok()?;
            let width = match &width[end..] {
                "ns" => Width::Nanos(count),
                "d" => Width::Calendar(CalendarUnit::Days, count, 0),
                "wd" => Width::Calendar(CalendarUnit::Days, count, MONDAY),
                "mo" => Width::Calendar(CalendarUnit::Months, count, 0),
                _ => return None,
            };
            let origin = match lines.next() {
                Some(line) => Some(Timestamp(line.strip_prefix("origin ")?.parse().ok()?)),
                None => None,
            };
            let zone = Zone::named(zone).ok()?;
            Some(Self {
                width,
                origin,
                zone,
            })
        };
        parse().ok_or_else(|| {
            let problem = format!("no description of windows: {text:?}");
            Error::from(Cause::Figure { problem })
        })
    }

    /// A measure of the width, to order windows by: nanoseconds, with months of 30 days.
    pub(crate) fn rough_width(&self) -> i128 {
        const DAY: i128 = 86_400_000_000_000;
        match self.width {
            Width::Nanos(width) => width.into(),
            Width::Calendar(CalendarUnit::Days, count, _) => i128::from(count) * DAY,
            Width::Calendar(CalendarUnit::Months, count, _) => i128::from(count) * 30 * DAY,
        }
    }

    /// The windows in steps of `unit`.
    pub(crate) fn in_unit(&self, unit: Unit) -> Result<StepGrid> {
        let step = unit.nanos();
        let origin = self.origin.unwrap_or(Timestamp(0));
        match self.width {
            Width::Nanos(width) => {
                if width < 1 || width % step != 0 || origin.0 % step != 0 {
                    let problem = format!(
                        "windows of {width} ns from {origin} are no whole steps of {step} ns, in which the series counts"
                    );
                    return Err(Error::from(Cause::Schema { problem }));
                }
                Ok(StepGrid::Even {
                    width: width / step,
                    origin: origin.0 / step + unit.steps_to_1970(),
                })
            }
            Width::Calendar(calendar_unit, count, _) => {
                if count < 1 {
                    let name = match calendar_unit {
                        CalendarUnit::Days => "days",
                        CalendarUnit::Months => "months",
                    };
                    let problem = format!("windows of {count} {name}: at least 1 is needed");
                    return Err(Error::from(Cause::Schema { problem }));
                }
                Ok(StepGrid::Calendar(
                    self.calendar(calendar_unit, count),
                    unit,
                ))
            }
        }
    }

    fn calendar(&self, unit: CalendarUnit, count: i64) -> Calendar {
        let zone = self.zone.clone();
        let anchor = match (self.origin, self.width) {
            (Some(origin), _) => unit.number_of(zone.date_at(origin)),
            (None, Width::Calendar(_, _, anchor)) => anchor,
            (None, Width::Nanos(_)) => 0,
        };
        Calendar {
            unit,
            count,
            anchor,
            zone,
        }
    }

    /// The windows on the clock, in nanoseconds.
    ///
    /// # Errors
    /// As for `in_unit`.
    pub(crate) fn on_clock(&self) -> Result<StepGrid> {
        self.in_unit(Unit::Nanos)
    }
}

/// Writes the width, and zone and origin if they are not the default: `15m`, `1d in Europe/Berlin`,
/// `1y from 2013-04-01T00:00:00Z`.
impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Each unit with the number of smaller ones that it has.
        let (mut count, units): (i64, &[(&str, i64)]) = match self.width {
            Width::Nanos(width) => {
                let units = &[
                    ("ns", 1000),
                    ("us", 1000),
                    ("ms", 1000),
                    ("s", 60),
                    ("m", 60),
                    ("h", 0),
                ];
                (width, units)
            }
            Width::Calendar(CalendarUnit::Days, count, MONDAY) => (count, &[("d", 7), ("w", 0)]),
            Width::Calendar(CalendarUnit::Days, count, _) => (count, &[("d", 0)]),
            Width::Calendar(CalendarUnit::Months, count, _) => (count, &[("mo", 12), ("y", 0)]),
        };
        let mut name = "";
        for &(unit, next) in units {
            name = unit;
            if next == 0 || count % next != 0 {
                break;
            }
            count /= next;
        }
        write!(f, "{count}{name}")?;
        if self.zone != Zone::UTC {
            write!(f, " in {}", self.zone)?;
        }
        match self.origin {
            Some(origin) if origin.0 != 0 => write!(f, " from {origin}"),
            _ => Ok(()),
        }
    }
}

/// Windows in steps of a unit of time. They have numbers, which ascend with time.
#[derive(Clone, Debug)]
pub(crate) enum StepGrid {
    /// Window k begins at `origin + k width`.
    Even {
        width: i64,
        origin: i64,
    },
    Calendar(Calendar, Unit),
}

impl StepGrid {
    /// The number of the window that contains the time `t`.
    pub(crate) fn index(&self, t: i64) -> i128 {
        match self {
            Self::Even { width, origin } => {
                (i128::from(t) - i128::from(*origin)).div_euclid((*width).into())
            }
            Self::Calendar(calendar, unit) => calendar.index(nanos_of(t, *unit)),
        }
    }

    /// The first time of the window with this number, clamped to the range of times.
    pub(crate) fn start(&self, index: i128) -> i64 {
        let clamped = |t: i128| t.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        match self {
            Self::Even { width, origin } => {
                clamped((i128::from(*width) * index).saturating_add((*origin).into()))
            }
            Self::Calendar(calendar, unit) => {
                let start = calendar.start(index);
                // Rounded up: clocks are set at whole seconds, and every unit has these.
                let steps = start.div_euclid(unit.nanos().into())
                    + i128::from(start.rem_euclid(unit.nanos().into()) != 0);
                clamped(steps.saturating_add(unit.steps_to_1970().into()))
            }
        }
    }

    /// First and last time of the window that contains the time `t`.
    pub(crate) fn window(&self, t: i64) -> (i64, i64) {
        let index = self.index(t);
        let next = self.start(index + 1);
        // The last window of the calendar includes the last time.
        let last = if next == i64::MAX { i64::MAX } else { next - 1 };
        (self.start(index), last)
    }

    /// Calls `f` with the windows in the form of the tree.
    pub(crate) fn with<T>(&self, f: impl FnOnce(WindowGrid<'_>) -> T) -> T {
        match self {
            Self::Even { width, origin } => f(WindowGrid::Even {
                width: *width,
                origin: *origin,
            }),
            Self::Calendar(..) => f(WindowGrid::Calendar(&|t| self.window(t))),
        }
    }
}

fn nanos_of(t: i64, unit: Unit) -> i128 {
    (i128::from(t) - i128::from(unit.steps_to_1970())) * i128::from(unit.nanos())
}

/// Windows for a query of one series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Windows {
    /// Windows aligned to the clock or the calendar, whatever the unit of the series is.
    Grid(Grid),
    /// Windows in the unit of the series. Window k contains the steps from `origin + k width` up to, not including,
    /// `origin + (k + 1) width`.
    Steps {
        /// Width of a window, at least 1.
        width: Steps,
        /// The start of one window.
        origin: Steps,
    },
}

impl Windows {
    /// The windows in steps of `unit`.
    pub(crate) fn in_unit(&self, unit: Unit) -> Result<StepGrid> {
        match self {
            Self::Grid(grid) => grid.in_unit(unit),
            Self::Steps { width, origin } => Ok(StepGrid::Even {
                width: width.0,
                origin: origin.0,
            }),
        }
    }
}

impl From<Grid> for Windows {
    fn from(grid: Grid) -> Self {
        Self::Grid(grid)
    }
}

impl From<&Grid> for Windows {
    fn from(grid: &Grid) -> Self {
        Self::Grid(grid.clone())
    }
}

/// Windows of this width, one of which begins at step 0.
impl From<Steps> for Windows {
    fn from(width: Steps) -> Self {
        (width, Steps(0)).into()
    }
}

/// Width and origin.
impl From<(Steps, Steps)> for Windows {
    fn from((width, origin): (Steps, Steps)) -> Self {
        Self::Steps { width, origin }
    }
}
