//! The output of EXPLAIN in the mode `box`: plans are printed as text, because a table would wrap their lines.

use super::cells::{Cells, printable};
use super::writer::Format;
use std::io::{self, Write};
use tidalite_sql::arrow::array::RecordBatch;
use tidalite_sql::arrow::datatypes::Schema;

/// True if a result has the columns of EXPLAIN.
pub(super) fn is_plan(schema: &Schema) -> bool {
    let names = schema.fields().iter().map(|field| field.name().as_str());
    names.eq(["plan_type", "plan"])
}

/// The writer.
pub(super) struct Plan;

impl Format for Plan {
    fn batch(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> io::Result<()> {
        let cells = Cells::new(batch, "")?;
        for row in 0..batch.num_rows() {
            let texts: Vec<String> = cells.row(row).collect::<io::Result<_>>()?;
            if let [kind, plan] = &texts[..] {
                writeln!(out, "{}:", printable(kind, false))?;
                for line in plan.trim_end().lines() {
                    writeln!(out, "  {}", printable(line, false))?;
                }
            }
        }
        Ok(())
    }

    fn finish(&mut self, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}
