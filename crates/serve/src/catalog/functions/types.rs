//! Functions about types, and the names of types.

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::ScalarUDF;
use pgwire::api::Type;

use crate::catalog::functions::row_function::{as_number, as_text, function, text};

/// Functions that return the name or the identifier of a type.
pub(super) fn type_functions() -> Vec<ScalarUDF> {
    vec![
        function("format_type", DataType::Utf8, |args| {
            let base = as_number(args.first()).and_then(|oid| u32::try_from(oid).ok());
            let base = base.and_then(Type::from_oid);
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
    ]
}

/// Name of a type as it is declared.
fn type_name(base: &Type, modifier: i32) -> String {
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
fn type_of_name(name: &str) -> Option<Type> {
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
