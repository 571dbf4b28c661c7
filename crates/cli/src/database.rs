//! Access of commands to the library: opening a database with clear errors, selecting series, and converting times to
//! the unit of a series.

use crate::args::{RangeArgs, VersionArgs};
use crate::exit::{Exit, Failure, Outcome};
use crate::output::{Cell, printable};
use crate::store;
use crate::style::Palette;
use crate::time::{Nanos, TimeShow, read_any};
use std::collections::HashSet;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use tidalite::query::History;
use tidalite::{
    Column, Database, ErrorKind, OpenMode, ReadTxn, Series, SeriesId, SeriesInfo, SeriesName,
    SeriesPattern, Timestamp, Tuning, Unit, Value,
};

/// Maximum number of series names that are suggested when a pattern matches nothing.
const SUGGESTIONS: usize = 3;

/// Opens an existing database for reading.
pub(crate) fn open(path: &Path) -> Outcome<Database> {
    refuse_missing(path)?;
    let opened = try_open(path).map_err(|error| failure(path, &error));
    opened.inspect(|database| warn_of_lost_commits(path, database))
}

/// Warns on standard error about missing durable commits, before the command prints anything.
fn warn_of_lost_commits(path: &Path, database: &Database) {
    let Some(lost) = database.recovery().lost else {
        return;
    };
    let path = printable(&path.display().to_string());
    eprintln!("warning: {path}: {lost}");
    eprintln!("next: {}", after_lost_commits(&path));
}

/// Advice for the user of a database that lacks durable commits.
fn after_lost_commits(path: &str) -> String {
    format!(
        "`tidalite check {path}` lists all damage; restore a backup (tidalite restore), or save the remaining data: tidalite salvage {path} new.tdl; to write without these commits, add --accept-lost-commits"
    )
}

/// Opens an existing database for reading, like `open`, but returns the library's error and does not warn.
pub(crate) fn try_open(path: &Path) -> tidalite::Result<Database> {
    store::options()
        .mode(OpenMode::Open)
        .read_only(true)
        .open(path)
}

/// Opens an existing database for writing.
pub(crate) fn open_to_write(path: &Path) -> Outcome<Database> {
    refuse_missing(path)?;
    patiently(path, OpenMode::Open)
}

/// Length in bytes of a file or block device; 0 if it cannot be determined.
pub(crate) fn length_of(path: &Path) -> u64 {
    use std::io::{Seek, SeekFrom};
    let end = std::fs::File::open(path).and_then(|mut file| file.seek(SeekFrom::End(0)));
    end.unwrap_or(0)
}

/// Opens a database for a backup: for writing, because commits that are not durable yet must become durable first; only
/// for reading if the user may not write.
pub(crate) fn open_to_back_up(path: &Path) -> Outcome<Database> {
    refuse_missing(path)?;
    match store::options().mode(OpenMode::Open).open(path) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => open(path),
        // The commits that are still present can be backed up, and should be before the next write.
        Err(error) if error.kind() == ErrorKind::CommitsLost => open(path),
        opened => opened
            .map_err(|error| failure(path, &error))
            .inspect(|database| warn_of_lost_commits(path, database)),
    }
}

/// Opens a database for statements that may write: for writing if possible, otherwise only for reading, with a note.
#[cfg(feature = "sql")]
pub(crate) fn open_to_query(path: &Path) -> Outcome<Database> {
    refuse_missing(path)?;
    let reads_at_least = [
        ErrorKind::PermissionDenied,
        ErrorKind::CommitsLost,
        ErrorKind::Locked,
    ];
    let options = store::options().mode(OpenMode::Open).tuning(telling());
    match options.open(path) {
        Err(error) if reads_at_least.contains(&error.kind()) => {
            let database = open(path)?;
            let shown = printable(&path.display().to_string());
            eprintln!("note: {shown} is open for reading only: {error}");
            Ok(database)
        }
        opened => opened
            .map_err(|error| failure(path, &error))
            .inspect(|database| warn_of_lost_commits(path, database)),
    }
}

/// Opens a database for writing and creates it if it does not exist.
pub(crate) fn open_or_create(path: &Path) -> Outcome<Database> {
    refuse_wrong_place(path)?;
    patiently(path, OpenMode::CreateOrOpen)
}

/// Opens a database for writing. Prints a message while another process has the writer lock.
fn patiently(path: &Path, mode: OpenMode) -> Outcome<Database> {
    store::options()
        .mode(mode)
        .tuning(telling())
        .open(path)
        .map_err(|error| failure(path, &error))
        .inspect(|database| warn_of_lost_commits(path, database))
}

/// Prints a message while another process has the writer lock.
fn telling() -> Tuning {
    Tuning::new().on_wait(|writer| {
        eprintln!(
            "waiting: process {} has been writing for {} s",
            writer.process,
            writer.since.as_secs()
        );
    })
}

/// Rejects a path that cannot be a database file: a folder, or a name in a missing folder.
pub(crate) fn refuse_wrong_place(path: &Path) -> Outcome {
    if path.is_dir() {
        return Err(a_folder(path));
    }
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() && !folder.is_dir() => {
            let folder = folder.display();
            Err(Failure::not_found(format!("there is no folder {folder}"))
                .hint(format!("mkdir -p {folder}")))
        }
        _ => Ok(()),
    }
}

/// Returns an error for a missing file or a folder, before anything is opened.
pub(crate) fn refuse_missing(path: &Path) -> Outcome {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Err(a_folder(path)),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let path = path.display();
            Err(Failure::not_found(format!("there is no database {path}"))
                .hint(format!("create it: tidalite import {path} data.csv")))
        }
        Err(error) => Err(Failure::file("cannot open", path, &error)),
    }
}

fn a_folder(path: &Path) -> Failure {
    Failure::bad_input(format!("{} is a folder, not a database", path.display()))
        .hint("a database is one file, usually called something.tdl")
}

/// Converts an error like `failure`, for a call on a series with this unit. If the error contains a time, the message
/// shows that time as a date.
pub(crate) fn failure_in(path: &Path, error: &tidalite::Error, unit: Unit) -> Failure {
    let failure = failure(path, error);
    match (error.series(), error.time()) {
        (Some(series), Some(time)) => Failure {
            message: format!(
                "series {series} already has a row at {}, and its merge policy refuses another",
                unit.text(time)
            ),
            ..failure
        },
        _ => failure,
    }
}

/// Converts an error of the library to a failure with advice for the user.
pub(crate) fn failure(path: &Path, error: &tidalite::Error) -> Failure {
    let shown = path.display();
    let named = || format!("{shown}: {error}");
    match error.kind() {
        ErrorKind::AlreadyExists if error.time().is_some() => Failure::bad_input(error)
            .hint("--merge keep-first skips such points, --merge replace stores the new ones, --merge keep-all keeps both, --merge keep-distinct keeps both if they differ"),
        ErrorKind::NotFound if error.name().is_some() => {
            let pin = error.name().unwrap_or_default();
            Failure::not_found(format!("{shown} has no pin `{pin}`"))
                .hint(format!("`tidalite pins {shown}` lists them"))
        }
        ErrorKind::NotFound if error.found_and_expected().is_some() => Failure::not_found(named()),
        ErrorKind::AlreadyExists if error.found_and_expected().is_some() => Failure::bad_input(named()),
        ErrorKind::AlreadyExists if error.io_error().is_none() => {
            Failure::bad_input(named()).hint(format!("`tidalite kv stat {shown}` lists the tables"))
        }
        ErrorKind::InvalidName => Failure::usage(error),
        // These errors name the next step.
        ErrorKind::InvalidInput | ErrorKind::WrongType if error.found_and_expected().is_some() => {
            Failure::bad_input(named())
        }
        ErrorKind::Schema => Failure::bad_input(error).hint(format!(
            "tidalite series {shown} lists the columns of each series, and its unit of time"
        )),
        ErrorKind::WrongType if error.key().is_some() => Failure::bad_input(named())
            .hint("tidalite kv scan prints the table, and with --in the table under a key"),
        ErrorKind::WrongType => Failure::bad_input(error).hint(format!(
            "tidalite kv stat {shown} shows which tables have several values per key"
        )),
        ErrorKind::Damaged => Failure::new(Exit::Damage, format!("{shown} is damaged: {}", damage(error)))
            .hint(format!(
                "tidalite check {shown} lists all damage; restore a backup, or save what is intact: tidalite salvage {shown} new.tdl"
            )),
        ErrorKind::CommitsLost => {
            let lost = error.lost_commits().map(ToString::to_string).unwrap_or_default();
            Failure::new(Exit::Damage, format!("{shown}: {lost}; nothing was changed"))
                .hint(after_lost_commits(&shown.to_string()))
        }
        ErrorKind::NotADatabase => Failure::bad_input(named()).hint(format!(
            "give the .tdl file first, then other files; for a database with a lost head: tidalite salvage {shown} new.tdl"
        )),
        ErrorKind::Unsupported => unsupported(path, error),
        ErrorKind::Locked => locked(path, error),
        ErrorKind::Moved => Failure::new(Exit::Failure, error)
            .hint(format!("check the file at {shown}, then repeat the command: unconfirmed changes are not in it")),
        ErrorKind::LargeFile => Failure::new(Exit::Failure, named()).hint("give its path: --large FILE"),
        ErrorKind::OutOfOrder | ErrorKind::Broken | ErrorKind::Limit => Failure::new(Exit::Failure, error),
        _ => of_the_system(path, error),
    }
}

/// The text of the damage alone, without the next steps that the library's error names.
fn damage(error: &tidalite::Error) -> String {
    error
        .corrupt()
        .map_or_else(|| error.to_string(), ToString::to_string)
}

/// The failure for a file of another version or for a network file system.
fn unsupported(path: &Path, error: &tidalite::Error) -> Failure {
    let shown = path.display();
    let named = format!("{shown}: {error}");
    match error.found_and_expected() {
        None => Failure::new(Exit::Failure, error)
            .hint("copy it to a local disk, or open it exclusively: --exclusive"),
        Some(_) => Failure::bad_input(named)
            .hint("`tidalite --version` shows the version of this program; another version wrote the file"),
    }
}

/// The failure for a database, lock file or writer lock that another process uses.
fn locked(path: &Path, error: &tidalite::Error) -> Failure {
    let shown = path.display();
    match (error.path(), error.process(), error.io_error()) {
        (Some(lock), _, Some(_)) => {
            let lock = lock.display();
            Failure::new(Exit::Busy, format!("{shown}: {error}")).hint(format!(
                "`ls -l {lock}` shows its permissions; its owner can allow its group to write with `chmod g+w {lock}`"
            ))
        }
        (Some(_), Some(process), _) => Failure::new(Exit::Busy, error).hint(format!(
            "`ps -p {process}` shows that process; when it has ended, repeat the command"
        )),
        (Some(_), None, _) => Failure::new(Exit::Busy, error)
            .hint(format!("`fuser {shown}` shows which process has it open")),
        _ => Failure::new(Exit::Busy, error).hint(format!(
            "tidalite readers {shown} shows the processes that use it"
        )),
    }
}

/// The failure for an error of the operating system (when opening a file, in a call on an open file, for a full disk),
/// and for all other errors.
fn of_the_system(path: &Path, error: &tidalite::Error) -> Failure {
    use std::io::ErrorKind::{BrokenPipe, StorageFull};
    let named = || Failure::new(Exit::Failure, format!("{}: {error}", path.display()));
    match (error.path(), error.io_error()) {
        // The path may belong to the lock file instead of the database.
        (Some(file), Some(source)) => Failure::file("cannot open", file, source),
        (Some(_), None) => Failure::new(Exit::Failure, error)
            .hint("set --lock-path FILE, equally for all processes that use the database"),
        // The broken pipe is standard output, whose reader has closed it (`copy FILE - | head`).
        (None, Some(source)) if source.kind() == BrokenPipe => {
            Failure::from(std::io::Error::from(BrokenPipe))
        }
        (None, Some(source)) => named().hint(match source.kind() {
            StorageFull => "free some space on the disk and repeat the command",
            _ => "the disk or its file system reported an error; `dmesg` may show more",
        }),
        (None, None) if error.kind() == ErrorKind::Full && error.limit().is_none() => {
            named().hint("free some space on the disk and repeat the command")
        }
        (None, None) => named(),
    }
}

/// A snapshot of a database that was opened for reading, with the path for messages.
pub(crate) struct Reader<'a> {
    path: &'a Path,
    txn: ReadTxn,
}

impl<'a> Reader<'a> {
    /// Opens the version that the user has selected.
    pub(crate) fn open(version: &'a VersionArgs) -> Outcome<Self> {
        let path = version.file.as_path();
        Self::at(&open(path)?, path, version.pin.as_deref())
    }

    /// Opens the newest version.
    pub(crate) fn newest(path: &'a Path) -> Outcome<Self> {
        Self::at(&open(path)?, path, None)
    }

    /// Takes a snapshot of a pin, or of the newest version if no pin is given.
    pub(crate) fn at(database: &Database, path: &'a Path, pin: Option<&str>) -> Outcome<Self> {
        let txn = match pin {
            Some(pin) => database.begin_read_at(pin),
            None => database.begin_read(),
        };
        let txn = txn.map_err(|error| failure(path, &error))?;
        Ok(Self { path, txn })
    }

    /// Converts an error of the library to a failure that names the file.
    pub(crate) fn fail(&self, error: &tidalite::Error) -> Failure {
        failure(self.path, error)
    }

    /// The windows that have replaced older points of a series, together with its points; `None` if none are replaced.
    pub(crate) fn history(&self, info: &SeriesInfo) -> Outcome<Option<History<'_>>> {
        let Some(name) = &info.name else {
            return Ok(None);
        };
        let history = self.txn.history(&name.to_string());
        let history = history.map_err(|error| self.fail(&error))?;
        Ok(history.filter(|history| history.border().is_some()))
    }

    /// Shortens the range so that it cuts no stored window; `None` if nothing is left, or if all of it is points.
    /// Prints a note about the part that is read from stored windows, and a note if the range was shortened.
    pub(crate) fn range_of_history(
        &self,
        history: &History<'_>,
        span: &Span,
        messages: Palette,
    ) -> Outcome<Option<(i64, i64)>> {
        let info = history.rows().info();
        let unit = info.schema.unit;
        let (Some(border), Some(there)) = (history.border(), history.span()) else {
            return Ok(None);
        };
        let Some((from, to)) = span.within(unit, there).filter(|(from, _)| *from < border) else {
            return Ok(None);
        };
        let uncut = history
            .uncut((from, to))
            .map_err(|error| self.fail(&error))?;
        let (note, label) = (messages.warning("note:"), info.label());
        eprintln!(
            "{note} {label} before {}: from stored windows",
            unit.text(border)
        );
        if uncut != (from, to) {
            eprintln!(
                "{note} {label}: the range is cut to {} .. {}, the ends of stored windows",
                unit.text(uncut.0),
                unit.text(uncut.1.saturating_add(1))
            );
        }
        Ok(Some(uncut).filter(|(from, to)| from <= to))
    }

    /// Prints a note that older points of a series are replaced by windows, for a command that reads points only.
    pub(crate) fn mention_replaced(
        &self,
        info: &SeriesInfo,
        span: &Span,
        messages: Palette,
    ) -> Outcome {
        let Some(history) = self.history(info)? else {
            return Ok(());
        };
        let (unit, border) = (info.schema.unit, history.border());
        let range = history.span().and_then(|there| span.within(unit, there));
        if let (Some((from, _)), Some(border)) = (range, border)
            && from < border
        {
            eprintln!(
                "{} {} before {}: points are replaced by windows in a series of their own, which are not read here",
                messages.warning("note:"),
                info.label(),
                unit.text(border)
            );
        }
        Ok(())
    }

    /// Refuses a pattern with a tag key that no series has, for commands that remove or rename.
    pub(crate) fn refuse_unknown_keys(&self, pattern: &str) -> Outcome {
        let Ok(parsed) = SeriesPattern::parse(pattern) else {
            return Ok(());
        };
        match self.unknown_keys(&parsed)?.first() {
            Some(problem) => Err(
                Failure::not_found(format!("{problem}; nothing was changed"))
                    .hint("check the spelling: `tidalite tags FILE.tdl` lists the tags"),
            ),
            None => Ok(()),
        }
    }

    /// Lists the series that a pattern selects, ordered by name; returns an error if there are none.
    pub(crate) fn select(&self, pattern: &str) -> Outcome<Vec<Arc<SeriesInfo>>> {
        let parsed = SeriesPattern::parse(pattern).map_err(|error| {
            Failure::usage(error).hint(
                "write 'name', 'name*', 'name{tag=\"value\"}' or 'name{tag!=\"value\",other=~\"regex\"}', in single quotes; `tidalite series --help` shows all forms",
            )
        })?;
        let found = self.select_if_any(pattern)?;
        let unknown = self.unknown_keys(&parsed)?;
        if found.is_empty() {
            let all = self.txn.list("").map_err(|error| self.fail(&error))?;
            return Err(self.nothing_selected(pattern, &unknown, &all));
        }
        mention(&unknown);
        Ok(found)
    }

    /// Returns an error for a tag key that no series has.
    pub(crate) fn expect_tag(&self, key: &str) -> Outcome {
        if self.has_tag(key)? {
            return Ok(());
        }
        let path = self.path.display();
        let problem = format!("no series in {path} has the tag `{}`", printable(key));
        Err(Failure::not_found(problem).hint(format!("`tidalite tags {path}` lists the tags")))
    }

    fn has_tag(&self, key: &str) -> Outcome<bool> {
        let found = self
            .txn
            .tag_keys(key, 1)
            .map_err(|error| self.fail(&error))?;
        Ok(found.first().is_some_and(|found| found.text == key))
    }

    /// Prints a note about tag keys of a pattern that no series has, for commands that may select no series.
    pub(crate) fn mention_unknown_keys(&self, pattern: &str) -> Outcome {
        // An invalid pattern is reported by the call that uses it.
        if let Ok(pattern) = SeriesPattern::parse(pattern) {
            mention(&self.unknown_keys(&pattern)?);
        }
        Ok(())
    }

    /// A statement about each key of a pattern that no series has: a condition such as `farn!="hb"` selects all series.
    fn unknown_keys(&self, pattern: &SeriesPattern) -> Outcome<Vec<String>> {
        let mut unknown = Vec::new();
        for key in pattern.keys() {
            if !self.has_tag(key)? {
                unknown.push(format!("no series has the tag `{}`", printable(key)));
            }
        }
        Ok(unknown)
    }

    /// The snapshot, for questions that concern no single series.
    pub(crate) fn snapshot(&self) -> &ReadTxn {
        &self.txn
    }

    /// Lists the series that a pattern selects like `select`, but an empty list is no error, and nothing is noted.
    pub(crate) fn select_if_any(&self, pattern: &str) -> Outcome<Vec<Arc<SeriesInfo>>> {
        let mut found = self.txn.list(pattern).map_err(|error| self.fail(&error))?;
        found.sort_by_cached_key(|info| info.label());
        Ok(found)
    }

    /// Number of the commit that this reader shows.
    pub(crate) fn commit(&self) -> u64 {
        self.txn.txn().0
    }

    /// A reader of the newest commit of the same database.
    pub(crate) fn newer(&self, database: &Database) -> Outcome<Self> {
        Self::at(database, self.path, None)
    }

    /// Lists the series that any of the patterns selects, each once, in the order of the patterns.
    pub(crate) fn select_all(&self, patterns: &[String]) -> Outcome<Vec<Arc<SeriesInfo>>> {
        let (mut all, mut known) = (Vec::new(), HashSet::new());
        for pattern in patterns {
            let found = self.select(pattern)?;
            all.extend(found.into_iter().filter(|info| known.insert(info.id)));
        }
        Ok(all)
    }

    fn nothing_selected(
        &self,
        pattern: &str,
        unknown: &[String],
        all: &[Arc<SeriesInfo>],
    ) -> Failure {
        let path = self.path.display();
        if all.is_empty() {
            return Failure::not_found(format!("{path} holds no series"))
                .hint(format!("store some: tidalite import {path} data.csv"));
        }
        let unknown = unknown.iter().map(|problem| format!("; {problem}"));
        let failure = Failure::not_found(format!(
            "no series in {path} matches `{pattern}`{}",
            unknown.collect::<String>()
        ));
        let mut near: Vec<(f64, String)> = all
            .iter()
            .flat_map(|info| {
                let metric = info.name.as_ref().map(|name| name.metric().to_owned());
                [Some(info.label()), metric].into_iter().flatten()
            })
            .map(|name| (strsim::jaro_winkler(pattern, &name), name))
            .collect();
        near.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        near.dedup();
        let names: Vec<String> = near
            .into_iter()
            .take(SUGGESTIONS)
            .map(|(_, name)| name)
            .collect();
        failure.hint(format!(
            "similar names are {}; `tidalite series {path}` lists all",
            names.join("  ")
        ))
    }

    /// Opens a series of a list that `select` has returned.
    pub(crate) fn series(&self, info: &SeriesInfo) -> Outcome<Series<'_>> {
        let found = self
            .txn
            .series_by_id(info.id)
            .map_err(|error| self.fail(&error))?;
        found.ok_or_else(|| Failure::not_found(format!("there is no series {}", info.label())))
    }

    /// Opens the series with this id; returns `None` if it does not exist in this version.
    pub(crate) fn series_if_there(&self, id: SeriesId) -> Outcome<Option<Series<'_>>> {
        let found = self.txn.series_by_id(id);
        found.map_err(|error| self.fail(&error))
    }

    /// First and last times of the ranges in which a series differs from its state in an older version of the same
    /// file.
    pub(crate) fn changed_since(
        &self,
        older: &Self,
        id: SeriesId,
        resolution: Option<u64>,
    ) -> Outcome<Vec<(i64, i64)>> {
        let ranges = match resolution {
            Some(steps) => self.txn.changed_ranges_within(&older.txn, id, steps),
            None => self.txn.changed_ranges(&older.txn, id),
        };
        ranges.map_err(|error| self.fail(&error))
    }
}

fn mention(unknown: &[String]) {
    for problem in unknown {
        eprintln!("note: {problem}; a missing tag has the empty value");
    }
}

/// Whether `name` is the full name of a series, with its tags in any order, or the label of a series without a name.
pub(crate) fn is_called(info: &SeriesInfo, name: &str) -> bool {
    match &info.name {
        Some(own) => SeriesName::parse(name).is_ok_and(|name| name == *own),
        None => info.label() == name,
    }
}

/// Converts a time of a series to nanoseconds since 1970.
pub(crate) fn to_nanos(unit: Unit, time: i64) -> Nanos {
    (Nanos::from(time) - Nanos::from(unit.steps_to_1970())) * Nanos::from(unit.nanos())
}

/// Converts a time to steps of the unit. The error text says why a series with this name cannot store the time.
pub(crate) fn step_at(unit: Unit, nanos: Nanos, series: &str) -> Result<i64, String> {
    let size = unit.nanos();
    // Most times fit in 64 bits, in which a division takes a fraction of the time.
    let (whole, rest) = match i64::try_from(nanos) {
        Ok(nanos) => (Nanos::from(nanos / size), Nanos::from(nanos % size)),
        Err(_) => (nanos / Nanos::from(size), nanos % Nanos::from(size)),
    };
    let shown = || TimeShow::new(jiff::tz::TimeZone::UTC).show(nanos);
    if rest != 0 {
        return Err(format!(
            "{} lies between two steps of series {series}, whose times are {unit}",
            shown()
        ));
    }
    i64::try_from(whole + Nanos::from(unit.steps_to_1970())).map_err(|_| {
        let [first, last] = [i64::MIN, i64::MAX].map(|raw| unit.text(raw));
        format!(
            "{} is beyond the times of series {series}, whose 64-bit {unit} reach from {first} to {last}",
            shown()
        )
    })
}

/// The first step of the unit that is not before this time; the step may be out of range for a series.
fn to_steps(unit: Unit, nanos: Nanos) -> i128 {
    let step = Nanos::from(unit.nanos());
    let whole = nanos.div_euclid(step) + Nanos::from(nanos.rem_euclid(step) > 0);
    whole + Nanos::from(unit.steps_to_1970())
}

/// Converts a width to steps of the unit. The width must be a whole number of steps: with a rounded width, the user
/// would get other windows than requested.
pub(crate) fn width_in(unit: Unit, nanos: i64, text: &str) -> Outcome<i64> {
    let step = unit.nanos();
    if nanos < step {
        return Err(Failure::usage(format!(
            "{text} is shorter than one step of the series' time ({step} ns)"
        )));
    }
    if nanos % step != 0 {
        return Err(Failure::usage(format!(
            "{text} is not a whole number of steps of the series' time ({step} ns each)"
        )));
    }
    Ok(nanos / step)
}

/// The time range that the user has selected; `from` is inclusive, `to` exclusive. Without options it is all times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    from: Option<Nanos>,
    to: Option<Nanos>,
    last: Option<i64>,
}

impl Span {
    /// Parses the range that the user has selected.
    pub(crate) fn of(args: &RangeArgs) -> Outcome<Self> {
        let read = |text: &Option<String>| match text {
            Some(text) => read_any(text, &args.zone.tz).map(Some).map_err(|why| {
                Failure::usage(why).hint("for example: --from 2014-06-01 --to '2014-06-02 12:00'")
            }),
            None => Ok(None),
        };
        let (from, to) = (read(&args.from)?, read(&args.to)?);
        if let (Some(from), Some(to)) = (from, to)
            && from >= to
        {
            return Err(Failure::usage("--from is not before --to"));
        }
        Ok(Self {
            from,
            to,
            last: args.last,
        })
    }

    /// Whether the user has selected no range, so that all times are meant.
    pub(crate) fn is_everything(&self) -> bool {
        self.from.is_none() && self.to.is_none() && self.last.is_none()
    }

    /// First and last time to read, in the series' unit; `None` if the range is empty.
    pub(crate) fn in_series(&self, series: &Series<'_>) -> Option<(i64, i64)> {
        self.within(series.info().schema.unit, series.span()?)
    }

    /// The part of the range between two times of a series, in the series' unit; `None` if it is empty.
    pub(crate) fn within(&self, unit: Unit, (first, last): (i64, i64)) -> Option<(i64, i64)> {
        let (mut from, mut to) = (i128::from(first), i128::from(last));
        if let Some(nanos) = self.from {
            from = from.max(to_steps(unit, nanos));
        }
        if let Some(nanos) = self.to {
            to = to.min(to_steps(unit, nanos) - 1);
        }
        if let Some(width) = self.last {
            // The first step that is later than the newest time minus the width.
            let steps = -(-width).div_euclid(unit.nanos());
            from = from.max(to - i128::from(steps) + 1);
        }
        let from = i64::try_from(from).ok()?;
        let to = i64::try_from(to).ok()?;
        (from <= to).then_some((from, to))
    }

    /// The range as timestamps, for several series together. The width of --last counts back from their newest point.
    pub(crate) fn on_clock(&self, series: &[Series<'_>]) -> (Bound<Timestamp>, Bound<Timestamp>) {
        let time = |nanos: Nanos| {
            Timestamp(i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX }))
        };
        let newest = || {
            let end = |series: &Series<'_>| {
                let (_, last) = series.span()?;
                Some(to_nanos(series.info().schema.unit, last))
            };
            series.iter().filter_map(end).max()
        };
        let from = match self.last {
            Some(width) => newest().map(|newest| newest - Nanos::from(width) + 1),
            None => self.from,
        };
        let from = from.map_or(Bound::Unbounded, |nanos| Bound::Included(time(nanos)));
        let to = self
            .to
            .map_or(Bound::Unbounded, |nanos| Bound::Excluded(time(nanos)));
        (from, to)
    }

    /// The error if no series has a point in the range.
    pub(crate) fn nothing(&self) -> Failure {
        Failure::not_found("no point in this range")
            .hint("`tidalite series FILE.tdl` shows the time span of each series")
    }
}

/// Converts an error of a query of stored windows. A figure or width that the stored windows cannot give is an error of
/// the command line.
pub(crate) fn history_failure(reader: &Reader<'_>, error: &tidalite::Error) -> Failure {
    match error.kind() {
        ErrorKind::Schema => Failure::usage(error),
        _ => reader.fail(error),
    }
}

/// Formats a stored word as a cell.
pub(crate) fn word_cell(column: &Column, word: u64) -> Cell {
    value_cell(column.value(word))
}

/// Formats a stored word of a series as a cell; if the column holds texts, reads the text.
pub(crate) fn series_cell(series: &Series<'_>, column: usize, word: u64) -> tidalite::Result<Cell> {
    Ok(value_cell(series.value(column, word)?))
}

/// Formats a value as a cell.
pub(crate) fn value_cell(value: Value) -> Cell {
    match value {
        Value::Null => Cell::Missing,
        Value::F64(x) => Cell::Float(x),
        Value::I64(x) => Cell::Int(x),
        Value::U64(x) => Cell::Unsigned(x),
        Value::Bool(x) => Cell::Bool(x),
        Value::Decimal(x) => Cell::Decimal(x),
        other => Cell::Text(other.to_string()),
    }
}

/// Formats a time of a series as a cell.
pub(crate) fn time_cell(show: &TimeShow, unit: Unit, time: i64) -> Cell {
    Cell::Text(show.show(to_nanos(unit, time)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidalite_testkit::{DiskError, FileError};

    /// The error messages for a database that was moved, or that is on a network file system, name the next step.
    #[test]
    fn files_that_were_moved_and_network_file_systems_have_a_next_step() {
        let path = Path::new("plant.tdl");
        let replaced = DiskError::FileReplaced {
            path: path.to_owned(),
            process: 7,
        };
        let moved = DiskError::FileMoved {
            path: path.to_owned(),
            found: "it was deleted",
            now_at: None,
        };
        let network = DiskError::NetworkFileSystem {
            path: path.to_owned(),
            kind: "NFS",
        };
        for (error, exit, told, next) in [
            (replaced, Exit::Busy, "process 7", "`ps -p 7`"),
            (moved, Exit::Failure, "it was deleted", "repeat the command"),
            (network, Exit::Failure, "(NFS)", "--exclusive"),
        ] {
            let failure = failure(path, &FileError::from(error).into());
            assert_eq!(failure.exit, exit, "{}", failure.message);
            assert!(failure.message.contains(told), "{}", failure.message);
            assert!(failure.hint.is_some_and(|hint| hint.contains(next)));
        }
    }
}
