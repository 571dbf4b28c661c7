//! Imports lines without names into a series that exists: `--into` without `--columns`. The columns of the series say
//! how the fields after the time are read.

use crate::args::{ImportArgs, TypedColumn};
use crate::database::failure;
use crate::exit::{Failure, Outcome};
use crate::import::layout::Wishes;
use crate::output::printable;
use tidalite::{ColumnType, Database, Schema, SeriesName};

/// The series that receives all rows.
#[derive(Clone, Debug)]
pub(crate) struct KnownSeries {
    pub name: SeriesName,
    schema: Schema,
}

impl KnownSeries {
    /// The series of `--into` if its columns are not given.
    ///
    /// # Errors
    /// A series that does not exist, and options that do not fit.
    pub(crate) fn of(args: &ImportArgs, database: &Database) -> Outcome<Option<Self>> {
        let Some(into) = args
            .target
            .into
            .as_ref()
            .filter(|_| args.columns.is_empty())
        else {
            return Ok(None);
        };
        let given = [
            ("--tag", !args.tags.is_empty()),
            ("--tag-value", !args.tag_values.is_empty()),
            ("--file-tags", args.file_tags.is_some()),
            ("--value", !args.values.is_empty()),
            ("--prefix", !args.prefix.is_empty()),
        ];
        if let Some((option, _)) = given.iter().find(|(_, is_given)| *is_given) {
            return Err(
                Failure::usage(format!("{option} needs --columns beside --into")).hint(
                    "without --columns, --into is the full name of a series that exists, with its tags",
                ),
            );
        }
        let name = SeriesName::parse(into).map_err(|error| {
            Failure::usage(error).hint("write NAME or 'NAME{tag=\"text\"}', in single quotes")
        })?;
        let fail = |error: tidalite::Error| failure(&args.file, &error);
        let snapshot = database.begin_read().map_err(fail)?;
        match snapshot.series(&name.to_string()).map_err(fail)? {
            Some(series) => Ok(Some(Self {
                name,
                schema: series.info().schema.clone(),
            })),
            None => {
                let name = printable(&name.to_string());
                let failure =
                    Failure::not_found(format!("there is no series {name} to import into"));
                Err(failure.hint("name its columns with --columns, or create it with the first point: tidalite put FILE.tdl SERIES TIME VALUE"))
            }
        }
    }

    /// Whether the series has a single value, besides the flags.
    fn has_single_value(&self) -> bool {
        let columns = &self.schema.columns;
        let is_whole = matches!(&columns[..], [column]
            if column.name == "value" && matches!(column.ty, ColumnType::I64 | ColumnType::U64));
        is_whole || *columns == Schema::point().columns
    }

    /// Sets the roles of the fields: the time is the first unless another is named, and the values follow.
    pub(crate) fn set_roles(&self, wishes: &mut Wishes) {
        wishes.header = false;
        wishes.time.get_or_insert_with(|| "1".to_owned());
        if self.has_single_value() {
            wishes.values = vec!["2=value".to_owned()];
            return;
        }
        let columns = self.schema.columns.iter().enumerate();
        let columns = columns.map(|(place, column)| TypedColumn {
            wish: format!("{}={}", place + 2, column.name),
            ty: column.ty,
            nullable: column.nullable,
        });
        wishes.columns = columns.collect();
    }

    /// Refuses lines that do not have as many fields as the series needs.
    pub(crate) fn check_width(&self, width: usize, what: &str) -> Outcome {
        let names: Vec<&str> = match self.has_single_value() {
            true => vec!["value"],
            false => {
                let columns = self.schema.columns.iter();
                columns.map(|column| &*column.name).collect()
            }
        };
        if width == names.len() + 1 {
            return Ok(());
        }
        let name = printable(&self.name.to_string());
        Err(Failure::bad_input(format!(
            "{what}: the first line has {width} fields, but series {name} takes {}",
            names.len() + 1
        ))
        .hint(format!("each line must be: time,{}", names.join(","))))
    }
}
