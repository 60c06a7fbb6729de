//! Functions of PostgreSQL that clients call to learn about a server and its objects.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int32Array, ListArray, StructArray};
use arrow::buffer::OffsetBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Fields, TimeUnit};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};

use crate::catalog::objects::Relation;
use crate::catalog::tables::{DATABASE, index_definition};

/// Computes a value from the arguments of one row.
type Body = dyn Fn(&[ScalarValue]) -> ScalarValue + Send + Sync;

/// A function that is computed row by row.
struct RowFunction {
    name: &'static str,
    signature: Signature,
    returns: DataType,
    body: Arc<Body>,
}

impl fmt::Debug for RowFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for RowFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.body, &other.body)
    }
}

impl Eq for RowFunction {}

impl Hash for RowFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for RowFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.returns.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_constant = args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
        if is_constant {
            let values = args.args.into_iter().map(|value| match value {
                ColumnarValue::Scalar(value) => value,
                ColumnarValue::Array(_) => ScalarValue::Null,
            });
            let values: Vec<ScalarValue> = values.collect();
            return Ok(ColumnarValue::Scalar((self.body)(&values).cast_to(&self.returns)?));
        }
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let value = |row: usize| -> Result<ScalarValue> {
            let values = arrays.iter().map(|array| ScalarValue::try_from_array(array, row));
            (self.body)(&values.collect::<Result<Vec<_>>>()?).cast_to(&self.returns)
        };
        let values: Vec<ScalarValue> = (0..args.number_rows).map(value).collect::<Result<_>>()?;
        Ok(ColumnarValue::Array(ScalarValue::iter_to_array(values)?))
    }
}

fn function(
    name: &'static str,
    returns: DataType,
    body: impl Fn(&[ScalarValue]) -> ScalarValue + Send + Sync + 'static,
) -> ScalarUDF {
    let any = TypeSignature::OneOf(vec![TypeSignature::Nullary, TypeSignature::VariadicAny]);
    let signature = Signature::new(any, Volatility::Stable);
    ScalarUDF::from(RowFunction { name, signature, returns, body: Arc::new(body) })
}

/// A function that is the same for all arguments.
fn constant(name: &'static str, value: ScalarValue) -> ScalarUDF {
    function(name, value.data_type(), move |_| value.clone())
}

fn as_number(value: Option<&ScalarValue>) -> Option<i64> {
    match value?.cast_to(&DataType::Int64) {
        Ok(ScalarValue::Int64(number)) => number,
        _ => None,
    }
}

fn as_text(value: Option<&ScalarValue>) -> Option<String> {
    match value?.cast_to(&DataType::Utf8) {
        Ok(ScalarValue::Utf8(text)) => text,
        _ => None,
    }
}

fn text(value: impl Into<String>) -> ScalarValue {
    ScalarValue::Utf8(Some(value.into()))
}

/// Version that clients read.
fn version() -> String {
    format!(
        "PostgreSQL {} (evenkeel {}, read-only)",
        crate::settings::SERVER_VERSION,
        env!("CARGO_PKG_VERSION")
    )
}

/// The facts about a connection that catalog functions answer with.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    pub(super) user: String,
    pub(super) process: i32,
    pub(super) settings: Vec<(String, String)>,
}

/// Functions that the library does not have, or has only the names of.
pub(super) fn functions(relations: &Arc<Vec<Relation>>, caller: &Caller) -> Vec<ScalarUDF> {
    let no_text = || ScalarValue::Utf8(None);
    let mut all = vec![
        constant("version", text(version())),
        constant("current_database", text(DATABASE)),
        constant("current_catalog", text(DATABASE)),
        constant("current_schema", text("public")),
        constant("pg_backend_pid", ScalarValue::Int32(Some(caller.process))),
        constant("pg_is_in_recovery", ScalarValue::Boolean(Some(false))),
        constant("pg_is_wal_replay_paused", ScalarValue::Boolean(Some(false))),
        constant("pg_my_temp_schema", ScalarValue::Int32(Some(0))),
        constant("txid_current", ScalarValue::Int64(Some(1))),
        constant("pg_current_xact_id", ScalarValue::Int64(Some(1))),
        constant("pg_export_snapshot", text("00000001-00000001-1")),
        constant(
            "pg_postmaster_start_time",
            ScalarValue::TimestampMicrosecond(Some(0), Some("+00:00".into())),
        ),
        constant("pg_conf_load_time", ScalarValue::TimestampMicrosecond(Some(0), Some("+00:00".into()))),
        constant("getdatabaseencoding", text("UTF8")),
        constant("json_build_object", no_text()),
        constant("pg_get_viewdef", no_text()),
        constant("pg_get_ruledef", no_text()),
        constant("pg_get_triggerdef", no_text()),
        constant("pg_get_functiondef", no_text()),
        constant("pg_get_function_result", no_text()),
        constant("pg_get_function_arguments", no_text()),
        constant("pg_get_function_identity_arguments", no_text()),
        constant("pg_get_serial_sequence", no_text()),
        constant("pg_tablespace_location", no_text()),
        constant("shobj_description", no_text()),
        constant("col_description", no_text()),
        constant("inet_server_addr", no_text()),
        constant("inet_server_port", ScalarValue::Int32(None)),
        constant("inet_client_addr", no_text()),
        constant("pg_type_is_visible", ScalarValue::Boolean(Some(true))),
        constant("pg_function_is_visible", ScalarValue::Boolean(Some(true))),
        constant("pg_operator_is_visible", ScalarValue::Boolean(Some(true))),
        constant("pg_collation_is_visible", ScalarValue::Boolean(Some(true))),
        constant("pg_opclass_is_visible", ScalarValue::Boolean(Some(true))),
        constant("pg_opfamily_is_visible", ScalarValue::Boolean(Some(true))),
        constant("pg_conversion_is_visible", ScalarValue::Boolean(Some(true))),
        constant("pg_statistics_obj_is_visible", ScalarValue::Boolean(Some(true))),
        constant("pg_ts_config_is_visible", ScalarValue::Boolean(Some(true))),
        constant("pg_ts_dict_is_visible", ScalarValue::Boolean(Some(true))),
        constant("pg_ts_parser_is_visible", ScalarValue::Boolean(Some(true))),
        constant("pg_ts_template_is_visible", ScalarValue::Boolean(Some(true))),
        constant("has_column_privilege", ScalarValue::Boolean(Some(true))),
        constant("has_function_privilege", ScalarValue::Boolean(Some(true))),
        constant("has_sequence_privilege", ScalarValue::Boolean(Some(false))),
        constant("pg_has_role", ScalarValue::Boolean(Some(true))),
        constant("pg_database_size", ScalarValue::Int64(Some(total(relations)))),
        constant("pg_stat_get_numscans", ScalarValue::Int64(Some(0))),
        constant("pg_indexes_size", ScalarValue::Int64(Some(0))),
        function("pg_size_pretty", DataType::Utf8, |args| {
            as_number(args.first()).map_or(ScalarValue::Utf8(None), |bytes| text(pretty(bytes)))
        }),
        function("quote_literal", DataType::Utf8, |args| {
            as_text(args.first())
                .map_or(ScalarValue::Utf8(None), |value| text(format!("'{}'", value.replace('\'', "''"))))
        }),
        function("pg_char_to_encoding", DataType::Int32, |args| {
            let is_utf8 = as_text(args.first()).is_some_and(|name| crate::statement::is_utf8(&name));
            ScalarValue::Int32(Some(if is_utf8 { 6 } else { -1 }))
        }),
        function("element_numbers", DataType::new_list(DataType::Int32, true), |args| match args.first() {
            Some(ScalarValue::List(list)) => {
                let length = list.values().len();
                let numbers: Vec<ScalarValue> =
                    (1..).take(length).map(|number| ScalarValue::Int32(Some(number))).collect();
                ScalarValue::List(ScalarValue::new_list(&numbers, &DataType::Int32, true))
            }
            _ => ScalarValue::Null,
        }),
        function("array_to_string", DataType::Utf8, |args| match args.first() {
            Some(ScalarValue::List(list)) if list.is_valid(0) => {
                let between = as_text(args.get(1)).unwrap_or_default();
                let elements = list.values();
                let element = |row| ScalarValue::try_from_array(elements, row).ok();
                let texts = (0..elements.len()).filter_map(|row| as_text(element(row).as_ref()));
                text(texts.collect::<Vec<_>>().join(&between))
            }
            // Lists that are not given, such as those of rights.
            _ => ScalarValue::Utf8(None),
        }),
        function("numbered_elements", numbered_list(), |args| match args.first() {
            Some(ScalarValue::List(list)) => numbered(list.values()),
            _ => ScalarValue::Null,
        }),
        constant("pg_get_userbyid", text(super::tables::OWNER)),
    ];
    all.extend(of_objects(relations));
    all.extend(of_caller(caller));
    all
}

/// Type of the elements of an array with their numbers.
fn numbered_list() -> DataType {
    DataType::new_list(DataType::Struct(numbered_fields()), true)
}

fn numbered_fields() -> Fields {
    let number = |name| Field::new(name, DataType::Int32, true);
    Fields::from(vec![number("x"), number("n")])
}

/// Returns elements with their numbers from 1.
fn numbered(elements: &ArrayRef) -> ScalarValue {
    let Ok(elements) = cast(elements, &DataType::Int32) else { return ScalarValue::Null };
    let numbers: Int32Array = (1..).take(elements.len()).map(Some).collect();
    let rows = StructArray::new(numbered_fields(), vec![elements, Arc::new(numbers)], None);
    let offsets = OffsetBuffer::from_lengths([rows.len()]);
    let element = Arc::new(Field::new_list_field(DataType::Struct(numbered_fields()), true));
    ScalarValue::List(Arc::new(ListArray::new(element, offsets, Arc::new(rows), None)))
}

/// Name of a type as it is declared.
fn type_name(base: &pgwire::api::Type, modifier: i32) -> String {
    use pgwire::api::Type;
    let plain = match base.name() {
        "bool" => "boolean",
        "int2" => "smallint",
        "int4" => "integer",
        "int8" => "bigint",
        "float4" => "real",
        "float8" => "double precision",
        "varchar" => "character varying",
        "bpchar" => "character",
        "char" => "\"char\"",
        "time" => "time without time zone",
        "timetz" => "time with time zone",
        "timestamp" => "timestamp without time zone",
        "timestamptz" => "timestamp with time zone",
        name => name,
    };
    if let Some(element) = plain.strip_prefix('_') {
        let element =
            type_of_name(element).map_or_else(|| element.to_owned(), |element| type_name(&element, -1));
        return format!("{element}[]");
    }
    let sizes = match *base {
        _ if modifier < 4 => None,
        Type::NUMERIC => Some(format!("({},{})", (modifier - 4) >> 16, (modifier - 4) & 0xffff)),
        Type::VARCHAR | Type::BPCHAR => Some(format!("({})", modifier - 4)),
        _ => None,
    };
    format!("{plain}{}", sizes.unwrap_or_default())
}

/// Finds a type by one of its names.
fn type_of_name(name: &str) -> Option<pgwire::api::Type> {
    use pgwire::api::Type;
    let name = name.trim().trim_start_matches("pg_catalog.").trim_matches('"').to_ascii_lowercase();
    Some(match name.as_str() {
        "bool" | "boolean" => Type::BOOL,
        "int2" | "smallint" => Type::INT2,
        "int4" | "int" | "integer" => Type::INT4,
        "int8" | "bigint" => Type::INT8,
        "float4" | "real" => Type::FLOAT4,
        "float8" | "double precision" => Type::FLOAT8,
        "numeric" | "decimal" => Type::NUMERIC,
        "text" => Type::TEXT,
        "varchar" | "character varying" => Type::VARCHAR,
        "bytea" => Type::BYTEA,
        "uuid" => Type::UUID,
        "date" => Type::DATE,
        "time" | "time without time zone" => Type::TIME,
        "timestamp" | "timestamp without time zone" => Type::TIMESTAMP,
        "timestamptz" | "timestamp with time zone" => Type::TIMESTAMPTZ,
        "interval" => Type::INTERVAL,
        "json" => Type::JSON,
        "oid" => Type::OID,
        _ => return None,
    })
}

fn total(relations: &[Relation]) -> i64 {
    relations.iter().map(|relation| i64::try_from(relation.bytes).unwrap_or(i64::MAX)).sum()
}

/// Writes a size as PostgreSQL does.
fn pretty(bytes: i64) -> String {
    let mut size = bytes;
    for unit in ["bytes", "kB", "MB", "GB"] {
        if size.abs() < 10 * 1024 {
            return format!("{size} {unit}");
        }
        size = (size + 512) / 1024;
    }
    format!("{size} TB")
}

/// Functions that look up an object by its identifier.
fn of_objects(relations: &Arc<Vec<Relation>>) -> Vec<ScalarUDF> {
    let by_oid = |name: &'static str, returns: DataType, of: fn(&Relation, i64) -> Option<ScalarValue>| {
        let (relations, nothing) = (Arc::clone(relations), ScalarValue::try_from(&returns));
        let nothing = nothing.unwrap_or(ScalarValue::Null);
        function(name, returns, move |args| {
            let oid = as_number(args.first());
            let found = oid.and_then(|oid| relations.iter().find_map(|relation| of(relation, oid)));
            found.unwrap_or_else(|| nothing.clone())
        })
    };
    let size = |relation: &Relation, oid: i64| {
        let bytes = i64::try_from(relation.bytes).unwrap_or(i64::MAX);
        (i64::from(relation.oid) == oid).then_some(ScalarValue::Int64(Some(bytes)))
    };
    let key = |relation: &Relation, oid: i64| {
        let is_key = i64::from(relation.constraint_oid()) == oid && !relation.primary_key.is_empty();
        is_key.then(|| text(format!("PRIMARY KEY ({})", relation.key_columns())))
    };
    let comment = |relation: &Relation, oid: i64| {
        let comment = relation.comment.as_ref().filter(|_| i64::from(relation.oid) == oid)?;
        Some(text(comment.clone()))
    };
    let indexes = Arc::clone(relations);
    let classes = Arc::clone(relations);
    vec![
        by_oid("pg_relation_size", DataType::Int64, size),
        by_oid("pg_table_size", DataType::Int64, size),
        by_oid("pg_total_relation_size", DataType::Int64, size),
        by_oid("pg_get_constraintdef", DataType::Utf8, key),
        by_oid("obj_description", DataType::Utf8, comment),
        function("pg_get_indexdef", DataType::Utf8, move |args| {
            let (oid, column) = (as_number(args.first()), as_number(args.get(1)).unwrap_or(0));
            let found = indexes.iter().find(|relation| Some(i64::from(relation.index_oid())) == oid);
            let Some(relation) = found else { return ScalarValue::Utf8(None) };
            // With a number, the name of a column.
            match usize::try_from(column - 1) {
                Err(_) => text(index_definition(relation)),
                Ok(at) => {
                    let column = relation.primary_key.get(at).and_then(|at| relation.columns.get(*at));
                    ScalarValue::Utf8(column.map(|column| super::objects::written(&column.name)))
                }
            }
        }),
        // For settings that change nothing here, such as jit.
        function("set_config", DataType::Utf8, |args| ScalarValue::Utf8(as_text(args.get(1)))),
        function("pg_table_is_visible", DataType::Boolean, {
            let relations = Arc::clone(relations);
            move |args| {
                let oid = as_number(args.first()).unwrap_or(0);
                let is_hidden = relations.iter().any(|relation| {
                    let own = [relation.oid, relation.index_oid()].map(i64::from);
                    relation.schema != super::objects::PUBLIC && own.contains(&oid)
                });
                ScalarValue::Boolean(Some(!is_hidden))
            }
        }),
        function("format_type", DataType::Utf8, |args| {
            let base = as_number(args.first()).and_then(|oid| u32::try_from(oid).ok());
            let base = base.and_then(pgwire::api::Type::from_oid);
            let modifier =
                as_number(args.get(1)).and_then(|modifier| i32::try_from(modifier).ok()).unwrap_or(-1);
            match (base, as_number(args.first())) {
                (Some(base), _) => text(type_name(&base, modifier)),
                (None, Some(0)) => text("-"),
                (None, Some(_)) => text("???"),
                (None, None) => ScalarValue::Utf8(None),
            }
        }),
        function("to_regtype", DataType::Int32, |args| {
            let name = as_text(args.first()).unwrap_or_default();
            ScalarValue::Int32(type_of_name(&name).map(|base| base.oid().cast_signed()))
        }),
        function("to_regclass", DataType::Int32, move |args| {
            let name = as_text(args.first()).unwrap_or_default();
            let name = name.rsplit('.').next().unwrap_or_default().trim_matches('"').to_owned();
            ScalarValue::Int32(classes.iter().find(|relation| relation.name == name).map(|r| r.oid))
        }),
    ]
}

/// Functions about the connection.
fn of_caller(caller: &Caller) -> Vec<ScalarUDF> {
    let settings = caller.settings.clone();
    let now = DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into()));
    let mut all = vec![
        function("current_setting", DataType::Utf8, move |args| {
            let name = as_text(args.first()).unwrap_or_default().to_ascii_lowercase();
            ScalarValue::Utf8(settings.iter().find(|(own, _)| *own == name).map(|(_, value)| value.clone()))
        }),
        function("statement_timestamp", now, |_| {
            ScalarValue::TimestampMicrosecond(
                Some(chrono::Utc::now().timestamp_micros()),
                Some("+00:00".into()),
            )
        }),
    ];
    for name in ["session_user", "current_user", "user", "current_role"] {
        all.push(constant(name, text(caller.user.clone())));
    }
    all
}
