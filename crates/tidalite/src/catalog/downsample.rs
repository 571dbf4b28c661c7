//! Downsampling: old rows of a series are replaced by figures of windows, which are the rows of another series.
//!
//! Text of a rule in a policy, for the example of daily windows of a meter:
//!
//! ```text
//! window 1d              "ns", "d" or "mo", with the number before it
//! zone Europe/Berlin     for days and months
//! origin 0               nanoseconds since 1970; left out if there is none
//! suffix 1d
//! figures count,mean,p95
//! ```

use crate::types::error::cause::Cause;
use crate::types::error::{Error, Result};
use crate::types::figure::Figure;
use crate::types::grid::Grid;
use crate::types::name::SeriesName;
use crate::types::schema::Schema;

/// Replacement of old rows by figures of windows; part of a [`Retention`](crate::retention::Retention) policy.
///
/// The rows of the windows are stored in a series of their own: its metric is the metric of the source, a dot and the
/// suffix; it has the tags of the source (`power{farm="hb"}` and `power.1h{farm="hb"}`). A row has the start of its
/// window as its time, and a column for each numeric column of the source and figure: `mean(speed)`; plain `mean` for a
/// column called `value`. Numbers are nullable floats, counts integers. The annotation `downsampled` of that series
/// says how far the source is replaced; it must not be changed.
///
/// The last replaced row with a value of each column stays in the source, so that changes and integrals continue
/// without a gap. Rows that arrive later for a window that is already replaced are added to its count, sum and
/// extremes, and to spread, mean and deviation if the figures are stored from which these follow; the other figures
/// stay.
///
/// Series without a name and series without a numeric column are not downsampled: the policy leaves their rows where
/// they are. Texts of series that have numbers, too, are not kept in windows.
#[derive(Clone, Debug, PartialEq)]
pub struct Downsample {
    /// Width and alignment of the windows that replace old rows.
    pub grid: Grid,
    /// The figures of each window; at least one.
    pub figures: Vec<Figure>,
    /// Last part of the metric of the series with the windows, such as `1h`. Series with such metrics are not sources.
    pub suffix: String,
}

/// Maximum number of figures of a rule.
const FIGURES_MAX: usize = 16;
/// Maximum length of a suffix in bytes.
const SUFFIX_BYTES_MAX: usize = 32;

/// A column of a series of windows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StoredFigure {
    /// Number of the column in the source.
    pub(crate) source: usize,
    pub(crate) figure: Figure,
    pub(crate) name: String,
}

/// Key of the annotation of a series of windows that stores a [`Border`].
const BORDER_KEY: &str = "downsampled";

/// How far a source is replaced by windows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Border {
    /// The first time that is not replaced, in the source's unit.
    pub(crate) end: i64,
    /// The times of replaced rows that stay in the source, ascending.
    pub(crate) kept: Vec<i64>,
}

impl Border {
    /// Reads the border of a series of windows with a function that reads its annotations.
    pub(crate) fn read(
        annotation: impl FnOnce(&str) -> Result<Option<String>>,
    ) -> Result<Option<Self>> {
        let Some(text) = annotation(BORDER_KEY)? else {
            return Ok(None);
        };
        let numbers = text.split(' ').map(|number| number.parse().ok());
        let Some(mut kept) = numbers.collect::<Option<Vec<i64>>>() else {
            let problem = format!(
                "the annotation {BORDER_KEY} is {text:?}, not a list of times; remove it, and all rows of the source are replaced again"
            );
            return Err(Error::from(Cause::Figure { problem }));
        };
        let end = kept.remove(0);
        Ok(Some(Self { end, kept }))
    }

    /// The annotation that stores the border.
    pub(crate) fn annotation(&self) -> (&'static str, String) {
        let times = std::iter::once(&self.end).chain(&self.kept);
        let times: Vec<String> = times.map(ToString::to_string).collect();
        (BORDER_KEY, times.join(" "))
    }
}

/// The name of the column with a figure of a column of the source.
pub(crate) fn stored_name(figure: Figure, column: &str) -> String {
    match column {
        "value" => figure.to_string(),
        column => format!("{figure}({column})"),
    }
}

impl Downsample {
    pub(crate) fn check(&self) -> Result<()> {
        let problem = |problem: String| Err(Error::from(Cause::Figure { problem }));
        if self.figures.is_empty() || self.figures.len() > FIGURES_MAX {
            let count = self.figures.len();
            return problem(format!(
                "{count} figures of a window: 1 to {FIGURES_MAX} can be"
            ));
        }
        for (place, figure) in self.figures.iter().enumerate() {
            if Figure::named(&figure.to_string()) != Some(*figure) {
                return problem(format!("{figure:?} is no figure with a name"));
            }
            if self.figures[..place].contains(figure) {
                return problem(format!("{figure} is there twice"));
            }
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if self.suffix.is_empty()
            || self.suffix.len() > SUFFIX_BYTES_MAX
            || !self.suffix.chars().all(is_plain)
        {
            return problem(format!(
                "the suffix `{}` of a series of windows: give 1 to {SUFFIX_BYTES_MAX} letters and digits",
                self.suffix
            ));
        }
        if Self::parse(&self.text()).ok().as_ref() != Some(self) {
            return problem("the time zone has no name, so it cannot be stored".to_owned());
        }
        Ok(())
    }

    /// Whether a series with this name has windows of this rule.
    pub(crate) fn is_target(&self, name: &SeriesName) -> bool {
        let rest = name.metric().strip_suffix(self.suffix.as_str());
        rest.is_some_and(|rest| rest.ends_with('.'))
    }

    /// The name of the series with the windows.
    pub(crate) fn target(&self, source: &SeriesName) -> Result<SeriesName> {
        let metric = format!("{}.{}", source.metric(), self.suffix);
        SeriesName::new(metric, source.tags().iter().cloned())
    }

    /// The columns of the windows of a source: none if it has no numeric column.
    pub(crate) fn columns(&self, source: &Schema) -> Vec<StoredFigure> {
        let is_point = source.columns == Schema::point().columns;
        let columns = source.columns.iter().enumerate();
        let numeric = columns.filter(|(c, column)| !(column.ty.is_text() || is_point && *c == 0));
        let stored = |(source, column): (usize, &crate::types::column::Column)| {
            let name = column.name.clone();
            self.figures.iter().map(move |&figure| StoredFigure {
                source,
                figure,
                name: stored_name(figure, &name),
            })
        };
        numeric.flat_map(stored).collect()
    }

    pub(crate) fn text(&self) -> String {
        let figures: Vec<String> = self.figures.iter().map(ToString::to_string).collect();
        format!(
            "{}\nsuffix {}\nfigures {}\n",
            self.grid.text(),
            self.suffix,
            figures.join(",")
        )
    }

    pub(crate) fn parse(text: &str) -> Result<Self> {
        let problem = |problem: &str| {
            Error::from(Cause::Figure {
                problem: format!("{problem} in a rule of downsampling: {text:?}"),
            })
        };
        let mut lines: Vec<&str> = text.lines().collect();
        let figures = lines.pop().and_then(|line| line.strip_prefix("figures "));
        let suffix = lines.pop().and_then(|line| line.strip_prefix("suffix "));
        let (Some(figures), Some(suffix)) = (figures, suffix) else {
            return Err(problem("no suffix or no figures"));
        };
        let figures = figures.split(',').map(Figure::named);
        Ok(Self {
            grid: Grid::parse(&lines.join("\n"))?,
            figures: figures
                .collect::<Option<_>>()
                .ok_or_else(|| problem("an unknown figure"))?,
            suffix: suffix.to_owned(),
        })
    }
}
