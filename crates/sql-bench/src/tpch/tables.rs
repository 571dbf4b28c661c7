//! The tables, and their rows as CSV.

use std::fmt::Display;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use tpchgen::csv::{
    CustomerCsv, LineItemCsv, NationCsv, OrderCsv, PartCsv, PartSuppCsv, RegionCsv, SupplierCsv,
};
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator,
    PartSuppGenerator, RegionGenerator, SupplierGenerator,
};

/// A table.
pub(crate) struct Table {
    pub(crate) name: &'static str,
    /// Names and types of the columns; no column has nulls.
    columns: &'static str,
    /// The columns of the primary key.
    key: &'static str,
}

/// All tables.
pub(crate) const TABLES: [Table; 8] = [
    Table {
        name: "region",
        columns: "r_regionkey BIGINT, r_name TEXT, r_comment TEXT",
        key: "r_regionkey",
    },
    Table {
        name: "nation",
        columns: "n_nationkey BIGINT, n_name TEXT, n_regionkey BIGINT, n_comment TEXT",
        key: "n_nationkey",
    },
    Table {
        name: "supplier",
        columns: "s_suppkey BIGINT, s_name TEXT, s_address TEXT, s_nationkey BIGINT, s_phone TEXT, s_acctbal DECIMAL(15,2), \
                  s_comment TEXT",
        key: "s_suppkey",
    },
    Table {
        name: "part",
        columns: "p_partkey BIGINT, p_name TEXT, p_mfgr TEXT, p_brand TEXT, p_type TEXT, p_size INTEGER, p_container TEXT, \
                  p_retailprice DECIMAL(15,2), p_comment TEXT",
        key: "p_partkey",
    },
    Table {
        name: "partsupp",
        columns: "ps_partkey BIGINT, ps_suppkey BIGINT, ps_availqty INTEGER, ps_supplycost DECIMAL(15,2), ps_comment TEXT",
        key: "ps_partkey, ps_suppkey",
    },
    Table {
        name: "customer",
        columns: "c_custkey BIGINT, c_name TEXT, c_address TEXT, c_nationkey BIGINT, c_phone TEXT, c_acctbal DECIMAL(15,2), \
                  c_mktsegment TEXT, c_comment TEXT",
        key: "c_custkey",
    },
    Table {
        name: "orders",
        columns: "o_orderkey BIGINT, o_custkey BIGINT, o_orderstatus TEXT, o_totalprice DECIMAL(15,2), o_orderdate DATE, \
                  o_orderpriority TEXT, o_clerk TEXT, o_shippriority INTEGER, o_comment TEXT",
        key: "o_orderkey",
    },
    Table {
        name: "lineitem",
        columns: "l_orderkey BIGINT, l_partkey BIGINT, l_suppkey BIGINT, l_linenumber INTEGER, l_quantity DECIMAL(15,2), \
                  l_extendedprice DECIMAL(15,2), l_discount DECIMAL(15,2), l_tax DECIMAL(15,2), l_returnflag TEXT, \
                  l_linestatus TEXT, l_shipdate DATE, l_commitdate DATE, l_receiptdate DATE, l_shipinstruct TEXT, \
                  l_shipmode TEXT, l_comment TEXT",
        key: "l_orderkey, l_linenumber",
    },
];

/// The indexes on foreign keys that are created in SQLite.
pub(crate) const INDEXES: [&str; 5] = [
    "CREATE INDEX orders_customer ON orders (o_custkey)",
    "CREATE INDEX lineitem_part ON lineitem (l_partkey, l_suppkey)",
    "CREATE INDEX lineitem_supplier ON lineitem (l_suppkey)",
    "CREATE INDEX partsupp_supplier ON partsupp (ps_suppkey)",
    "CREATE INDEX customer_nation ON customer (c_nationkey)",
];

impl Table {
    /// The statement that creates the table with its primary key.
    pub(crate) fn create(&self) -> String {
        let key = format!(", PRIMARY KEY ({})", self.key);
        self.statement(&key)
    }

    /// The statement without a key, for DuckDB: in DuckDB a key does not help these queries, and slows down the load.
    pub(crate) fn create_without_key(&self) -> String {
        self.statement("")
    }

    /// The statement for SQLite, which has no decimals and no dates.
    pub(crate) fn create_in_sqlite(&self) -> String {
        let mut create = self.create();
        // In SQLite a single key column of type INTEGER is the row number, which needs no index.
        for (ty, other) in [
            ("DECIMAL(15,2)", "REAL"),
            ("DATE", "TEXT"),
            ("BIGINT", "INTEGER"),
        ] {
            create = create.replace(&format!(" {ty}"), &format!(" {other}"));
        }
        create
    }

    fn statement(&self, key: &str) -> String {
        let columns = self.columns.replace(", ", " NOT NULL, ");
        format!("CREATE TABLE {} ({columns} NOT NULL{key})", self.name)
    }

    /// The name of the CSV file with the rows; its first line contains the names of the columns.
    pub(crate) fn csv(&self) -> String {
        format!("{}.csv", self.name)
    }
}

/// Writes a CSV file for each table.
pub(crate) fn write_csv(scale: f64, folder: &Path) -> std::io::Result<()> {
    let rows = RegionGenerator::new(scale, 1, 1).iter();
    write(
        folder,
        "region",
        RegionCsv::header(),
        rows.map(RegionCsv::new),
    )?;
    let rows = NationGenerator::new(scale, 1, 1).iter();
    write(
        folder,
        "nation",
        NationCsv::header(),
        rows.map(NationCsv::new),
    )?;
    let rows = SupplierGenerator::new(scale, 1, 1).iter();
    write(
        folder,
        "supplier",
        SupplierCsv::header(),
        rows.map(SupplierCsv::new),
    )?;
    let rows = PartGenerator::new(scale, 1, 1).iter();
    write(folder, "part", PartCsv::header(), rows.map(PartCsv::new))?;
    // With few suppliers, the formula of the specification assigns some suppliers to the same part twice.
    let (mut part, mut suppliers) = (0, Vec::new());
    let rows = PartSuppGenerator::new(scale, 1, 1).iter().filter(|row| {
        if row.ps_partkey != part {
            part = row.ps_partkey;
            suppliers.clear();
        }
        let is_new = !suppliers.contains(&row.ps_suppkey);
        suppliers.push(row.ps_suppkey);
        is_new
    });
    write(
        folder,
        "partsupp",
        PartSuppCsv::header(),
        rows.map(PartSuppCsv::new),
    )?;
    let rows = CustomerGenerator::new(scale, 1, 1).iter();
    write(
        folder,
        "customer",
        CustomerCsv::header(),
        rows.map(CustomerCsv::new),
    )?;
    let rows = OrderGenerator::new(scale, 1, 1).iter();
    write(
        folder,
        "orders",
        OrderCsv::header(),
        rows.map(OrderCsv::new),
    )?;
    let rows = LineItemGenerator::new(scale, 1, 1).iter();
    write(
        folder,
        "lineitem",
        LineItemCsv::header(),
        rows.map(LineItemCsv::new),
    )
}

fn write(
    folder: &Path,
    name: &str,
    header: &str,
    rows: impl Iterator<Item = impl Display>,
) -> std::io::Result<()> {
    let file = File::create(folder.join(format!("{name}.csv")))?;
    let mut file = BufWriter::with_capacity(1 << 20, file);
    writeln!(file, "{header}")?;
    for row in rows {
        writeln!(file, "{row}")?;
    }
    file.flush()
}
