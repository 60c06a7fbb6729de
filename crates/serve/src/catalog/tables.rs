//! Rows of the catalog about what is served.
//!
//! The columns of each table are those of the library's table of that name. A row gives values to
//! the columns that say something here; all others have what PostgreSQL has for a plain table.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, new_empty_array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::{Result, ScalarValue};

use crate::catalog::objects::{PUBLIC, Relation};
use crate::types::{numbers_field, oid_field, size_of};

/// Identifier of the schema `pg_catalog` in PostgreSQL.
const CATALOG_OID: i64 = 11;
/// Identifier of the schema `public` in PostgreSQL.
const PUBLIC_OID: i64 = 2200;
/// Identifiers that PostgreSQL gives to its first objects, of which these are not any.
const INFORMATION_OID: i64 = 13_000;
const SYSTEM_OID: i64 = 16_000;
const DATABASE_OID: i64 = 5;
/// Identifier of the first user.
pub(super) const OWNER_OID: i64 = 10;
/// Identifiers of catalogs, as which their rows are described.
pub(super) const CLASS_CATALOG: i64 = 1259;
/// Access methods.
const HEAP: i64 = 2;
const BTREE: i64 = 403;
/// Order of index columns by the class of their type; the number only has to be there.
const INDEX_CLASS: i64 = 1978;
/// Collation of text.
const DEFAULT_COLLATION: i64 = 100;

/// Name of the database, whatever a client called it.
pub(super) const DATABASE: &str = "evenkeel";
/// Owner of all objects.
pub(super) const OWNER: &str = "evenkeel";

/// A value of a row.
#[derive(Debug, Clone)]
enum Value {
    Number(i64),
    Float(f64),
    Flag(bool),
    Text(String),
    Numbers(Vec<i64>),
    Null,
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Number(value)
    }
}

impl From<i32> for Value {
    fn from(value: i32) -> Self {
        Self::Number(value.into())
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Flag(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

type Row = BTreeMap<&'static str, Value>;

macro_rules! row {
    ($($name:ident: $value:expr),* $(,)?) => {
        BTreeMap::from([$((stringify!($name), Value::from($value))),*])
    };
}

/// Names of the tables of `pg_catalog` whose rows are about what is served.
pub(super) const DYNAMIC: [&str; 14] = [
    "pg_attribute",
    "pg_authid",
    "pg_class",
    "pg_constraint",
    "pg_database",
    "pg_description",
    "pg_index",
    "pg_indexes",
    "pg_namespace",
    "pg_roles",
    "pg_settings",
    "pg_stat_user_tables",
    "pg_tables",
    "pg_user",
];

/// Returns the rows of a table of `pg_catalog`; `schema` has its columns if the library knows it.
pub(super) fn rows(
    name: &str,
    schema: Option<SchemaRef>,
    relations: &[Relation],
    settings: &[(String, String)],
) -> Result<RecordBatch> {
    let keyed = || relations.iter().filter(|relation| !relation.primary_key.is_empty());
    let (rows, columns): (Vec<Row>, Vec<Field>) = match name {
        "pg_class" => {
            let tables = relations.iter().map(table_class);
            (tables.chain(keyed().map(index_class)).chain(CATALOGS.map(catalog_class)).collect(), vec![])
        }
        "pg_attribute" => {
            let tables = relations.iter().flat_map(table_attributes);
            (tables.chain(keyed().flat_map(index_attributes)).collect(), vec![])
        }
        "pg_index" => (keyed().map(index).collect(), vec![]),
        "pg_constraint" => (keyed().map(constraint).collect(), vec![]),
        "pg_description" => (relations.iter().filter_map(description).collect(), vec![]),
        "pg_namespace" => (namespaces(), vec![]),
        "pg_database" => (vec![database()], vec![]),
        "pg_authid" | "pg_roles" => (vec![role()], vec![]),
        "pg_tables" => (relations.iter().map(listed_table).collect(), vec![]),
        "pg_settings" => (settings.iter().map(setting).collect(), setting_columns()),
        "pg_user" => (
            vec![row! { usename: OWNER, usesysid: OWNER_OID, usecreatedb: false, usesuper: false }],
            vec![
                text("usename"),
                oid_field("usesysid", false),
                Field::new("usecreatedb", DataType::Boolean, false),
                Field::new("usesuper", DataType::Boolean, false),
            ],
        ),
        "pg_indexes" => (
            keyed().map(listed_index).collect(),
            ["schemaname", "tablename", "indexname", "tablespace", "indexdef"].map(text).to_vec(),
        ),
        "pg_stat_user_tables" => (
            relations.iter().map(statistics).collect(),
            vec![
                oid_field("relid", false),
                text("schemaname"),
                text("relname"),
                Field::new("seq_scan", DataType::Int64, true),
                Field::new("n_live_tup", DataType::Int64, true),
                Field::new("n_dead_tup", DataType::Int64, true),
            ],
        ),
        _ => (vec![], vec![]),
    };
    // Views that need no more columns than these are not taken from the library.
    let schema = match (columns.is_empty(), schema) {
        (true, Some(schema)) => complete(name, &schema),
        (_, _) => Arc::new(Schema::new(columns)),
    };
    fill(&schema, &rows)
}

/// Columns of lists, which the library has as text, and whether they are vectors.
const LISTS: [(&str, bool); 6] = [
    ("indkey", true),
    ("indoption", true),
    ("indclass", true),
    ("indcollation", true),
    ("conkey", false),
    ("confkey", false),
];

/// Columns that the library leaves out, which are NULL here.
const LEFT_OUT: [(&str, &[&str]); 5] = [
    ("pg_class", &["relacl", "reloptions"]),
    ("pg_attribute", &["attcacheoff", "attacl", "attoptions", "attfdwoptions", "attmissingval"]),
    ("pg_namespace", &["nspacl"]),
    ("pg_database", &["datacl", "daticulocale", "daticurules", "datcollversion"]),
    ("pg_roles", &["rolpassword", "rolvaliduntil", "rolconfig"]),
];

/// Returns the columns of the library's table with those that it leaves out, and with lists as lists.
fn complete(table: &str, schema: &SchemaRef) -> SchemaRef {
    let column = |field: &Arc<Field>| {
        let list = LISTS.iter().find(|(name, _)| name == field.name());
        list.map_or_else(|| Arc::clone(field), |(name, is_vector)| Arc::new(numbers_field(name, *is_vector)))
    };
    let mut columns: Vec<Arc<Field>> = schema.fields().iter().map(column).collect();
    let left_out = LEFT_OUT.iter().filter(|(name, _)| *name == table).flat_map(|(_, columns)| *columns);
    for name in left_out {
        if schema.column_with_name(name).is_none() {
            columns.push(Arc::new(text(name)));
        }
    }
    Arc::new(Schema::new(columns))
}

fn text(name: &str) -> Field {
    Field::new(name, DataType::Utf8, true)
}

/// Returns rows as a batch. Columns without a value are NULL, or zero, false or empty if they have
/// to be something.
fn fill(schema: &SchemaRef, rows: &[Row]) -> Result<RecordBatch> {
    let column = |field: &Arc<Field>| -> Result<ArrayRef> {
        if rows.is_empty() {
            return Ok(new_empty_array(field.data_type()));
        }
        let value = |row: &Row| scalar(row.get(field.name().as_str()), field);
        let values: Vec<ScalarValue> = rows.iter().map(value).collect::<Result<_>>()?;
        Ok(cast(&ScalarValue::iter_to_array(values)?, field.data_type())?)
    };
    let columns: Vec<ArrayRef> = schema.fields().iter().map(column).collect::<Result<_>>()?;
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(rows.len()));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

fn scalar(value: Option<&Value>, field: &Field) -> Result<ScalarValue> {
    let data_type = field.data_type();
    let found = match value {
        Some(Value::Number(number)) => ScalarValue::Int64(Some(*number)),
        Some(Value::Float(number)) => ScalarValue::Float64(Some(*number)),
        Some(Value::Flag(flag)) => ScalarValue::Boolean(Some(*flag)),
        Some(Value::Text(text)) => ScalarValue::Utf8(Some(text.clone())),
        Some(Value::Numbers(numbers)) => match data_type {
            DataType::List(element) => {
                let numbers: Vec<ScalarValue> =
                    numbers.iter().map(|number| ScalarValue::Int64(Some(*number))).collect();
                let list = ScalarValue::new_list(&numbers, &DataType::Int64, true);
                let list = ScalarValue::List(list);
                return list.cast_to(&DataType::List(Arc::clone(element)));
            }
            _ => {
                let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
                ScalarValue::Utf8(Some(numbers.join(" ")))
            }
        },
        Some(Value::Null) => return ScalarValue::try_from(data_type),
        None if field.is_nullable() => return ScalarValue::try_from(data_type),
        None => match data_type {
            DataType::Boolean => ScalarValue::Boolean(Some(false)),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                ScalarValue::Utf8(Some(String::new()))
            }
            DataType::List(element) => {
                return Ok(ScalarValue::List(ScalarValue::new_list(&[], element.data_type(), true)));
            }
            _ => ScalarValue::Int64(Some(0)),
        },
    };
    found.cast_to(data_type)
}

/// Returns the identifier of a schema.
fn schema_oid(name: &str) -> i64 {
    if name == PUBLIC { PUBLIC_OID } else { SYSTEM_OID }
}

#[expect(clippy::cast_precision_loss, reason = "an estimate for planners of other systems")]
fn estimate(rows: Option<u64>) -> Value {
    // -1 says that it is unknown.
    Value::Float(rows.map_or(-1.0, |rows| rows as f64))
}

fn table_class(relation: &Relation) -> Row {
    let mut row = class(relation, relation.oid, &relation.name, "r");
    row.extend(row! {
        relam: HEAP,
        relhasindex: !relation.primary_key.is_empty(),
        relnatts: columns_of(relation),
        // Pages would invite clients to read a range of them.
        relpages: 0,
    });
    row.insert("reltuples", estimate(relation.rows));
    row
}

/// Catalogs with their identifiers, by which other catalogs refer to them.
const CATALOGS: [(i64, &str); 16] = [
    (1213, "pg_tablespace"),
    (1247, "pg_type"),
    (1249, "pg_attribute"),
    (1255, "pg_proc"),
    (CLASS_CATALOG, "pg_class"),
    (1260, "pg_authid"),
    (1262, "pg_database"),
    (2601, "pg_am"),
    (2604, "pg_attrdef"),
    (2606, "pg_constraint"),
    (2609, "pg_description"),
    (2610, "pg_index"),
    (2615, "pg_namespace"),
    (2618, "pg_rewrite"),
    (2620, "pg_trigger"),
    (3079, "pg_extension"),
];

fn catalog_class((oid, name): (i64, &'static str)) -> Row {
    row! {
        oid: oid,
        relname: name,
        relnamespace: CATALOG_OID,
        relowner: OWNER_OID,
        relpersistence: "p",
        relkind: "r",
        relam: HEAP,
        relispopulated: true,
        relreplident: "n",
    }
}

fn columns_of(relation: &Relation) -> i64 {
    i64::try_from(relation.columns.len()).unwrap_or(i64::MAX)
}

fn index_class(relation: &Relation) -> Row {
    let mut row = class(relation, relation.index_oid(), &relation.index_name(), "i");
    row.extend(row! {
        relam: BTREE,
        relnatts: i64::try_from(relation.primary_key.len()).unwrap_or(i64::MAX),
    });
    row.insert("reltuples", estimate(relation.rows));
    row
}

fn class(relation: &Relation, oid: i32, name: &str, kind: &'static str) -> Row {
    row! {
        oid: oid,
        relname: name,
        relnamespace: schema_oid(relation.schema),
        reloftype: 0,
        relowner: OWNER_OID,
        relfilenode: oid,
        relpersistence: "p",
        relkind: kind,
        relispopulated: true,
        relreplident: "d",
        relrewrite: 0,
    }
}

fn table_attributes(relation: &Relation) -> impl Iterator<Item = Row> {
    (1..).zip(&relation.columns).map(|(number, column)| attribute(relation.oid, number, column))
}

fn index_attributes(relation: &Relation) -> impl Iterator<Item = Row> {
    let columns = relation.primary_key.iter().filter_map(|at| relation.columns.get(*at));
    (1..).zip(columns).map(|(number, column)| attribute(relation.index_oid(), number, column))
}

fn attribute(relation: i32, number: i64, column: &super::objects::Column) -> Row {
    let size = size_of(&column.pg.base);
    let is_array = crate::types::element_of(&column.pg.base).is_some();
    let is_text = column.pg.base == pgwire::api::Type::TEXT;
    let align = match size {
        1 => "c",
        2 => "s",
        8 => "d",
        _ => "i",
    };
    row! {
        attrelid: relation,
        attname: column.name.as_str(),
        atttypid: i64::from(column.pg.base.oid()),
        attlen: i64::from(size),
        attnum: number,
        attcacheoff: -1,
        atttypmod: column.pg.modifier,
        attndims: i64::from(is_array),
        attbyval: (1..=8).contains(&size),
        attalign: align,
        attstorage: if size < 0 { "x" } else { "p" },
        attnotnull: column.is_required,
        attislocal: true,
        attstattarget: -1,
        attcollation: if is_text { DEFAULT_COLLATION } else { 0 },
    }
}

/// Numbers of the columns of the primary key, from 1.
fn key_numbers(relation: &Relation) -> Vec<i64> {
    relation.primary_key.iter().filter_map(|at| i64::try_from(at + 1).ok()).collect()
}

fn index(relation: &Relation) -> Row {
    let columns = relation.primary_key.len();
    let count = i64::try_from(columns).unwrap_or(i64::MAX);
    let mut row = row! {
        indexrelid: relation.index_oid(),
        indrelid: relation.oid,
        indnatts: count,
        indnkeyatts: count,
        indisunique: true,
        indisprimary: true,
        indimmediate: true,
        indisvalid: true,
        indisready: true,
        indislive: true,
    };
    row.insert("indkey", Value::Numbers(key_numbers(relation)));
    row.insert("indoption", Value::Numbers(vec![0; columns]));
    row.insert("indclass", Value::Numbers(vec![INDEX_CLASS; columns]));
    row.insert("indcollation", Value::Numbers(vec![0; columns]));
    row
}

fn constraint(relation: &Relation) -> Row {
    let mut row = row! {
        oid: relation.constraint_oid(),
        conname: relation.index_name(),
        connamespace: schema_oid(relation.schema),
        contype: "p",
        convalidated: true,
        conrelid: relation.oid,
        conindid: relation.index_oid(),
        conislocal: true,
        connoinherit: true,
    };
    row.insert("conkey", Value::Numbers(key_numbers(relation)));
    row.insert("confkey", Value::Null);
    row
}

fn description(relation: &Relation) -> Option<Row> {
    let comment = relation.comment.as_deref()?;
    Some(row! { objoid: relation.oid, classoid: CLASS_CATALOG, objsubid: 0, description: comment })
}

fn namespaces() -> Vec<Row> {
    let named = [
        (CATALOG_OID, "pg_catalog"),
        (PUBLIC_OID, PUBLIC),
        (INFORMATION_OID, "information_schema"),
        (SYSTEM_OID, "sys"),
    ];
    named.map(|(oid, name)| row! { oid: oid, nspname: name, nspowner: OWNER_OID }).to_vec()
}

fn database() -> Row {
    row! {
        oid: DATABASE_OID,
        datname: DATABASE,
        datdba: OWNER_OID,
        // UTF8.
        encoding: 6,
        datlocprovider: "c",
        datcollate: "C",
        datctype: "C",
        datallowconn: true,
        datconnlimit: -1,
        dattablespace: 1663,
    }
}

fn role() -> Row {
    row! { oid: OWNER_OID, rolname: OWNER, rolcanlogin: true, rolinherit: true, rolconnlimit: -1 }
}

fn listed_table(relation: &Relation) -> Row {
    row! {
        schemaname: relation.schema,
        tablename: relation.name.as_str(),
        tableowner: OWNER,
        hasindexes: !relation.primary_key.is_empty(),
    }
}

fn listed_index(relation: &Relation) -> Row {
    row! {
        schemaname: relation.schema,
        tablename: relation.name.as_str(),
        indexname: relation.index_name(),
        indexdef: index_definition(relation),
    }
}

/// Returns the statement that would create the index of a primary key.
pub(super) fn index_definition(relation: &Relation) -> String {
    let name = super::objects::written(&relation.index_name());
    let table = super::objects::written(&relation.name);
    let schema = relation.schema;
    format!("CREATE UNIQUE INDEX {name} ON {schema}.{table} USING btree ({})", relation.key_columns())
}

fn statistics(relation: &Relation) -> Row {
    let rows = relation.rows.and_then(|rows| i64::try_from(rows).ok());
    let mut row = row! { relid: relation.oid, schemaname: relation.schema, relname: relation.name.as_str() };
    row.insert("n_live_tup", rows.map_or(Value::Null, Value::Number));
    row
}

fn setting_columns() -> Vec<Field> {
    let names = [
        "name",
        "setting",
        "unit",
        "category",
        "short_desc",
        "extra_desc",
        "context",
        "vartype",
        "source",
        "min_val",
        "max_val",
        "boot_val",
        "reset_val",
        "sourcefile",
    ];
    let mut columns = names.map(text).to_vec();
    columns.push(Field::new("enumvals", DataType::Utf8, true));
    columns.push(Field::new("sourceline", DataType::Int32, true));
    columns.push(Field::new("pending_restart", DataType::Boolean, true));
    columns
}

fn setting((name, value): &(String, String)) -> Row {
    row! {
        name: name.as_str(),
        setting: value.as_str(),
        category: "",
        short_desc: "",
        context: "user",
        vartype: "string",
        source: "session",
        boot_val: value.as_str(),
        reset_val: value.as_str(),
        pending_restart: false,
    }
}

/// Names of the tables of `information_schema`.
pub(super) const INFORMATION: [&str; 10] = [
    "schemata",
    "tables",
    "columns",
    "views",
    "table_constraints",
    "key_column_usage",
    "constraint_column_usage",
    "referential_constraints",
    "routines",
    "parameters",
];

/// Returns the rows of a table of `information_schema`.
pub(super) fn information(name: &str, relations: &[Relation]) -> Result<RecordBatch> {
    let number = |name: &str| Field::new(name, DataType::Int32, true);
    let keyed = || relations.iter().filter(|relation| !relation.primary_key.is_empty());
    let constrained = |relation: &Relation| {
        row! {
            constraint_catalog: DATABASE,
            constraint_schema: relation.schema,
            constraint_name: relation.index_name(),
            table_catalog: DATABASE,
            table_schema: relation.schema,
            table_name: relation.name.as_str(),
        }
    };
    const CONSTRAINED: [&str; 6] = [
        "constraint_catalog",
        "constraint_schema",
        "constraint_name",
        "table_catalog",
        "table_schema",
        "table_name",
    ];
    let (columns, rows): (Vec<Field>, Vec<Row>) = match name {
        "schemata" => (
            ["catalog_name", "schema_name", "schema_owner"].map(text).to_vec(),
            ["pg_catalog", PUBLIC, "information_schema", "sys"]
                .map(|schema| row! { catalog_name: DATABASE, schema_name: schema, schema_owner: OWNER })
                .to_vec(),
        ),
        "tables" => (
            ["table_catalog", "table_schema", "table_name", "table_type", "is_insertable_into"]
                .map(text)
                .to_vec(),
            relations
                .iter()
                .map(|relation| {
                    row! {
                        table_catalog: DATABASE,
                        table_schema: relation.schema,
                        table_name: relation.name.as_str(),
                        table_type: "BASE TABLE",
                        is_insertable_into: "NO",
                    }
                })
                .collect(),
        ),
        "columns" => (
            vec![
                text("table_catalog"),
                text("table_schema"),
                text("table_name"),
                text("column_name"),
                number("ordinal_position"),
                text("column_default"),
                text("is_nullable"),
                text("data_type"),
                number("character_maximum_length"),
                number("character_octet_length"),
                number("numeric_precision"),
                number("numeric_precision_radix"),
                number("numeric_scale"),
                number("datetime_precision"),
                text("udt_catalog"),
                text("udt_schema"),
                text("udt_name"),
                text("is_identity"),
                text("is_generated"),
                text("is_updatable"),
            ],
            relations.iter().flat_map(information_columns).collect(),
        ),
        "table_constraints" => {
            let mut columns = CONSTRAINED.map(text).to_vec();
            columns.push(text("constraint_type"));
            let rows = keyed().map(|relation| {
                let mut row = constrained(relation);
                row.insert("constraint_type", "PRIMARY KEY".into());
                row
            });
            (columns, rows.collect())
        }
        "key_column_usage" | "constraint_column_usage" => {
            let mut columns = CONSTRAINED.map(text).to_vec();
            columns.push(text("column_name"));
            columns.push(number("ordinal_position"));
            columns.push(number("position_in_unique_constraint"));
            let of_key = |relation: &Relation| -> Vec<Row> {
                let names = relation.primary_key.iter().filter_map(|at| relation.columns.get(*at));
                (1..)
                    .zip(names)
                    .map(|(position, column)| {
                        let mut row = constrained(relation);
                        row.insert("column_name", column.name.as_str().into());
                        row.insert("ordinal_position", Value::Number(position));
                        row
                    })
                    .collect()
            };
            (columns, keyed().flat_map(of_key).collect())
        }
        "views" => {
            (["table_catalog", "table_schema", "table_name", "view_definition"].map(text).to_vec(), vec![])
        }
        "referential_constraints" => (
            [
                "constraint_catalog",
                "constraint_schema",
                "constraint_name",
                "unique_constraint_catalog",
                "unique_constraint_schema",
                "unique_constraint_name",
                "match_option",
                "update_rule",
                "delete_rule",
            ]
            .map(text)
            .to_vec(),
            vec![],
        ),
        "routines" => (
            [
                "specific_catalog",
                "specific_schema",
                "specific_name",
                "routine_schema",
                "routine_name",
                "routine_type",
                "data_type",
            ]
            .map(text)
            .to_vec(),
            vec![],
        ),
        _ => (
            ["specific_catalog", "specific_schema", "specific_name", "parameter_name", "data_type"]
                .map(text)
                .to_vec(),
            vec![],
        ),
    };
    fill(&Arc::new(Schema::new(columns)), &rows)
}

fn information_columns(relation: &Relation) -> impl Iterator<Item = Row> {
    use pgwire::api::Type;
    (1..).zip(&relation.columns).map(move |(position, column)| {
        let base = &column.pg.base;
        let bits = match *base {
            Type::INT2 => Some(16),
            Type::INT4 => Some(32),
            Type::INT8 | Type::FLOAT8 => Some(64),
            Type::FLOAT4 => Some(24),
            _ => None,
        };
        let (precision, scale) = match (*base == Type::NUMERIC, column.pg.modifier) {
            (true, modifier) if modifier >= 4 => (Some((modifier - 4) >> 16), Some((modifier - 4) & 0xffff)),
            _ => (bits, bits.filter(|_| *base != Type::FLOAT4 && *base != Type::FLOAT8).map(|_| 0)),
        };
        let mut row = row! {
            table_catalog: DATABASE,
            table_schema: relation.schema,
            table_name: relation.name.as_str(),
            column_name: column.name.as_str(),
            ordinal_position: Value::Number(position),
            is_nullable: if column.is_required { "NO" } else { "YES" },
            data_type: long_name(base),
            udt_catalog: DATABASE,
            udt_schema: "pg_catalog",
            udt_name: base.name(),
            is_identity: "NO",
            is_generated: "NEVER",
            is_updatable: "NO",
        };
        if let Some(precision) = precision {
            row.insert("numeric_precision", precision.into());
            row.insert("numeric_precision_radix", if *base == Type::NUMERIC { 10 } else { 2 }.into());
        }
        if let Some(scale) = scale {
            row.insert("numeric_scale", scale.into());
        }
        if matches!(*base, Type::TIMESTAMP | Type::TIMESTAMPTZ | Type::TIME | Type::INTERVAL) {
            row.insert("datetime_precision", 6.into());
        }
        row
    })
}

/// Name of a type in the SQL standard.
fn long_name(base: &pgwire::api::Type) -> &'static str {
    use pgwire::api::Type;
    match *base {
        Type::BOOL => "boolean",
        Type::INT2 => "smallint",
        Type::INT4 => "integer",
        Type::INT8 => "bigint",
        Type::FLOAT4 => "real",
        Type::FLOAT8 => "double precision",
        Type::NUMERIC => "numeric",
        Type::TIME => "time without time zone",
        Type::TIMESTAMP => "timestamp without time zone",
        Type::TIMESTAMPTZ => "timestamp with time zone",
        Type::BYTEA => "bytea",
        Type::UUID => "uuid",
        Type::DATE => "date",
        Type::INTERVAL => "interval",
        Type::TEXT => "text",
        _ => "ARRAY",
    }
}
